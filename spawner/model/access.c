/*
 * access.c - first the rows of who may what, then whether anybody is admin, then what a change of
 * labels does.
 */
#include "spawner/model/access.h"

#include "spawner/model/stamp.h"

#define SAID_NAMES 20 /* of a grant's names in a sentence */

static const struct {
    const char *list, *what; /* in a grant, and for people */
} named_by[] = {{"users", "user"}, {"groups", "group"}, {"serviceAccounts", "service account"}};

static const cJSON *names_of(const cJSON *grant, size_t i)
{
    return df_json_at(cJSON_GetObjectItemCaseSensitive(grant, "to"), named_by[i].list);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct row {
    const char *by, *grant, *role;
    cJSON *to, *on; /* owned; NULL: out of memory */
    df_verbs verbs;
};

static int add_row(cJSON *rows, const struct row *row, struct df_err *err)
{
    return df_json_append(rows,
                          df_json_object(DF_STR("by", row->by), DF_STR("grant", row->grant),
                                         DF_STR("role", row->role), DF_ITEM("to", row->to),
                                         DF_ITEM("on", row->on),
                                         DF_ITEM("verbs", df_verbs_list(row->verbs))),
                          err);
}

/* {key: [name]} */
static cJSON *list_of(const char *key, const char *name)
{
    const char *const names[] = {name};
    return df_json_object(DF_ITEM(key, cJSON_CreateStringArray(names, 1)));
}

static cJSON *everything(void)
{
    return df_json_object(DF_BOOL("all", true));
}

/* Whom the grant names; of: of these only that one. */
static int fill_to(const cJSON *grant, const char *of, cJSON *to, struct df_err *err)
{
    const cJSON *name;
    for (size_t i = 0; i < DF_ARRAY_SIZE(named_by); i++) {
        cJSON_ArrayForEach (name, names_of(grant, i)) {
            if ((!of || df_streq(of, name->valuestring)) &&
                df_json_append_str(df_json_array_at(to, named_by[i].list), name->valuestring, err) <
                    0)
                return -1;
        }
    }
    return 0;
}

/* Of a list of names only the executor's own: the others are perhaps hidden from who reads this. */
static cJSON *on_of(const cJSON *grant, const char *executor)
{
    return executor && df_json_at(grant, "on.names")
               ? list_of("names", executor)
               : cJSON_Duplicate(df_json_at(grant, "on"), true);
}

static int add_grant(const cJSON *grant, const cJSON *executor, const char *of, cJSON *rows,
                     struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *to = cJSON_CreateObject();
    if (executor && !df_grant_is_on(grant, name, executor))
        return 0;
    if (df_check_alloc(to, err) < 0 || fill_to(grant, of, to, err) < 0)
        return -1;
    if (!to->child)
        return 0;
    return add_row(rows,
                   &(struct row){.by = "auth.grants",
                                 .grant = grant->string,
                                 .to = DF_TAKE(to),
                                 .on = on_of(grant, name),
                                 .verbs = df_grant_verbs(grant)},
                   err);
}

static int add_role(const char *by, const char *key, const char *name, const char *role,
                    const char *of, cJSON *rows, struct df_err *err)
{
    if (of && !df_streq(of, name))
        return 0;
    return add_row(rows,
                   &(struct row){.by = by,
                                 .role = role,
                                 .to = list_of(key, name),
                                 .on = everything(),
                                 .verbs = df_preset_verbs(role)},
                   err);
}

static int add_roles(const struct df_access_rules *r, const char *of, cJSON *rows,
                     struct df_err *err)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, r->tokens) {
        if (add_role(r->tokens_by, "tokens", df_json_text(one, "name"), df_json_str(one, "role"),
                     of, rows, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (one, r->accounts) {
        if (add_role("auth.serviceAccounts", "serviceAccounts", one->string, one->valuestring, of,
                     rows, err) < 0)
            return -1;
    }
    return 0;
}

/* Can who has these rows make executors as `of`? Groups make none. */
static bool is_somebody(const cJSON *rows)
{
    const cJSON *row, *list;
    cJSON_ArrayForEach (row, rows) {
        cJSON_ArrayForEach (list, cJSON_GetObjectItemCaseSensitive(row, "to")) {
            if (!df_streq(list->string, "groups"))
                return true;
        }
    }
    return false;
}

static int add_creator(const struct df_access_rules *r, const cJSON *executor, const char *of,
                       cJSON *rows, struct df_err *err)
{
    const char *name = executor ? df_json_str(executor, "status.creator") : of;
    const char *own = df_json_str(executor, "metadata.name");
    bool said =
        df_stamp_is_name(name) && (!of || df_streq(name, of)) && (executor || is_somebody(rows));
    if (!said)
        return 0;
    return add_row(
        rows,
        &(struct row){.by = "auth.creator",
                      .to = df_json_object(DF_STR("creator", name)),
                      .on = own ? list_of("names", own) : df_json_object(DF_STR("creator", name)),
                      .verbs = df_preset_verbs(r->creator)},
        err);
}

int df_access_rows(const struct df_access_rules *r, const cJSON *executor, const char *of,
                   cJSON *ret, struct df_err *err)
{
    const cJSON *grant;
    cJSON_ArrayForEach (grant, r->grants) {
        if (add_grant(grant, executor, of, ret, err) < 0)
            return -1;
    }
    return add_roles(r, of, ret, err) < 0 ? -1 : add_creator(r, executor, of, ret, err);
}

/* ---- the last admin -------------------------------------------------------------------------- */

bool df_access_has_admin(const struct df_access_rules *r)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, r->grants) {
        if (df_json_at(one, "on.all") && df_verbs_have(df_grant_verbs(one), DF_VERBS_ADMIN))
            return true;
    }
    cJSON_ArrayForEach (one, r->tokens) {
        if (df_streq(df_json_str(one, "role"), df_role_name(DF_ROLE_ADMIN)))
            return true;
    }
    return df_json_has_string(r->accounts, df_role_name(DF_ROLE_ADMIN));
}

/* ---- a change of labels ---------------------------------------------------------------------- */

static const char *label_of(const cJSON *doc, const char *name)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(df_json_at(doc, "metadata.labels"), name));
}

/* Adds the labels of a grant that are other ones now. */
static int add_labels(const cJSON *wanted, const cJSON *old, const cJSON *doc, cJSON *labels,
                      struct df_err *err)
{
    const cJSON *one;
    cJSON_ArrayForEach (one, wanted) {
        bool same = df_streq(label_of(old, one->string), label_of(doc, one->string));
        if (!same && !df_json_has_string(labels, one->string) &&
            df_json_append_str(labels, one->string, err) < 0)
            return -1;
    }
    return 0;
}

/* "group net-team, user i#ann and 3 more" */
static void say_whom(const cJSON *grant, struct df_buf *out)
{
    size_t count = 0;
    const cJSON *name;
    for (size_t i = 0; i < DF_ARRAY_SIZE(named_by); i++) {
        cJSON_ArrayForEach (name, names_of(grant, i)) {
            if (count++ < SAID_NAMES)
                (void)df_buf_addf(out, "%s%s %s", count > 1 ? ", " : "", named_by[i].what,
                                  name->valuestring);
        }
    }
    if (count > SAID_NAMES)
        (void)df_buf_addf(out, " and %zu more", count - SAID_NAMES);
}

static int say_change(const cJSON *grant, bool comes, const char *executor, cJSON *said,
                      struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    char verbs[DF_VERBS_TEXT];
    (void)df_buf_addf(&out, "metadata.labels: the grant %s applies to %s %s %s ", grant->string,
                      executor, comes ? "now and gives" : "no more and takes",
                      df_verbs_say(df_grant_verbs(grant), verbs));
    (void)df_buf_adds(&out, comes ? "to " : "from ");
    say_whom(grant, &out);
    return df_buf_check(&out, err) < 0 ? -1 : df_json_append_str(said, df_buf_str(&out), err);
}

int df_access_changes(const cJSON *grants, const cJSON *old, const cJSON *doc, cJSON *labels,
                      cJSON *said, struct df_err *err)
{
    const char *name = df_json_text(old, "metadata.name");
    const cJSON *grant;
    cJSON_ArrayForEach (grant, grants) {
        const cJSON *wanted = df_json_at(grant, "on.matchLabels");
        bool was = df_grant_is_on(grant, name, old), is = df_grant_is_on(grant, name, doc);
        if (!wanted || was == is)
            continue;
        if ((labels && add_labels(wanted, old, doc, labels, err) < 0) ||
            (said && say_change(grant, is, name, said, err) < 0))
            return -1;
    }
    return 0;
}
