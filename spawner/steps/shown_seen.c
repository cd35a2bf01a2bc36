#include "spawner/steps/shown_seen.h"

/* Each step has one place, which it may share with others. */
static struct df_shown_seen_place *place_of(struct df_shown_seen *s, const char *step_uid)
{
    return &s->places[df_hash_str(DF_HASH_BEGIN, step_uid) % DF_LIMIT_SHOWN_SEEN];
}

void df_shown_seen_keep(struct df_shown_seen *s, const char *step_uid, const cJSON *seen)
{
    char *text = df_json_print_nul(seen);
    if (text && strlen(text) > DF_LIMIT_SHOWN_SEEN_BYTES)
        df_str_wipe(&text);
    (void)pthread_mutex_lock(&s->lock);
    struct df_shown_seen_place *p = place_of(s, step_uid);
    char *former = p->text;
    p->text = text;
    (void)snprintf(p->step_uid, sizeof(p->step_uid), "%s", step_uid);
    (void)pthread_mutex_unlock(&s->lock);
    df_str_wipe(&former);
}

cJSON *df_shown_seen_take(struct df_shown_seen *s, const char *step_uid)
{
    cJSON *seen = NULL;
    char *text = NULL;
    (void)pthread_mutex_lock(&s->lock);
    struct df_shown_seen_place *p = place_of(s, step_uid);
    if (df_streq(p->step_uid, step_uid))
        text = DF_TAKE(p->text);
    (void)pthread_mutex_unlock(&s->lock);
    if (text && df_json_parse_nul(text, strlen(text), &seen, NULL) < 0)
        seen = NULL;
    df_str_wipe(&text);
    return seen;
}

void df_shown_seen_free(struct df_shown_seen *s)
{
    for (size_t i = 0; i < DF_LIMIT_SHOWN_SEEN; i++)
        df_str_wipe(&s->places[i].text);
}
