#include "spawner/requests/users.h"

#include "spawner/model/labels.h"
#include "spawner/model/secret_use.h"

/* More than a message can hold are counted, and not named. */
enum { USERS_NAMED = 5 };

void df_users_free(struct df_users *u)
{
    df_buf_free(&u->text);
}

void df_users_add(struct df_users *u, const char *kind, const char *name)
{
    if (u->count++ < USERS_NAMED)
        (void)df_buf_addf(&u->text, "%s%s %s", u->text.len ? ", " : "", kind, name);
}

static bool uses(const struct df_users *u, const cJSON *spec)
{
    const cJSON *name;
    if (u->integration && df_integration_is_used(spec, u->integration))
        return true;
    cJSON_ArrayForEach (name, u->through) {
        if (df_integration_is_used(spec, cJSON_GetStringValue(name)))
            return true;
    }
    return u->secret && df_secret_is_used(spec, u->secret, u->key);
}

/* One walk through the documents of a kind. */
struct walk {
    struct df_users *users;
    bool is_run;
};

static int check_user(const cJSON *doc, void *arg, struct df_err *err)
{
    const struct walk *w = arg;
    struct df_users *u = w->users;
    (void)err;
    const char *name = df_json_str(doc, "metadata.name");
    const char *executor = w->is_run ? df_json_str(doc, "spec.executorRef.name") : name;
    if (uses(u, df_json_at(doc, w->is_run ? "spec.snapshot" : "spec")) &&
        !(u->use && df_secret_use_covers(u->use, executor)))
        df_users_add(u, w->is_run ? "run" : "executor", name);
    return 0;
}

int df_users_find(struct df_spawner *s, struct df_users *u, struct df_err *err)
{
    struct walk executors = {u, false}, runs = {u, true};
    if (df_store_each(s->store, DF_KIND_EXECUTOR, NULL, check_user, &executors, err) < 0)
        return -1;
    return df_store_each(s->store, DF_KIND_RUN, DF_LABEL_UNFINISHED "=true", check_user, &runs,
                         err);
}

int df_users_refuse(const struct df_users *u, const char *reason, const char *way,
                    struct df_err *err)
{
    char more[32] = "";
    if (!u->count)
        return 0;
    if (u->count > USERS_NAMED)
        (void)snprintf(more, sizeof(more), " and %zu more", u->count - USERS_NAMED);
    return df_fail_reason(err, DF_ERR_CONFLICT, reason, "%s \"%s\" is in use by %s%s: %s",
                          u->secret ? "secret" : "integration",
                          u->secret ? u->secret : u->integration, df_buf_str(&u->text), more, way);
}
