#include "spawner/http/rights.h"

/* The executor of a Run or TaskAction; NULL: there is none any more. One that was made anew under
 * the name is another. */
static int find_executor(const struct df_request *req, const cJSON *doc, const cJSON **ret,
                         struct df_err *err)
{
    const char *uid = df_json_str(doc, "spec.executorRef.uid");
    *ret = NULL;
    if (df_store_look_for(req->s->store, DF_KIND_EXECUTOR,
                          df_json_str(doc, "spec.executorRef.name"), ret, err) < 0)
        return -1;
    if (*ret && uid && !df_streq(uid, df_json_str(*ret, "metadata.uid")))
        df_shared_drop(DF_TAKE(*ret));
    return 0;
}

/* *ret_name: of the executor, or NULL; borrowed from doc. */
static int verbs_on(const struct df_request *req, enum df_kind kind, const cJSON *doc,
                    const char **ret_name, df_verbs *ret, struct df_err *err)
{
    const struct df_caller *c = &req->caller;
    const char *own = df_json_str(doc, "metadata.name");
    const char *name = kind == DF_KIND_EXECUTOR ? own : df_json_str(doc, "spec.executorRef.name");
    DF_SHARED const cJSON *executor = NULL;
    *ret = c->granted.all;
    *ret_name = name;
    if (!name)
        return 0;
    if (kind != DF_KIND_EXECUTOR && find_executor(req, doc, &executor, err) < 0)
        return -1;
    *ret = df_granted_on(&c->granted, c->name, name, kind == DF_KIND_EXECUTOR ? doc : executor);
    return 0;
}

/* ---- lists ---- */

bool df_rights_view_all(const struct df_request *req)
{
    return df_verbs_have(req->caller.granted.all, DF_VERB_VIEW);
}

int df_rights_views(const struct df_request *req, enum df_kind kind, const cJSON *doc, bool *ret,
                    struct df_err *err)
{
    df_verbs verbs = 0;
    const char *name = NULL;
    *ret = df_rights_view_all(req);
    if (*ret)
        return 0;
    if (verbs_on(req, kind, doc, &name, &verbs, err) < 0)
        return -1;
    *ret = df_verbs_have(verbs, DF_VERB_VIEW);
    return 0;
}

/* ---- refusals ---- */

int df_rights_refuse(const struct df_request *req, struct df_err *err)
{
    static const struct {
        const char *reason, *message;
    } plain[] = {
        {"StorageInUse", "spec.storage: another executor has its state there already; give this "
                         "one another path"},
        {"SecretNotAllowed", "a secret that the executor names is not for it, or one of somebody "
                             "else is for an executor of this name: its owner or an admin can "
                             "change that"},
        {"IntegrationNotAllowed",
         "an integration that the executor names is not for it, nor its secret, or one of somebody "
         "else is for an executor of this name: its owner or an admin can change that"}};
    for (size_t i = 0; !df_rights_view_all(req) && i < DF_ARRAY_SIZE(plain); i++)
        if (df_streq(err->reason, plain[i].reason))
            return df_fail_reason(err, err->cls, plain[i].reason, "%s", plain[i].message);
    return -1;
}

/* ---- one executor ---- */

/* Does no executor give more than all of them do? So it is with tokens of the token file. */
static bool is_same_everywhere(const struct df_granted *g)
{
    bool may_be_creator = df_verbs_have(g->all, DF_VERBS_WRITE);
    return !g->some_count && !g->ceiling && (!may_be_creator || df_verbs_have(g->all, g->creator));
}

static int check_on(struct df_request *req, const char *name, df_verbs verbs, struct df_err *err)
{
    const struct df_route *route = req->route;
    if (!df_verbs_have(verbs, DF_VERB_VIEW))
        return df_store_fail_absent(route->of, req->params[0], err);
    if (df_verbs_require(verbs, route->verbs, "this request", name, err) < 0)
        return -1;
    req->verbs = verbs;
    return 0;
}

int df_rights_check(struct df_request *req, struct df_err *err)
{
    const struct df_route *route = req->route;
    const struct df_granted *g = &req->caller.granted;
    DF_SHARED const cJSON *doc = NULL;
    const char *name = route->of == DF_KIND_EXECUTOR ? req->params[0] : NULL;
    df_verbs verbs = g->all;
    if (!route->verbs)
        return 0;
    if (is_same_everywhere(g))
        return check_on(req, name, verbs, err);
    if (df_store_look_for(req->s->store, route->of, req->params[0], &doc, err) < 0)
        return -1;
    if (!doc && name)
        verbs = df_granted_on(g, req->caller.name, name, NULL);
    if (doc && verbs_on(req, route->of, doc, &name, &verbs, err) < 0)
        return -1;
    return check_on(req, name, verbs, err);
}
