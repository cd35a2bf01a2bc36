/*
 * One watch of Applications over common/kube's cache; changes wake the main thread through a
 * descriptor, so that it can wait for them and for the end of the action at once.
 */
#include "runner/platform/applications.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kube/cache.h"
#include "runner/platform/application.h"
#include "runner/platform/lists.h"

#define FIRST_LIST_MS 60000

struct df_applications {
    struct df_platform *platform;
    struct df_kube_cache *cache;
    int changes; /* an eventfd */
};

static void changed(void *arg, const struct df_kube_change *change)
{
    struct df_applications *a = arg;
    const uint64_t one = 1;
    (void)change;
    (void)!write(a->changes, &one, sizeof one); /* it is full only if it wakes already */
}

static void failed(void *arg, const struct df_err *err)
{
    (void)arg;
    df_warn("Applications are not watched now: %s", err->message);
}

/* managedFields stays: it says which fields are ours. */
static cJSON *keep(void *arg, const cJSON *object)
{
    (void)arg;
    return cJSON_Duplicate(object, true);
}

static int start_cache(struct df_applications *a, struct df_err *err)
{
    static const char *const without[] = {".items.status.resources", ".items.status.history",
                                          ".items.status.operationState.syncResult.resources",
                                          ".items.status.sourceHydrator", NULL};
    const struct df_kube_cache_options options = {
        .resource = &df_applications,
        .name_space = a->platform->in->argocd_namespace,
        .keep = keep,
        .changed = changed,
        .failed = failed,
        .arg = a,
        .watch = {.without = without, .page = 50}, /* each is a tree while it is read */
    };
    if (df_kube_cache_start(a->platform->kube, &options, &a->cache, err) < 0)
        return -1;
    return df_kube_cache_wait(a->cache, FIRST_LIST_MS, df_stop_flag(a->platform->stop), err);
}

int df_applications_check_tier(struct df_platform *p, struct df_err *err)
{
    const struct df_platform_input *in = p->in;
    const struct df_kube_at at = {.resource = &df_applications,
                                  .name_space = in->argocd_namespace,
                                  .metadata_only = true,
                                  .stop = df_stop_flag(p->stop)};
    DF_FREE char *labels =
        df_strf(DF_LABEL_ENVIRONMENT "=%s," DF_LABEL_TIER "," DF_LABEL_TIER "!=%s", in->name,
                in->environment);
    DF_JSON cJSON *others = NULL;
    struct df_err why = {0};
    if (df_check_alloc(labels, err) < 0)
        return -1;
    if (df_list_objects(p, &at, labels, &others, &why) < 0)
        return df_kind_is_absent(&why) ? 0 : df_err_pass(err, &why);
    if (!others->child)
        return 0;
    return df_fail_reason(
        err, DF_ERR_USER, "InvalidInput",
        "ENVIRONMENT: is %s, but %s was deployed to this cluster as %s: check kubeconfig and "
        "environment.yaml; if it shall be %s from now on, give its Applications in %s the "
        "label " DF_LABEL_TIER "=%s",
        in->environment, in->name, df_kube_label(others->child, DF_LABEL_TIER), in->environment,
        in->argocd_namespace, in->environment);
}

int df_applications_start(struct df_platform *p, struct df_applications **ret, struct df_err *err)
{
    const struct df_kind *kind;
    if (df_kinds_find(&p->objects.kinds, p->kube, "argoproj.io/v1alpha1", "Application", &kind,
                      err) < 0)
        return -1;
    struct df_applications *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    *a = (struct df_applications){.platform = p, .changes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (a->changes < 0 || start_cache(a, err) < 0) {
        if (a->changes < 0)
            (void)df_fail_errno(err, errno, "eventfd");
        df_applications_stop(a);
        return -1;
    }
    *ret = a;
    return 0;
}

void df_applications_stop(struct df_applications *a)
{
    if (!a)
        return;
    df_kube_cache_stop(a->cache);
    if (a->changes >= 0)
        (void)close(a->changes);
    free(a);
}

int df_applications_find(struct df_applications *a, const char *name, const cJSON **ret,
                         struct df_err *err)
{
    return df_kube_cache_find(a->cache, a->platform->in->argocd_namespace, name, ret, err);
}

struct df_kube_at df_applications_at(const struct df_platform *p, const char *name)
{
    return (struct df_kube_at){.resource = &df_applications,
                               .name_space = p->in->argocd_namespace,
                               .name = name,
                               .stop = df_stop_flag(p->stop)};
}

/* Takes the answer of a write over, which ends. */
static int end_write(struct df_applications *a, struct df_kube_write *w, cJSON *answer, int failed,
                     struct df_err *err)
{
    if (failed == 0 && answer)
        failed = df_kube_cache_note_own(a->cache, answer, true, err);
    df_kube_cache_end(a->cache, w);
    return failed;
}

int df_applications_patch(struct df_applications *a, const char *name, const cJSON *patch,
                          struct df_err *err)
{
    const struct df_kube_at at = df_applications_at(a->platform, name);
    const struct df_kube_patch merge = {
        .type = DF_KUBE_PATCH_MERGE, .body = patch, .manager = DF_PLATFORM_MANAGER};
    struct df_kube_write w;
    cJSON *answer = NULL;
    df_kube_cache_begin(a->cache, &w, at.name_space, at.name);
    int failed = df_object_patch(&a->platform->objects, &at, &merge, &answer, err);
    return end_write(a, &w, answer, failed, err);
}

int df_applications_apply(struct df_applications *a, const cJSON *live, const cJSON *wanted,
                          enum df_applied *ret, struct df_err *err)
{
    const struct df_kube_at at = df_applications_at(a->platform, df_kube_name(wanted));
    struct df_kube_write w;
    cJSON *answer = NULL;
    df_kube_cache_begin(a->cache, &w, at.name_space, at.name);
    int failed = df_object_apply_over(&a->platform->objects, &at, live, wanted, ret, &answer, err);
    return end_write(a, &w, answer, failed, err);
}

void df_applications_wait(struct df_applications *a, int64_t until_ms)
{
    struct pollfd fds[] = {{.fd = a->changes, .events = POLLIN},
                           {.fd = df_stop_fd(a->platform->stop), .events = POLLIN}};
    int64_t ms = until_ms - df_mono_ms();
    uint64_t count;
    if (ms > 0)
        (void)poll(fds, DF_ARRAY_SIZE(fds), ms > 60000 ? 60000 : (int)ms);
    (void)!read(a->changes, &count, sizeof count);
}
