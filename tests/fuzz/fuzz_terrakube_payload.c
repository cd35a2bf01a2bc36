/*
 * fuzz_terrakube_payload - the job that Terrakube's API gives to an executor.
 *
 * Held: a refusal says why, and can be told to the step that it names; of what is accepted all that
 * callers rely on is there, and its commands are read in order.
 */
#include "common/crypto/crypto.h"
#include "common/terrakube/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_ordered(const cJSON *list)
{
    struct df_terrakube_command *all = NULL;
    size_t n = 0;
    if (df_terrakube_commands(list, &all, &n, NULL) < 0 || n != (size_t)cJSON_GetArraySize(list))
        abort();
    for (size_t i = 0; i < n; i++)
        if (!all[i].script || (i && all[i - 1].priority > all[i].priority))
            abort();
    free(all);
}

static void must_be_strings(const cJSON *object)
{
    if (!cJSON_IsObject(object))
        abort();
    for (const cJSON *j = object->child; j; j = j->next)
        if (!cJSON_IsString(j) || !*j->string || strchr(j->string, '='))
            abort();
}

static void must_be_whole(const struct df_terrakube_payload *p)
{
    if (!p->organization || !p->workspace || !p->step || !p->job)
        abort();
    if (p->folder && strchr(p->folder, ','))
        abort();
    must_be_strings(p->environment);
    if (!cJSON_IsArray(p->variables))
        must_be_strings(p->variables);
    must_be_ordered(p->commands);
    must_be_ordered(p->on_failure);
}

/* The same text in base64 is the same job. */
static void must_decode(const uint8_t *data, size_t size)
{
    DF_BUF struct df_buf coded = DF_BUF_INIT(2 * size + 4);
    DF_TERRAKUBE_PAYLOAD p;
    if (df_base64_encode(data, size, false, &coded, NULL) < 0 ||
        df_terrakube_payload_decode(df_buf_str(&coded), &p, NULL) < 0)
        abort();
    must_be_whole(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct df_err err = {0};
    DF_TERRAKUBE_PAYLOAD p;
    if (df_terrakube_payload_read((const char *)data, size, &p, &err) < 0) {
        if (!df_starts_with(err.reason, "Payload") || !err.message[0])
            abort();
        if (p.step && (!p.organization || !p.job))
            abort();
        return 0;
    }
    must_be_whole(&p);
    must_decode(data, size);
    return 0;
}
