/*
 * awx_client_world.h - a client of AWX's API and a server that answers it as the test says. Include
 * behind cmocka.h.
 */
#ifndef DF_TEST_AWX_CLIENT_WORLD_H
#define DF_TEST_AWX_CLIENT_WORLD_H

#include "common/http/http.h"
#include "spawner/engine/ansible/awx_client.h"
#include "tests/unit/answering_server.h"
#include "tests/unit/json_words.h"
#include "tests/unit/kube_server.h"

struct world {
    struct answering_server server;
    const char *tokens[3]; /* what is read in turn; the last one stays */
    int reads;
    char url[80];
    struct df_awx *awx;
};

static inline int give_token(void *arg, char **ret, struct df_err *err)
{
    struct world *w = arg;
    const char *token = w->tokens[w->reads];
    w->reads += w->reads < 2 && w->tokens[w->reads + 1];
    return df_check_alloc(*ret = strdup(token), err);
}

/* The id of the template. */
static inline int find_template(struct df_awx *a, const char *name, int64_t *ret,
                                struct df_err *err)
{
    struct df_awx_template t;
    int result = df_awx_find_template(a, name, &t, err);
    if (result == 0)
        *ret = t.id;
    return result;
}

static inline int open_world(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct df_err err = {0};
    w->tokens[0] = "test-token";
    answering_open(&w->server);
    (void)snprintf(w->url, sizeof(w->url), "%s//", w->server.url);
    const struct df_awx_options options = {.url = w->url, .token = give_token, .arg = w};
    if (df_awx_new(&options, &w->awx, &err) < 0)
        fail_msg("%s", err.message);
    *state = w;
    return 0;
}

static inline int close_world(void **state)
{
    struct world *w = *state;
    df_awx_free(w->awx);
    answering_close(&w->server);
    free(w);
    return 0;
}

static inline void assert_asked(const struct world *w, unsigned i, const char *method,
                                const char *url, const char *query)
{
    assert_true(i < w->server.n_asked);
    const struct asked *a = &w->server.asked[i];
    assert_string_equal(a->method, method);
    assert_string_equal(a->url, url);
    assert_string_equal(a->query, query);
    assert_string_equal(a->token, "Bearer test-token");
}

static inline void assert_fails(int result, const struct df_err *err, enum df_err_class cls,
                                const char *text)
{
    assert_int_equal(result, -1);
    if (err->cls != cls || !strstr(err->message, text))
        fail_msg("%s: %s, not %s: %s", df_err_class_name(err->cls), err->message,
                 df_err_class_name(cls), text);
}

#endif
