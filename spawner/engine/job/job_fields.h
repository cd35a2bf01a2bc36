/*
 * job_fields.h - the fields of a Job and a pod that are decoded from a watch. They include all that
 * job_snapshot.c keeps.
 */
#ifndef DF_ENGINE_JOB_FIELDS_H
#define DF_ENGINE_JOB_FIELDS_H

#include "common/kube/proto.h"

extern const struct df_proto_field df_job_fields[];
extern const struct df_proto_field df_pod_fields[];

#endif
