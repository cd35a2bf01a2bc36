/*
 * job_fields.h - what of a Job and of a pod is read when a watch tells of them: at least what
 * job_snapshot.c keeps and its readers go by.
 */
#ifndef DF_ENGINE_JOB_FIELDS_H
#define DF_ENGINE_JOB_FIELDS_H

#include "common/kube/proto.h"

extern const struct df_proto_field df_job_fields[];
extern const struct df_proto_field df_pod_fields[];

#endif
