/*
 * open_sources.h - opens what vault.sources names.
 */
#ifndef DF_OPEN_SOURCES_H
#define DF_OPEN_SOURCES_H

#include "spawner/model/never.h"
#include "spawner/store/vault/sources.h"

struct df_kube;

/* All borrowed, and must live as long as the sources. */
struct df_sources_options {
    const cJSON *sources;         /* vault.sources, checked (model/secret_source.h); NULL: none */
    struct df_kube *kube;         /* NULL: there is no cluster */
    const char *name_space;       /* of the service; or NULL */
    const struct df_never *never; /* Secrets that no source opens */
};

/* Asks no source: one that is away must not stop the service. *ret is NULL if there are none. USER:
 * a source needs a cluster, and there is none. */
int df_sources_open(const struct df_sources_options *o, struct df_sources **ret,
                    struct df_err *err) DF_MUST_CHECK;

#endif
