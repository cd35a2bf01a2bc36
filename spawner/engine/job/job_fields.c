#include "spawner/engine/job/job_fields.h"

static const struct df_proto_field job_spec[] = {
    DF_PROTO(10, TRUTH, "suspend", .always = true),
    {0},
};

/* JobCondition and PodCondition have the same field numbers. */
static const struct df_proto_field conditions[] = {
    DF_PROTO(1, TEXT, "type"),
    DF_PROTO(2, TEXT, "status"),
    DF_PROTO(4, TIME, "lastTransitionTime"),
    DF_PROTO(5, TEXT, "reason"),
    DF_PROTO(6, TEXT, "message"),
    {0},
};

static const struct df_proto_field job_status[] = {
    DF_PROTO(1, MESSAGE, "conditions", .of = conditions, .repeated = true),
    DF_PROTO(4, NUMBER, "active"),
    DF_PROTO(5, NUMBER, "succeeded"),
    DF_PROTO(6, NUMBER, "failed"),
    {0},
};

const struct df_proto_field df_job_fields[] = {
    DF_PROTO(1, MESSAGE, "metadata", .of = df_proto_metadata),
    DF_PROTO(2, MESSAGE, "spec", .of = job_spec),
    DF_PROTO(3, MESSAGE, "status", .of = job_status),
    {0},
};

static const struct df_proto_field waiting[] = {
    DF_PROTO(1, TEXT, "reason"),
    DF_PROTO(2, TEXT, "message"),
    {0},
};

static const struct df_proto_field running[] = {
    DF_PROTO(1, TIME, "startedAt"),
    {0},
};

static const struct df_proto_field terminated[] = {
    DF_PROTO(1, NUMBER, "exitCode", .always = true),
    DF_PROTO(2, NUMBER, "signal"),
    DF_PROTO(3, TEXT, "reason"),
    DF_PROTO(4, TEXT, "message"),
    DF_PROTO(5, TIME, "startedAt"),
    DF_PROTO(6, TIME, "finishedAt"),
    {0},
};

static const struct df_proto_field container_state[] = {
    DF_PROTO(1, MESSAGE, "waiting", .of = waiting),
    DF_PROTO(2, MESSAGE, "running", .of = running),
    DF_PROTO(3, MESSAGE, "terminated", .of = terminated),
    {0},
};

static const struct df_proto_field container_statuses[] = {
    DF_PROTO(1, TEXT, "name"),
    DF_PROTO(2, MESSAGE, "state", .of = container_state),
    DF_PROTO(3, MESSAGE, "lastState", .of = container_state),
    DF_PROTO(4, TRUTH, "ready", .always = true),
    DF_PROTO(5, NUMBER, "restartCount", .always = true),
    {0},
};

static const struct df_proto_field containers[] = {
    DF_PROTO(1, TEXT, "name"),
    {0},
};

static const struct df_proto_field pod_spec[] = {
    DF_PROTO(2, MESSAGE, "containers", .of = containers, .repeated = true),
    DF_PROTO(10, TEXT, "nodeName"),
    {0},
};

static const struct df_proto_field pod_status[] = {
    DF_PROTO(1, TEXT, "phase"),
    DF_PROTO(2, MESSAGE, "conditions", .of = conditions, .repeated = true),
    DF_PROTO(3, TEXT, "message"),
    DF_PROTO(4, TEXT, "reason"),
    DF_PROTO(8, MESSAGE, "containerStatuses", .of = container_statuses, .repeated = true),
    DF_PROTO(10, MESSAGE, "initContainerStatuses", .of = container_statuses, .repeated = true),
    {0},
};

const struct df_proto_field df_pod_fields[] = {
    DF_PROTO(1, MESSAGE, "metadata", .of = df_proto_metadata),
    DF_PROTO(2, MESSAGE, "spec", .of = pod_spec),
    DF_PROTO(3, MESSAGE, "status", .of = pod_status),
    {0},
};
