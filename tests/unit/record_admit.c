/*
 * record_admit.c - writes down what the model's own tests show it, and what it says: a line of JSON
 * {kind, document, accepted, message} each, into the file that DAYFLY_TEST_DOCUMENTS names.
 *
 * Linked in between (--wrap) for tests/integration/test_crds.py, which shows the API server the
 * very same documents.
 */
#include "spawner/model/model.h"
#include "spawner/model/placement.h"

int __real_df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old, struct df_err *err);
int __wrap_df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old, struct df_err *err);
int __real_df_placement_check(cJSON *placement, const char *where, struct df_err *err);
int __wrap_df_placement_check(cJSON *placement, const char *where, struct df_err *err);

static void record(enum df_kind kind, const cJSON *doc, bool accepted, const struct df_err *why)
{
    const char *path = getenv("DAYFLY_TEST_DOCUMENTS");
    FILE *f = path ? fopen(path, "ae") : NULL;
    DF_JSON cJSON *line = cJSON_CreateObject();
    if (!f || df_json_add_str(line, "kind", df_kind_name(kind), NULL) < 0 ||
        df_json_add(line, "document", cJSON_Duplicate(doc, true), NULL) < 0 ||
        df_json_add_bool(line, "accepted", accepted, NULL) < 0 ||
        df_json_add_str(line, "message", accepted ? "" : why->message, NULL) < 0)
        DF_BUG("cannot record to %s", path ? path : "nothing");
    DF_FREE char *text = df_json_print(line);
    if (fprintf(f, "%s\n", text) < 0 || fclose(f) != 0)
        DF_BUG("cannot record to %s", path);
}

int __wrap_df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old, struct df_err *err)
{
    struct df_err why = {0};
    DF_JSON cJSON *before = cJSON_Duplicate(doc, true);
    int result = __real_df_model_admit(kind, doc, old, &why);
    if (!old && cJSON_IsObject(before))
        record(kind, before, result == 0, &why);
    if (result < 0 && err)
        *err = why;
    return result;
}

/* A placement alone: that of an executor. */
int __wrap_df_placement_check(cJSON *placement, const char *where, struct df_err *err)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"net\"},\"spec\":{\"source\":{\"url\":\"file:///src\"}}}";
    struct df_err why = {0};
    DF_JSON cJSON *doc = NULL;
    if (df_json_parse(text, strlen(text), &doc, NULL) < 0 ||
        df_json_add(df_json_object_at(doc, "spec"), "placement", cJSON_Duplicate(placement, true),
                    NULL) < 0)
        DF_BUG("no memory");
    int result = __real_df_placement_check(placement, where, &why);
    record(DF_KIND_EXECUTOR, doc, result == 0, &why);
    if (result < 0 && err)
        *err = why;
    return result;
}
