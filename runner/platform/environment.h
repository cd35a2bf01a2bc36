/*
 * environment.h - the parts of input.h that come from variables. Internal to runner/platform.
 * Thread rule: main thread, before there are others: the environment is changed.
 */
#ifndef DF_PLATFORM_ENVIRONMENT_H
#define DF_PLATFORM_ENVIRONMENT_H

#include "runner/platform/input.h"

/* All variables but those of the cluster: words, scope, URLs, trace. Refuses plain secrets. */
void df_environment_read(struct df_platform_input *in, struct df_faults *faults);

/* The API server of KUBECONFIG_PATH, of KUBECONFIG_DATA, or of the pod's service account. */
void df_environment_read_cluster(const char *service_account, struct df_kube_config *ret,
                                 struct df_faults *faults);

#endif
