/*
 * authority.h - the certificate authority that the replicas of a spawner share.
 *
 * It lies in a Secret of the spawner's namespace, as ca.crt and ca.key. The Secret is made empty by
 * whoever installs the spawner, so that it goes with the installation and the spawner needs no
 * right to make Secrets; the first replica fills it, and those that come at the same time take what
 * that one has written: the resourceVersion decides. What is in it is never replaced. Thread rule:
 * any thread.
 */
#ifndef DF_API_AUTHORITY_H
#define DF_API_AUTHORITY_H

#include "common/base/buf.h"

struct df_kube;

/* Appends the shared authority's key (wipe it) and certificate, PEM. NOT_FOUND when there is no
 * Secret of this name; USER when it has one part of two. */
int df_authority_shared(struct df_kube *kube, const char *secret, struct df_buf *key,
                        struct df_buf *certificate, struct df_err *err) DF_MUST_CHECK;

#endif
