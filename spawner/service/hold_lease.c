#include "spawner/service/hold_lease.h"

#include <poll.h>
#include <signal.h>

#include "common/base/log.h"

enum { PAUSE_MS = 100 };

struct df_lease_hold {
    struct df_lease *lease;
    struct df_kube *fenced;
    char *identity;
    const char *what;
};

static void on_changed(void *arg, bool held)
{
    const struct df_lease_hold *h = arg;
    if (held)
        return;
    df_error("%s: the Lease is lost: this process ends, so that the next holder works alone",
             h->what);
    _exit(EXIT_FAILURE);
}

static void on_failed(void *arg, const struct df_err *err)
{
    (void)arg;
    df_warn("the lease: %s", err->message);
}

static bool may_write(void *arg)
{
    const struct df_lease_hold *h = arg;
    return df_lease_is_held(h->lease);
}

/* The service takes signals when it serves; until then they are blocked. */
static bool must_end(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* Who holds it is told once. */
static int wait_for_lease(const struct df_lease_hold *h, struct df_err *err)
{
    struct df_lease_view view = {0};
    for (bool told = false; !df_lease_is_held(h->lease); (void)poll(NULL, 0, PAUSE_MS)) {
        if (must_end())
            return df_fail_reason(err, DF_ERR_RETRY, "NotLeader",
                                  "%s: was told to end while another replica leads; nothing was "
                                  "done",
                                  h->what);
        df_lease_look(h->lease, &view);
        if (*view.holder && !told)
            df_info("%s: waits until no other replica leads; %s does", h->what, view.holder);
        told = told || *view.holder;
    }
    return 0;
}

static int enter(struct df_lease_hold *h, const struct df_lease_hold_options *o, struct df_err *err)
{
    const struct df_lease_options lease = {.name_space = o->name_space,
                                           .name = o->config->election_lease,
                                           .identity = h->identity,
                                           .pod = getenv("POD_UID"),
                                           .duration_s = o->config->election_lease_s,
                                           .changed = on_changed,
                                           .failed = on_failed,
                                           .arg = h};
    return df_lease_new(o->own, &lease, &h->lease, err) < 0 ? -1 : df_lease_start(h->lease, err);
}

int df_lease_hold_begin(const struct df_lease_hold_options *o, struct df_lease_hold **ret,
                        struct df_err *err)
{
    struct df_lease_hold *h = calloc(1, sizeof(*h));
    if (!h)
        return df_fail_oom(err);
    h->what = o->what;
    if (df_lease_identity(&h->identity, err) < 0 || enter(h, o, err) < 0 ||
        wait_for_lease(h, err) < 0) {
        df_lease_hold_end(h);
        return -1;
    }
    h->fenced = o->fenced;
    df_kube_fence(h->fenced, may_write, h);
    *ret = h;
    return 0;
}

int df_lease_hold_check(const struct df_lease_hold *h, struct df_err *err)
{
    return df_lease_is_held(h->lease)
               ? 0
               : df_fail_reason(err, DF_ERR_RETRY, "NotLeader", "%s: the Lease is lost", h->what);
}

void df_lease_hold_end(struct df_lease_hold *h)
{
    if (!h)
        return;
    if (h->fenced)
        df_kube_fence(h->fenced, NULL, NULL);
    if (h->lease)
        df_lease_stop(h->lease);
    df_lease_free(h->lease);
    free(h->identity);
    free(h);
}
