/*
 * keys.h - the table of configuration keys; inside spawner/config only.
 *
 * One table for all three sources: whatever names a key, its text goes through df_key_set().
 */
#ifndef DF_CONFIG_KEYS_H
#define DF_CONFIG_KEYS_H

#include "spawner/config/config.h"

enum df_key_type {
    DF_KEY_STRING,
    DF_KEY_PATH,
    DF_KEY_PATHS,
    DF_KEY_WORDS,
    DF_KEY_BOOL,
    DF_KEY_WHOLE,
    DF_KEY_SECONDS,
    DF_KEY_LEVEL,
    DF_KEY_FORMAT,
    DF_KEY_OBJECT /* a mapping; in text as JSON */
};

struct df_key {
    const char *name;
    enum df_key_type type;
    size_t offset;        /* in struct df_config */
    const char *fallback; /* the default as text; NULL: none, or it depends on the machine */
    int64_t min, max;     /* WHOLE, SECONDS */
};

extern const struct df_key df_keys[];
extern const size_t df_key_count;

const struct df_key *df_key_find(const char *name); /* or NULL */

/* Where the key's value lives in c. */
void *df_key_member(struct df_config *c, const struct df_key *k);

/* Sets a key from its text. base: the directory that relative paths are taken from. Class USER
 * without the key's name: the caller knows where it stood. */
int df_key_set(struct df_config *c, const struct df_key *k, const char *text, const char *base,
               struct df_err *err) DF_MUST_CHECK;

/* Adds one item to the list of such a key. */
int df_key_add_item(struct df_strs *v, const struct df_key *k, const char *text, const char *base,
                    struct df_err *err) DF_MUST_CHECK;

/* Reads the YAML file. */
int df_config_read_file(struct df_config *c, const char *path, struct df_err *err) DF_MUST_CHECK;

#endif
