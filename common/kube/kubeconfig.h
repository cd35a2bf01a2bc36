/*
 * kubeconfig.h - what the kubeconfig files say. Internal to common/kube. Contract: config.h.
 */
#ifndef DF_KUBE_KUBECONFIG_H
#define DF_KUBE_KUBECONFIG_H

#include "common/kube/config.h"

/* paths: separated by colons; a missing file is passed over unless `must_exist`. context: NULL for
 * the current one. *ret must be zero; it is the caller's to free, also on failure. NOT_FOUND when
 * none of the files exists. */
int df_kubeconfig_load(const char *paths, bool must_exist, const char *context,
                       struct df_kube_config *ret, struct df_err *err) DF_MUST_CHECK;

#endif
