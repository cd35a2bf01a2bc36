/*
 * fuzz_proto - events of a watch as protobuf, by the tables of Jobs and of pods.
 *
 * Held: what is read prints and reads as JSON, and an event has a type and an object; what is
 * refused says why and leaves nothing.
 */
#include "common/kube/proto.h"
#include "spawner/engine/job/job_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const struct df_proto_field *fields, const uint8_t *data, size_t size)
{
    struct df_err err = {0};
    DF_JSON cJSON *event = NULL, *again = NULL;
    if (df_proto_read_event(fields, data, size, &event, &err) < 0) {
        if (!err.message[0] || err.cls != DF_ERR_USER || event)
            abort();
        return;
    }
    if (!df_json_str(event, "type") || !cJSON_IsObject(df_json_at(event, "object")))
        abort();
    DF_FREE char *text = df_json_print(event);
    if (!text)
        abort();
    /* Keys of a map may be any text, and stand twice for a reader of JSON when they are no UTF-8.
     */
    if (df_json_parse(text, strlen(text), &again, NULL) < 0)
        return;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(df_job_fields, data, size);
    read_as(df_pod_fields, data, size);
    return 0;
}
