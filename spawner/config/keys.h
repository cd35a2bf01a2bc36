/*
 * keys.h - the table of configuration keys. Only for spawner/config.
 *
 * File, environment and flags share one table: each of them sets a key from a text, with
 * df_key_set().
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
    bool is_secret;       /* PATH, PATHS: what is there is the service's alone; no step sees it */
    size_t offset;        /* in struct df_config */
    const char *fallback; /* the default as text; NULL: none, or it depends on the machine */
    int64_t min, max;     /* WHOLE, SECONDS */
    /* OBJECT: checks the value when it is set, so that the message has the line; or NULL */
    int (*check)(cJSON *object, struct df_err *err);
};

extern const struct df_key df_keys[];
extern const size_t df_key_count;

const struct df_key *df_key_find(const char *name); /* or NULL */

/* The address of the value of this key in c. */
void *df_key_member(struct df_config *c, const struct df_key *k);

/* Sets a key from its text. base: the directory that a relative path is relative to. Class USER;
 * the message does not name the key, because only the caller knows where the text came from. */
int df_key_set(struct df_config *c, const struct df_key *k, const char *text, const char *base,
               struct df_err *err) DF_MUST_CHECK;

/* Adds one item to the list of such a key. */
int df_key_add_item(struct df_strs *v, const struct df_key *k, const char *text, const char *base,
                    struct df_err *err) DF_MUST_CHECK;

/* Applies the YAML file to c. */
int df_config_read_file(struct df_config *c, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Completes the keys terrakube.* and what else the environment of Terrakube says, for
 * df_config_load(). Does nothing without terrakube.listen. */
int df_config_fill_terrakube(struct df_config *c, char *const *env,
                             struct df_err *err) DF_MUST_CHECK;

#endif
