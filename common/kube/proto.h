/*
 * proto.h - objects in the form in which the API server tells its own controllers of them:
 * protobuf, read by tables into the trees that their JSON would be.
 *
 * A watch in this form costs the API server little: it encodes each object once for all who watch
 * so, Kubernetes' own controllers among them. JSON is made for the others, and costs it more than
 * the rest of telling. What no table names is passed over without a look.
 *
 * A library's generated code for Job and Pod alone would be larger than all of common/kube, since
 * they take half of Kubernetes' types along; a table of what is wanted is a page.
 *
 * Numbers of fields: generated.proto of k8s.io/api and k8s.io/apimachinery; they never change.
 * Thread rule: any thread.
 */
#ifndef DF_KUBE_PROTO_H
#define DF_KUBE_PROTO_H

#include "common/json/json.h"

/* What a watch accepts in this form. */
#define DF_PROTO_WATCH_TYPE "application/vnd.kubernetes.protobuf;stream=watch"
/* A message is sent as its length, big-endian in so many bytes, and itself. */
#define DF_PROTO_FRAME 4

enum df_proto_type {
    DF_PROTO_TEXT,
    DF_PROTO_NUMBER, /* of 32 or 64 bits */
    DF_PROTO_TRUTH,
    DF_PROTO_TIME, /* to RFC 3339, whole seconds */
    DF_PROTO_MAP,  /* of texts */
    DF_PROTO_MESSAGE
};

/* One field of a message. A table of them ends with {0}. */
struct df_proto_field {
    uint32_t number;
    enum df_proto_type type;
    const char *name;                /* in JSON */
    const struct df_proto_field *of; /* MESSAGE: its fields */
    bool repeated;                   /* a list of messages */
    bool always; /* 0 and false are included: no omitempty in JSON, or a pointer */
};

/* A row of a table: DF_PROTO(3, MESSAGE, "parts", .of = parts, .repeated = true) */
#define DF_PROTO(field, kind, json, ...)                                                           \
    {                                                                                              \
        .number = (field), .type = DF_PROTO_##kind, .name = (json), ##__VA_ARGS__                  \
    }

extern const struct df_proto_field df_proto_metadata[]; /* ObjectMeta: what everybody goes by */
extern const struct df_proto_field df_proto_status[];   /* Status: why a request failed */

/* Is this an object in its envelope, or anything else? */
bool df_proto_is_object(const void *bytes, size_t n);
/* One object in its envelope. USER when it is malformed. The caller owns *ret. */
int df_proto_read_object(const struct df_proto_field *fields, const void *bytes, size_t n,
                         cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* One event of a watch, as {"type", "object"}; the object of an ERROR is a Status. */
int df_proto_read_event(const struct df_proto_field *fields, const void *bytes, size_t n,
                        cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
