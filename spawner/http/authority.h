/*
 * authority.h - the certificate authority that the replicas of a spawner share.
 *
 * It is stored in a Secret of the service's namespace, as ca.crt and ca.key. The installation
 * creates the Secret empty, so it is removed with the installation, and the spawner needs no right
 * to create Secrets. The first replica fills it. A replica that loses the race (resourceVersion)
 * reads what the winner wrote. The spawner never replaces the content. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_AUTHORITY_H
#define DF_SPAWNER_HTTP_AUTHORITY_H

#include "common/base/buf.h"

struct df_kube;

/* Appends the shared authority's key (wipe it) and certificate, PEM. NOT_FOUND if there is no such
 * Secret; USER if it has only one of the two. */
int df_authority_shared(struct df_kube *kube, const char *name_space, const char *secret,
                        struct df_buf *key, struct df_buf *certificate,
                        struct df_err *err) DF_MUST_CHECK;

#endif
