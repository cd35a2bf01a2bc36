/* The authority that replicas share: filled once, by whoever is first. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "common/http/http.h"
#include "spawner/http/authority.h"
#include "spawner/http/tls.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/scratch.h"

/* One Secret, kept as the API server does: what is written on an old resourceVersion is refused. */
struct secret {
    char *key, *certificate; /* NULL: not there */
    int version;
    unsigned writes, conflicts;
    bool rival; /* somebody fills it before the first write arrives */
    bool gone;
};

static char *base64(const char *text)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_base64_encode(text, strlen(text), false, &b, NULL), 0);
    return df_buf_take(&b);
}

static void say_secret(const struct secret *s, struct kube_reply *a)
{
    DF_JSON cJSON *object = cJSON_Parse("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"tls\"}}");
    DF_FREE char *version = df_strf("%d", s->version);
    (void)cJSON_AddStringToObject(cJSON_GetObjectItem(object, "metadata"), "resourceVersion",
                                  version);
    if (s->key || s->certificate) {
        cJSON *data = cJSON_AddObjectToObject(object, "data");
        DF_FREE char *key = s->key ? base64(s->key) : NULL;
        DF_FREE char *certificate = s->certificate ? base64(s->certificate) : NULL;
        if (key)
            (void)cJSON_AddStringToObject(data, "ca.key", key);
        if (certificate)
            (void)cJSON_AddStringToObject(data, "ca.crt", certificate);
    }
    DF_FREE char *text = df_json_print(object);
    kube_say(a, 200, "", text);
}

static void fill(struct secret *s, const char *key, const char *certificate)
{
    free(s->key);
    free(s->certificate);
    s->key = strdup(key);
    s->certificate = strdup(certificate);
    s->version++;
}

static void take_write(struct secret *s, const char *body, struct kube_reply *a)
{
    DF_JSON cJSON *object = cJSON_Parse(body);
    const cJSON *data = cJSON_GetObjectItem(object, "stringData");
    DF_FREE char *version = df_strf("%d", s->version);
    if (!df_streq(df_json_str(object, "metadata.resourceVersion"), version)) {
        s->conflicts++;
        kube_status(a, 409, "Conflict", "the object has been modified");
        return;
    }
    fill(s, cJSON_GetStringValue(cJSON_GetObjectItem(data, "ca.key")),
         cJSON_GetStringValue(cJSON_GetObjectItem(data, "ca.crt")));
    s->writes++;
    say_secret(s, a);
}

static void serve(struct kube_server *server, const struct kube_request *r, struct kube_reply *a)
{
    struct secret *s = server->arg;
    if (s->gone || !strstr(r->target, "/secrets/tls")) {
        kube_status(a, 404, "NotFound", "secrets \\\"tls\\\" not found");
    } else if (df_streq(r->method, "GET")) {
        say_secret(s, a);
    } else {
        if (s->rival)
            fill(s, "their key", "their certificate");
        s->rival = false;
        take_write(s, r->body, a);
    }
}

struct place {
    struct secret secret;
    struct kube_server server;
    struct df_kube *kube;
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    p->secret.version = 1;
    kube_start(&p->server, serve, &p->secret);
    p->kube = kube_client(&p->server);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    df_kube_free(p->kube);
    kube_stop(&p->server);
    free(p->secret.key);
    free(p->secret.certificate);
    free(p);
    return 0;
}

struct pair {
    struct df_buf key, certificate;
};

static void free_pair(struct pair *p)
{
    df_buf_wipe(&p->key);
    df_buf_free(&p->certificate);
}
#define PAIR DF_CLEANUP(free_pair) struct pair
#define NEW_PAIR                                                                                   \
    {                                                                                              \
        DF_BUF_INIT(DF_LIMIT_CA), DF_BUF_INIT(DF_LIMIT_CA)                                         \
    }

static int get(struct place *p, struct pair *to, struct df_err *err)
{
    return df_authority_shared(p->kube, "here", "tls", &to->key, &to->certificate, err);
}

static void the_first_fills_the_secret_and_the_next_takes_the_same(void **state)
{
    struct place *p = *state;
    PAIR first = NEW_PAIR, second = NEW_PAIR;
    assert_int_equal(get(p, &first, NULL), 0);
    assert_int_equal(get(p, &second, NULL), 0);
    assert_int_equal(p->secret.writes, 1);
    assert_string_equal(df_buf_str(&first.key), p->secret.key);
    assert_string_equal(df_buf_str(&first.key), df_buf_str(&second.key));
    assert_string_equal(df_buf_str(&first.certificate), df_buf_str(&second.certificate));
    assert_non_null(strstr(df_buf_str(&first.certificate), "BEGIN CERTIFICATE"));
}

static void who_is_second_by_a_moment_takes_what_the_first_has_written(void **state)
{
    struct place *p = *state;
    PAIR mine = NEW_PAIR;
    p->secret.rival = true;
    assert_int_equal(get(p, &mine, NULL), 0);
    assert_int_equal(p->secret.conflicts, 1);
    assert_int_equal(p->secret.writes, 0);
    assert_string_equal(df_buf_str(&mine.key), "their key");
    assert_string_equal(df_buf_str(&mine.certificate), "their certificate");
}

static void a_half_of_a_pair_is_named_and_not_replaced(void **state)
{
    struct place *p = *state;
    PAIR mine = NEW_PAIR;
    struct df_err err = {0};
    p->secret.certificate = strdup("theirs");
    assert_int_equal(get(p, &mine, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message,
                        "server.tls.secret: Secret tls: it has no ca.key; empty it, or "
                        "store both keys");
    assert_int_equal(p->secret.writes, 0);
}

static void a_secret_that_nobody_made_is_an_error(void **state)
{
    struct place *p = *state;
    PAIR mine = NEW_PAIR;
    struct df_err err = {0};
    p->secret.gone = true;
    assert_int_equal(get(p, &mine, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "server.tls.secret: Secret tls"));
}

/* Asks once, where the configuration says. */
static void assert_asked_in(struct place *p, char *name_space, const char *path)
{
    DF_CLEANUP(df_strs_free) struct df_strs names = {0};
    char secret[] = "tls";
    void *dir = NULL;
    struct df_tls *t = NULL;
    struct df_err err = {0};
    assert_int_equal(enter_scratch(&dir), 0);
    (void)df_strs_add(&names, "dayfly.infra.svc");
    const struct df_config config = {.data_directory = dir,
                                     .kube_namespace = name_space,
                                     .tls_secret = secret,
                                     .tls_names = names};
    if (df_tls_open(&config, p->kube, "https://dayfly.infra.svc", &t, &err) < 0)
        fail_msg("%s", err.message);
    df_tls_close(t);
    (void)pthread_mutex_lock(&p->server.lock);
    bool asked = strstr(df_buf_str(&p->server.seen), path);
    (void)pthread_mutex_unlock(&p->server.lock);
    assert_true(asked);
    assert_int_equal(leave_scratch(&dir), 0);
}

static void the_secret_is_in_the_namespace_of_the_service(void **state)
{
    char configured[] = "infra"; /* the client's own is build */
    assert_asked_in(*state, configured, "/namespaces/infra/secrets/tls");
    assert_asked_in(*state, NULL, "/namespaces/build/secrets/tls");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    if (df_http_global_init(NULL) < 0)
        return 1;
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_fills_the_secret_and_the_next_takes_the_same),
        TEST(who_is_second_by_a_moment_takes_what_the_first_has_written),
        TEST(a_half_of_a_pair_is_named_and_not_replaced),
        TEST(a_secret_that_nobody_made_is_an_error),
        TEST(the_secret_is_in_the_namespace_of_the_service),
    };
    return cmocka_run_group_tests_name("authority", tests, NULL, NULL);
}
