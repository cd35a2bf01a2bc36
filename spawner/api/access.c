/* access.c - who may do what with an executor, and what somebody may do with which. */
#include "spawner/model/access.h"

#include "spawner/api/handlers.h"
#include "spawner/http/server.h"

/* What the rows do not say. That of the creator is the last one. */
static int add_notes(const struct df_config *config, const cJSON *executor, const cJSON *rows,
                     const char *of, cJSON *notes, struct df_err *err)
{
    const cJSON *last = cJSON_GetArrayItem(rows, cJSON_GetArraySize(rows) - 1);
    const struct {
        bool said;
        const char *text;
    } known[] = {{df_json_at(last, "to.creator"),
                  "auth.creator counts for who made an executor only while they have all verbs of "
                  "write on it in another way."},
                 {df_json_at(executor, "spec.approvers"),
                  "Of all with the verb approve only those of spec.approvers approve its plans."},
                 {of, "A person has what their groups have as well: ask for each group."},
                 {config->in_cluster, "In a cluster the API server decides who writes custom "
                                      "resources: kubectl asks no grants."}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (known[i].said && df_json_append_str(notes, known[i].text, err) < 0)
            return -1;
    return 0;
}

static int respond(const struct df_request *req, struct df_response *res, const cJSON *executor,
                   const char *of, struct df_err *err)
{
    const struct df_config *config = req->s->config;
    DF_JSON cJSON *tokens = cJSON_CreateArray(), *doc = cJSON_CreateObject();
    cJSON *rows = df_json_array_at(doc, "items"), *notes = df_json_array_at(doc, "notes");
    const struct df_access_rules rules = {.grants = config->grants,
                                          .accounts = config->accounts,
                                          .tokens = tokens,
                                          .tokens_by = config->token_file ? "auth.tokenFile"
                                                                          : "auth.loopback",
                                          .creator = config->creator};
    if (!tokens || !rows || !notes)
        return df_fail_oom(err);
    if (df_tokens_list(req->api->tokens, tokens, err) < 0 ||
        df_access_rows(&rules, executor, of, rows, err) < 0 ||
        add_notes(config, executor, rows, of, notes, err) < 0)
        return -1;
    return df_respond_json(res, 200, doc, err);
}

/* Of the executor of the path, or of all. */
int df_get_access(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const char *of = df_request_query(req, "of");
    bool is_of_one = req->route->access == DF_ACCESS_EXECUTOR;
    DF_JSON cJSON *executor = NULL;
    if ((of && !*of) || (!of && !is_of_one))
        return df_fail(
            err, DF_ERR_USER,
            "?of=NAME: must be a user, group, service account (namespace/name) or token, "
            "as auth.* has it");
    if (is_of_one &&
        df_store_get(req->s->store, DF_KIND_EXECUTOR, req->params[0], &executor, err) < 0)
        return -1;
    return respond(req, res, executor, of, err);
}
