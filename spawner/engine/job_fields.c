#include "spawner/engine/job_fields.h"

static const struct df_proto_field job_spec[] = {
    {10, DF_PROTO_TRUTH, "suspend", NULL, false, true},
    {0},
};

/* JobCondition and PodCondition are numbered alike. */
static const struct df_proto_field conditions[] = {
    {1, DF_PROTO_TEXT, "type", NULL, false, false},
    {2, DF_PROTO_TEXT, "status", NULL, false, false},
    {4, DF_PROTO_TIME, "lastTransitionTime", NULL, false, false},
    {5, DF_PROTO_TEXT, "reason", NULL, false, false},
    {6, DF_PROTO_TEXT, "message", NULL, false, false},
    {0},
};

static const struct df_proto_field job_status[] = {
    {1, DF_PROTO_MESSAGE, "conditions", conditions, true, false},
    {4, DF_PROTO_NUMBER, "active", NULL, false, false},
    {5, DF_PROTO_NUMBER, "succeeded", NULL, false, false},
    {6, DF_PROTO_NUMBER, "failed", NULL, false, false},
    {0},
};

const struct df_proto_field df_job_fields[] = {
    {1, DF_PROTO_MESSAGE, "metadata", df_proto_metadata, false, false},
    {2, DF_PROTO_MESSAGE, "spec", job_spec, false, false},
    {3, DF_PROTO_MESSAGE, "status", job_status, false, false},
    {0},
};

static const struct df_proto_field waiting[] = {
    {1, DF_PROTO_TEXT, "reason", NULL, false, false},
    {2, DF_PROTO_TEXT, "message", NULL, false, false},
    {0},
};

static const struct df_proto_field running[] = {
    {1, DF_PROTO_TIME, "startedAt", NULL, false, false},
    {0},
};

static const struct df_proto_field terminated[] = {
    {1, DF_PROTO_NUMBER, "exitCode", NULL, false, true},
    {2, DF_PROTO_NUMBER, "signal", NULL, false, false},
    {3, DF_PROTO_TEXT, "reason", NULL, false, false},
    {4, DF_PROTO_TEXT, "message", NULL, false, false},
    {5, DF_PROTO_TIME, "startedAt", NULL, false, false},
    {6, DF_PROTO_TIME, "finishedAt", NULL, false, false},
    {0},
};

static const struct df_proto_field container_state[] = {
    {1, DF_PROTO_MESSAGE, "waiting", waiting, false, false},
    {2, DF_PROTO_MESSAGE, "running", running, false, false},
    {3, DF_PROTO_MESSAGE, "terminated", terminated, false, false},
    {0},
};

static const struct df_proto_field container_statuses[] = {
    {1, DF_PROTO_TEXT, "name", NULL, false, false},
    {2, DF_PROTO_MESSAGE, "state", container_state, false, false},
    {3, DF_PROTO_MESSAGE, "lastState", container_state, false, false},
    {4, DF_PROTO_TRUTH, "ready", NULL, false, true},
    {5, DF_PROTO_NUMBER, "restartCount", NULL, false, true},
    {0},
};

static const struct df_proto_field containers[] = {
    {1, DF_PROTO_TEXT, "name", NULL, false, false},
    {0},
};

static const struct df_proto_field pod_spec[] = {
    {2, DF_PROTO_MESSAGE, "containers", containers, true, false},
    {10, DF_PROTO_TEXT, "nodeName", NULL, false, false},
    {0},
};

static const struct df_proto_field pod_status[] = {
    {1, DF_PROTO_TEXT, "phase", NULL, false, false},
    {2, DF_PROTO_MESSAGE, "conditions", conditions, true, false},
    {3, DF_PROTO_TEXT, "message", NULL, false, false},
    {4, DF_PROTO_TEXT, "reason", NULL, false, false},
    {8, DF_PROTO_MESSAGE, "containerStatuses", container_statuses, true, false},
    {10, DF_PROTO_MESSAGE, "initContainerStatuses", container_statuses, true, false},
    {0},
};

const struct df_proto_field df_pod_fields[] = {
    {1, DF_PROTO_MESSAGE, "metadata", df_proto_metadata, false, false},
    {2, DF_PROTO_MESSAGE, "spec", pod_spec, false, false},
    {3, DF_PROTO_MESSAGE, "status", pod_status, false, false},
    {0},
};
