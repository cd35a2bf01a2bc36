/* Lists of AWX's API: page by page, and what is too large. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/awx_client_world.h"

/* 668-d */
static void all_pages_of_a_list_are_read_from_the_same_place(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *ids = NULL;
    will_answer(&w->server, 200,
                "{\"next\":\"http://elsewhere.example/x/?page=2&page_size=200\","
                "\"results\":[{\"id\":10},{\"id\":20}]}");
    will_answer(&w->server, 200, "{\"next\":null,\"results\":[{\"id\":30}]}");
    assert_int_equal(df_awx_template_credentials(w->awx, 3, &ids, &err), 0);
    assert_json(ids, "[10,20,30]", "ids");
    assert_asked(w, 0, "GET", "/api/v2/job_templates/3/credentials/", "page_size=200");
    assert_asked(w, 1, "GET", "/api/v2/job_templates/3/credentials/",
                 "page_size=2&page=2"); /* it gives no more than two */
}

static void a_search_goes_on_in_pages_of_awxs_own_size(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    int64_t id = 0;
    will_answer(&w->server, 200,
                "{\"next\":\"/?page=2\",\"results\":[{\"id\":10,\"organization\":2}]}");
    will_answer(&w->server, 200, "{\"next\":null,\"results\":[{\"id\":20,\"organization\":1}]}");
    assert_int_equal(find_template(w->awx, "a", &id, &err), 0);
    assert_int_equal(id, 20);
    assert_asked(w, 0, "GET", "/api/v2/job_templates/", "name=a");
    assert_asked(w, 1, "GET", "/api/v2/job_templates/", "name=a&page=2");
}

/* An AWX with a long list of jobs, whatever it is asked for. The last one is number 7, of uid-1. */
struct long_list {
    int size;  /* items; 0: there is no end */
    int large; /* the first ones, of LARGE bytes */
    atomic_int requests;
    struct kube_server server;
    char url[64];
    struct df_awx *awx;
};
enum { LARGE = 900000 };

static void add_item(const struct long_list *l, int i, struct df_buf *to)
{
    bool is_last = i == l->size - 1;
    (void)df_buf_addf(to, "{\"id\":%d,\"extra_vars\":\"{\\\"A\\\": \\\"%0*d\\\", ",
                      is_last ? 7 : 1000 + i, i < l->large ? LARGE : 1, 0);
    (void)df_buf_addf(to, "\\\"DAYFLY_UID\\\": \\\"%s\\\"}\"}", is_last ? "uid-1" : "uid-2");
}

static int number_of(const char *target, const char *key, int otherwise)
{
    const char *at = strstr(target, key);
    return at ? (int)strtol(at + strlen(key), NULL, 10) : otherwise;
}

static void say_page(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct long_list *l = s->arg;
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    int size = number_of(r->target, "page_size=", 25);
    int i = (number_of(r->target, "&page=", 1) - 1) * size, end = i + size;
    bool is_last = l->size && end >= l->size;
    const char *comma = "";
    atomic_fetch_add(&l->requests, 1);
    (void)df_buf_addf(&page, "{\"next\":%s,\"results\":[", is_last ? "null" : "\"/?page=2\"");
    for (; i < (is_last ? l->size : end); i++, comma = ",") {
        (void)df_buf_adds(&page, comma);
        add_item(l, i, &page);
    }
    (void)df_buf_adds(&page, "]}");
    kube_say(a, 200, "", df_buf_str(&page));
}

static void open_list(struct world *w, struct long_list *l)
{
    kube_start(&l->server, say_page, l);
    (void)snprintf(l->url, sizeof(l->url), "http://127.0.0.1:%u", l->server.port);
    const struct df_awx_options options = {.url = l->url, .token = give_token, .arg = w};
    assert_int_equal(df_awx_new(&options, &l->awx, NULL), 0);
}

static void close_list(struct long_list *l)
{
    df_awx_free(l->awx);
    kube_stop(&l->server);
}

static void a_list_without_an_end_is_not_read_for_ever(void **state)
{
    struct long_list l = {0};
    struct df_err err = {0};
    DF_JSON cJSON *ids = NULL;
    int64_t job = 0;
    open_list(*state, &l);
    assert_fails(df_awx_template_credentials(l.awx, 3, &ids, &err), &err, DF_ERR_LIMIT,
                 "AWX credentials has more than 10 pages");
    assert_int_equal(df_awx_find_job(l.awx, 3, 0, "uid-1", &job, &err), 0);
    assert_int_equal(job, -1);
    assert_int_equal(l.requests, DF_AWX_PAGES + DF_AWX_ITEMS / 200);
    close_list(&l);
}

/* Whoever may launch a template decides how large its jobs are. */
static void large_jobs_of_others_hide_none(void **state)
{
    static const struct {
        int size, large;
    } rows[] = {{1, 1}, {7, 6}, {500, 6}, {997, 30}, {1000, 1}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct long_list l = {.size = rows[i].size, .large = rows[i].large};
        struct df_err err = {0};
        int64_t job = 0;
        open_list(*state, &l);
        if (df_awx_find_job(l.awx, 3, 0, "uid-1", &job, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(job, 7);
        assert_true(l.requests < 80);
        close_list(&l);
    }
}

static void a_page_that_would_fill_the_memory_is_refused(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf many = DF_BUF_INIT(DF_KIB), large = DF_BUF_INIT(4 * DF_MIB);
    struct df_err err = {0};
    cJSON *type = NULL;
    int64_t id;
    for (int i = 0; i < 201; i++)
        (void)df_buf_adds(&many, i ? ",{}" : "{\"results\":[{}");
    (void)df_buf_adds(&many, "]}");
    (void)df_buf_addf(&large, "{\"results\":[{\"id\":1,\"name\":\"%0*d\"}]}", (int)(2 * DF_MIB), 0);
    will_answer(&w->server, 200, df_buf_str(&many));
    assert_fails(df_awx_find_type(w->awx, "a", &type, &err), &err, DF_ERR_SYSTEM,
                 "more results than its page");
    answering_forget(&w->server);
    will_answer(&w->server, 200, df_buf_str(&large));
    assert_fails(find_template(w->awx, "a", &id, &err), &err, DF_ERR_LIMIT,
                 "AWX job template search");
}

static void a_job_is_known_by_the_uid_in_its_variables(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *uid;
        int64_t id;
    } rows[] = {{"u1", 2}, {"u2", 3}, {"u", -1}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        int64_t id = 0;
        answering_forget(&w->server);
        will_answer(&w->server, 200,
                    "{\"results\":[{\"id\":5},{\"id\":4,\"extra_vars\":\"---\"},"
                    "{\"id\":3,\"extra_vars\":\"{\\\"DAYFLY_UID\\\": \\\"u2\\\"}\"},"
                    "{\"id\":2,\"extra_vars\":\"{\\\"DAYFLY_UID\\\": \\\"u1\\\"}\"},"
                    "{\"id\":1,\"extra_vars\":\"{\\\"DAYFLY_UID\\\": \\\"u1\\\"}\"}]}");
        assert_int_equal(df_awx_find_job(w->awx, 10, 1000000, rows[i].uid, &id, &err), 0);
        assert_int_equal(id, rows[i].id);
        assert_asked(w, 0, "GET", "/api/v2/job_templates/10/jobs/",
                     "order_by=-id&created__gt=1970-01-01T00:00:01.000000Z&page_size=200");
    }
}

/* Whoever takes it for another's launches a second one. */
static void a_job_that_may_be_ours_is_never_taken_for_anothers(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *items;
        enum df_err_class cls; /* DF_ERR_NONE: it is found */
    } rows[] = {{"{\"id\":7,\"extra_vars\":{\"DAYFLY_UID\":\"u1\"}}", DF_ERR_NONE},
                {"{\"id\":\"7\",\"extra_vars\":{\"DAYFLY_UID\":\"u1\"}}", DF_ERR_SYSTEM},
                {"{\"extra_vars\":\"{\\\"DAYFLY_UID\\\":\\\"u1\\\"}\"}", DF_ERR_SYSTEM},
                {"{\"id\":7,\"extra_vars\":\"{\\\"DAYFLY_UID\\\":\\\"u1\\\",\"}", DF_ERR_SYSTEM}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *page = df_strf("{\"results\":[%s]}", rows[i].items);
        struct df_err err = {0};
        int64_t id = -1;
        answering_forget(&w->server);
        will_answer(&w->server, 200, page);
        int result = df_awx_find_job(w->awx, 10, 0, "u1", &id, &err);
        if (rows[i].cls)
            assert_fails(result, &err, rows[i].cls, "AWX");
        else
            assert_int_equal(result, 0);
        assert_int_equal(id, rows[i].cls ? -1 : 7);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_pages_of_a_list_are_read_from_the_same_place),
        TEST(a_search_goes_on_in_pages_of_awxs_own_size),
        TEST(a_list_without_an_end_is_not_read_for_ever),
        TEST(large_jobs_of_others_hide_none),
        TEST(a_page_that_would_fill_the_memory_is_refused),
        TEST(a_job_is_known_by_the_uid_in_its_variables),
        TEST(a_job_that_may_be_ours_is_never_taken_for_anothers),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
