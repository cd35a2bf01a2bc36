/*
 * registry.c - the open engines by name, what is said of those that are not open, and what is done
 * with all.
 */
#include "spawner/engine/engine.h"

#include "common/base/limits.h"

struct df_engine *df_engine_find(const struct df_engine_registry *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (df_streq(r->engines[i]->kind->name, name))
            return r->engines[i];
    return NULL;
}

int df_engine_register(struct df_engine_registry *r, struct df_engine *e, struct df_err *err)
{
    if (df_engine_find(r, e->kind->name))
        return df_fail(err, DF_ERR_CONFLICT, "execution engine \"%s\" is already registered",
                       e->kind->name);
    if (r->count == DF_ARRAY_SIZE(r->engines))
        return df_fail(err, DF_ERR_LIMIT, "more than %zu execution engines", r->count);
    r->engines[r->count++] = e;
    return 0;
}

static void add_names(const struct df_engine_registry *r, const char *between, struct df_buf *to)
{
    for (size_t i = 0; i < r->count; i++)
        (void)df_buf_addf(to, "%s%s", i ? between : "", r->engines[i]->kind->name);
}

/* Appends the line of the configuration that opens this one, too. */
static void add_line(const struct df_engine_registry *r, const char *name, struct df_buf *to)
{
    (void)df_buf_adds(to, "write engines: [");
    add_names(r, ", ", to);
    (void)df_buf_addf(to, "%s%s] into the service's configuration (docs/configuration.md)",
                      r->count ? ", " : "", name);
}

/* The first sentence is a contract with other schedulers; what helps a person comes behind it. */
static int fail_unsupported(const struct df_engine_registry *r, const char *name,
                            struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_KIB), help = DF_BUF_INIT(DF_KIB);
    add_names(r, " ", &names);
    if (df_engine_kind_of(name)) {
        add_line(r, name, &help);
    } else {
        (void)df_buf_adds(&help, "dayfly has ");
        df_engine_names(&help, ", ");
    }
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "unsupported execution engine: \"%s\" (registered: [%s]); %s", name,
                          df_buf_str(&names), df_buf_str(&help));
}

int df_engine_get(const struct df_engine_registry *r, const char *name, struct df_engine **ret,
                  struct df_err *err)
{
    struct df_engine *e = df_engine_find(r, name);
    if (!e)
        return fail_unsupported(r, name, err);
    *ret = e;
    return 0;
}

const struct df_step_ops *df_engine_ops_of(const struct df_engine *e,
                                           const struct df_engine_step *step)
{
    if (step->workflow.spec)
        return e->ops->workflow ? &e->ops->workflow->step : NULL;
    return e->ops->runner ? &e->ops->runner->step : NULL;
}

int df_engine_get_for(const struct df_engine_registry *r, const char *name,
                      const struct df_engine_step *step, struct df_engine **ret, struct df_err *err)
{
    struct df_engine *e = df_engine_find(r, name);
    if (!e)
        return fail_unsupported(r, name, err);
    if (!df_engine_ops_of(e, step))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "the engine %s runs no %s", name,
                              step->workflow.spec ? "workflows" : "plans and applies");
    *ret = e;
    return 0;
}

/* ---- for people ---- */

static int add_words(cJSON *list, const struct df_engine_kind *kind, struct df_err *err)
{
    if (kind->takes_runs && df_json_append(list, cJSON_CreateString("runs"), err) < 0)
        return -1;
    return kind->takes_workflows ? df_json_append(list, cJSON_CreateString("workflows"), err) : 0;
}

static int add_engine(cJSON *list, const struct df_engine_kind *kind,
                      const struct df_engine_registry *r, struct df_err *err)
{
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_KIB);
    struct df_engine *e = df_engine_find(r, kind->name);
    struct df_err why = {0};
    add_line(r, kind->name, &line);
    if (!e)
        (void)df_fail(&why, DF_ERR_USER,
                      "the key engines of the service's configuration does not name it: %s",
                      df_buf_str(&line));
    bool is_there = e && (!e->ops->check || e->ops->check(e, &why) == 0);
    cJSON *one = df_json_object(DF_STR("name", kind->name), DF_ITEM("takes", cJSON_CreateArray()),
                                DF_BOOL("available", is_there),
                                DF_STR("message", is_there ? NULL : why.message));
    if (df_json_append(list, one, err) < 0)
        return -1;
    return add_words(df_json_array_at(one, "takes"), kind, err);
}

int df_engine_list(const struct df_engine_registry *r, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < DF_ENGINE_COUNT; i++) {
        const struct df_engine_kind *kind = &df_engine_kinds[i];
        if (add_engine(list, kind, r, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

int df_engine_registry_check(const struct df_engine_registry *r, struct df_err *err)
{
    return r->count ? 0 : df_fail(err, DF_ERR_RETRY, "no execution engines available");
}

/* ---- all of them ---- */

int df_engine_registry_watch(const struct df_engine_registry *r, struct df_err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        struct df_engine *e = r->engines[i];
        if (e->ops->watch && e->ops->watch(e, err) < 0)
            return -1;
    }
    return 0;
}

void df_engine_registry_close(struct df_engine_registry *r)
{
    while (r->count) {
        struct df_engine *e = r->engines[--r->count];
        e->ops->close(e);
    }
}
