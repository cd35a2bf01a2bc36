#include "spawner/terrakube/upstream.h"

#include "common/base/log.h"
#include "common/base/periodic.h"
#include "spawner/http/api.h"
#include "spawner/http/forward.h"
#include "spawner/model/tables.h"
#include "spawner/terrakube/terrakube.h"

#define LOOK_US INT64_C(1000000)

/* ---- its data ---- */

static void free_service(struct df_terrakube_service *t)
{
    df_terrakube_settings_free(&t->settings);
    df_strs_wipe(&t->environment);
    (void)pthread_mutex_destroy(&t->room);
    free(t);
}

static int copy_settings(const struct df_strs *from, struct df_strs *to, struct df_err *err)
{
    for (size_t i = 0; i < from->len; i++) {
        DF_FREE char *name = strndup(from->items[i], strcspn(from->items[i], "="));
        if (!name)
            return df_fail_oom(err);
        if (df_terrakube_is_setting(name))
            (void)df_strs_add(to, from->items[i]);
    }
    return df_strs_check(to, err);
}

/* Reads the environment of this process. USER as in settings.h. */
static int open_service(struct df_spawner *s, struct df_err *err)
{
    DF_SECRET_STRS struct df_strs all = {0};
    struct df_terrakube_service *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&t->room, NULL);
    t->ring_us = 1; /* what was turned away before the start, was so by another process */
    for (char *const *e = environ; *e; e++)
        (void)df_strs_add(&all, *e);
    if (df_strs_check(&all, err) < 0 || copy_settings(&all, &t->environment, err) < 0 ||
        df_terrakube_settings_read(&all, &t->settings, err) < 0) {
        free_service(t);
        return df_err_wrap(err, "terrakube.listen");
    }
    s->upstream_data = t;
    return 0;
}

static void close_service(struct df_spawner *s)
{
    free_service(DF_TAKE(s->upstream_data));
}

/* ---- at work ---- */

/* A df_periodic_work. */
static int64_t look(void *arg)
{
    struct df_spawner *s = arg;
    struct df_err why = {0};
    if (df_leads(s) && df_terrakube_ring_again(s, &why) < 0)
        df_warn("Terrakube's queue is not woken and looks again by itself: %s", why.message);
    return LOOK_US;
}

static int start(struct df_spawner *s, struct df_err *err)
{
    struct df_terrakube_service *t = df_terrakube_of(s);
    if (df_api_start_side(s, &df_terrakube_routes, "terrakube.listen", s->config->upstream_listen,
                          &t->address, err) < 0)
        return -1;
    return df_periodic_start(look, s, 0, &t->bell, err) < 0 ? df_err_wrap(err, "the bell's thread")
                                                            : 0;
}

static void stop(struct df_spawner *s)
{
    struct df_terrakube_service *t = df_terrakube_of(s);
    df_api_stop(DF_TAKE(t->address));
    df_periodic_stop(DF_TAKE(t->bell));
}

const struct df_upstream df_terrakube_upstream = {.name = "Terrakube",
                                                  .spec = df_terrakube_rows,
                                                  .hooks = &df_terrakube_hooks,
                                                  .step_part = df_terrakube_part,
                                                  .open = open_service,
                                                  .start = start,
                                                  .stop = stop,
                                                  .close = close_service,
                                                  .check = df_check_terrakube};
