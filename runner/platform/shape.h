/*
 * shape.h - reads variables and YAML files by tables: a row says which key there may be, what its
 * value must look like, and where it goes. Internal to runner/platform.
 *
 * All that is wrong becomes a fault, lost memory too (faults.h), so that nothing here returns an
 * error. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_SHAPE_H
#define DF_PLATFORM_SHAPE_H

#include "common/json/json.h"
#include "common/yaml/yaml.h"
#include "runner/platform/faults.h"

enum df_shape_type {
    DF_SHAPE_TEXT,     /* char *: not empty, without control characters */
    DF_SHAPE_LABEL,    /* char *: a DNS label */
    DF_SHAPE_WORD,     /* char *: one of .words */
    DF_SHAPE_CHOICE,   /* bool: true for the second of .words */
    DF_SHAPE_DURATION, /* int64_t: milliseconds, more than none */
    DF_SHAPE_BOOL,     /* bool */
    DF_SHAPE_WHOLE,    /* int: from .min to .max */
    DF_SHAPE_TEXTS,    /* a list of strings, each as a TEXT or a WORD; kept nowhere */
    DF_SHAPE_LIST,     /* any list; kept nowhere */
    DF_SHAPE_OBJECT,   /* a mapping: its keys are .members, or any without them */
};

#define DF_SHAPE_NOWHERE UINT32_MAX

/* A table ends with a row without key. */
struct df_shape {
    const char *key;
    enum df_shape_type type;
    uint32_t offset;      /* of a member of the struct that is filled; or DF_SHAPE_NOWHERE */
    const char *fallback; /* the value of an absent key, as text; not of BOOL and WHOLE */
    int min, max;
    const char *const *words; /* ends with NULL */
    /* What is wrong with a text, as the rest of a sentence behind the key; NULL: nothing. */
    const char *(*check)(const char *text);
    const struct df_shape *members;
    bool is_required;
};

/* The variables of the table into *base. An empty one counts as absent. */
void df_shape_read_variables(const struct df_shape *rows, void *base, struct df_faults *faults);

/* A YAML file of the input. */
struct df_document {
    const char *name;            /* borrowed; "environment.yaml": what faults begin with */
    cJSON *json;                 /* owned; an object, or NULL: the text was at fault */
    struct df_yaml_lines *lines; /* owned */
    struct df_faults *faults;    /* borrowed */
};
#define DF_DOCUMENT DF_CLEANUP(df_document_free)
void df_document_free(struct df_document *d);

/* *ret must be zero; name and faults are borrowed for its life. False, with a fault, if it is no
 * YAML mapping. */
bool df_document_parse(const char *name, const char *text, size_t len, struct df_faults *faults,
                       struct df_document *ret);

/* The path of a value: "components[0].timeout", or "" for the document. One that is too long is
 * cut: its line is then that of what the value is in. */
struct df_key_path {
    char text[256];
};
struct df_key_path df_key_path(const char *fmt, ...) DF_PRINTF(1, 2);

/* Adds a fault with the line of the value at this path, or of what it would be in. */
void df_document_fault(const struct df_document *d, const char *path, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* The mapping at this path by the table into *base. */
void df_document_read(const struct df_document *d, const cJSON *object, const char *path,
                      const struct df_shape *rows, void *base);

#endif
