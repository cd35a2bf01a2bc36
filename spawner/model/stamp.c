#include "spawner/model/stamp.h"

#include <ctype.h>

#include "common/base/util.h"

#define SERVICE_ACCOUNT "system:serviceaccount:"

struct df_stamp df_stamp_nobody(void)
{
    return (struct df_stamp){.role = DF_ROLE_ADMIN, .name = DF_STAMP_NOBODY};
}

/* A control character could forge a line of a log or of a table. */
static bool is_printable(const char *name)
{
    for (; *name; name++)
        if (iscntrl((unsigned char)*name))
            return false;
    return true;
}

/* "system:serviceaccount:ns:name" as "ns/name". */
static void name_account(struct df_stamp *s)
{
    size_t n = strlen(SERVICE_ACCOUNT);
    char *colon = df_starts_with(s->name, SERVICE_ACCOUNT) ? strchr(s->name + n, ':') : NULL;
    if (!colon)
        return;
    *colon = '/';
    memmove(s->name, s->name + n, strlen(s->name + n) + 1);
}

/* The role at the beginning of the text; *ret_name: the text behind it. */
static enum df_role split(const char *text, const char **ret_name)
{
    static const enum df_role roles[] = {DF_ROLE_WRITE, DF_ROLE_ADMIN};
    for (size_t i = 0; i < DF_ARRAY_SIZE(roles); i++) {
        const char *word = df_role_name(roles[i]);
        size_t n = strlen(word);
        if (df_starts_with(text, word) && text[n] == ' ') {
            *ret_name = text + n + 1;
            return roles[i];
        }
    }
    return DF_ROLE_NONE;
}

struct df_stamp df_stamp_read(const cJSON *doc, const char *annotation, bool is_believed)
{
    const cJSON *all = df_json_at(doc, "metadata.annotations");
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, annotation));
    const char *name = NULL;
    struct df_stamp s = {.is_named = true};
    if (!is_believed || !text)
        return df_stamp_nobody();
    s.role = split(text, &name);
    if (s.role == DF_ROLE_NONE || !*name || strlen(name) > DF_LIMIT_STAMP || !is_printable(name) ||
        !df_stamp_is_name(name))
        return df_stamp_nobody();
    (void)snprintf(s.name, sizeof(s.name), "%s", name);
    name_account(&s);
    return s;
}

void df_stamp_drop(cJSON *doc, const char *annotation)
{
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(doc, "metadata");
    cJSON *all = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");
    cJSON_DeleteItemFromObjectCaseSensitive(all, annotation);
}

bool df_stamp_is_name(const char *name)
{
    return name && !df_streq(name, DF_STAMP_NOBODY);
}
