#include "runner/report/unsent.h"

void df_unsent_free(struct df_unsent *p)
{
    cJSON_Delete(p->body);
    *p = (struct df_unsent){0};
}

static void merge_member(cJSON *into, const cJSON *member)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(into, member->string);
    if (!cJSON_IsArray(member) || !cJSON_IsArray(old)) {
        (void)!df_json_set(into, member->string, cJSON_Duplicate(member, true), NULL);
        return;
    }
    const cJSON *item;
    cJSON_ArrayForEach (item, member)
        (void)!df_json_append(old, cJSON_Duplicate(item, true), NULL);
}

void df_unsent_add(struct df_unsent *p, const cJSON *body, bool hurries, int64_t now_ms)
{
    p->hurries |= hurries;
    if (!p->body) {
        p->body = cJSON_CreateObject();
        p->since_ms = now_ms;
    }
    const cJSON *member;
    cJSON_ArrayForEach (member, body)
        if (p->body)
            merge_member(p->body, member);
}

void df_unsent_put_back(struct df_unsent *p, struct df_unsent *failed)
{
    struct df_unsent later = *p;
    *p = *failed;
    *failed = (struct df_unsent){0};
    df_unsent_add(p, later.body, later.hurries, later.since_ms);
    df_unsent_free(&later);
}

int64_t df_unsent_due_ms(const struct df_unsent *p, int64_t last_ms)
{
    if (!p->body)
        return INT64_MAX;
    int64_t next_ms = last_ms + DF_PROGRESS_GAP_MS, lazy_ms = p->since_ms + DF_PROGRESS_LAZY_MS;
    return p->hurries || lazy_ms < next_ms ? next_ms : lazy_ms;
}
