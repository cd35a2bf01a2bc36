#include "runner/terrakube/flow.h"

#include "runner/terrakube/source.h"

void df_terrakube_flow_free(struct df_terrakube *t)
{
    df_terrakube_watch_free(t->watch);
    df_terrakube_job_free(&t->job);
    df_terrakube_scripts_free(&t->scripts);
    df_str_wipe(&t->output_json);
    free(t->plan_place);
    free(t->known_hosts);
    t->output_json = t->plan_place = t->known_hosts = NULL;
}

bool df_terrakube_is_plan(const struct df_terrakube_payload *p)
{
    return p->type == DF_TERRAKUBE_PLAN || p->type == DF_TERRAKUBE_PLAN_DESTROY;
}

bool df_terrakube_has_queue(const struct df_terrakube_payload *p)
{
    return !cJSON_HasObjectItem(p->document, "agentUrl");
}

bool df_terrakube_is_refusal(const struct df_terrakube *t)
{
    return t->job.status == DF_TERRAKUBE_REJECTED_STATUS && !t->refused &&
           t->payload->type == DF_TERRAKUBE_REJECTED;
}

bool df_terrakube_is_remote_content(const struct df_terrakube_payload *p)
{
    return df_streq(p->branch, DF_TERRAKUBE_REMOTE_CONTENT);
}
