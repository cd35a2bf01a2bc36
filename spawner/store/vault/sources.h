/*
 * sources.h - secrets from elsewhere: each source is a backend that is only read, and has the
 * secrets whose names begin with its name (model/secret_source.h).
 * Thread rule: any thread, once all are added.
 */
#ifndef DF_SOURCES_H
#define DF_SOURCES_H

#include "common/json/json.h"

struct df_vault;

struct df_source {
    char *name;  /* "corp" */
    char *place; /* where its secrets are, for people: "secret/infra of https://vault:8200" */
    cJSON *use;  /* of all its secrets (model/secret_use.h), with "source" */
    struct df_vault *backend;
};

struct df_sources {
    struct df_source *items;
    size_t len;
};

void df_sources_free(struct df_sources *s); /* NULL is fine */
static inline void df_cleanup_sources(struct df_sources **s)
{
    df_sources_free(*s);
}
#define DF_SOURCES DF_CLEANUP(df_cleanup_sources)

/* The source of the secret with this name, and in *ret_rest the name there; all borrowed. NULL: it
 * is none's. s may be NULL. */
const struct df_source *df_sources_find(const struct df_sources *s, const char *name,
                                        const char **ret_rest);

/* df_vault_list_uses() and df_vault_list_sources(). */
int df_sources_list_uses(const struct df_sources *s, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
int df_sources_list(const struct df_sources *s, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Fails as a read would if the source cannot be read now. */
int df_source_check(const struct df_source *s, struct df_err *err) DF_MUST_CHECK;

/* Fails with the reason of the class: RETRY SecretSourceUnavailable, DENIED SecretSourceDenied.
 * Always -1. */
int df_source_fail(struct df_err *err, enum df_err_class cls, const char *fmt, ...) DF_PRINTF(3, 4);

/* The same for a failure of the way to a source. */
int df_source_failed(struct df_err *err, const struct df_err *why);

#endif
