/* Where a step's requests go when its claim says which replica leads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/report_world.h"

/* f->server: whichever replica the server's name leads to. */
struct replicas {
    struct fixture *f;
    struct step_server leader;
    char *document;
};

static int open_replicas(void **state)
{
    struct replicas *r = calloc(1, sizeof *r);
    void *f = NULL;
    if (!r || setup(&f) < 0)
        return -1;
    r->f = f;
    server_start(&r->leader);
    *state = r;
    return 0;
}

static int close_replicas(void **state)
{
    struct replicas *r = *state;
    void *f = r->f;
    int result = teardown(&f);
    server_end(&r->leader);
    free(r->document);
    free(r);
    return result;
}

/* The claim is answered over the replica, or by the leader itself. */
static void claim_step(struct replicas *r, bool is_forwarded)
{
    r->document = df_strf("{\"uid\":\"u-1\",\"stepToken\":\"step\",\"leader\":{\"url\":"
                          "\"http://127.0.0.1:%u\",\"forwarded\":%s}}",
                          r->leader.port, is_forwarded ? "true" : "false");
    server_lock(&r->f->server);
    r->f->server.document = r->document;
    server_unlock(&r->f->server);
    assert_int_equal(claim(r->f, NULL), 0);
}

static void claim_in_pod(struct replicas *r, bool is_forwarded)
{
    free(DF_TAKE(r->f->endpoint));
    reopen(r->f, LONG_MS);
    claim_step(r, is_forwarded);
}

static void work(struct replicas *r)
{
    say(r->f, "a line\n");
    assert_int_equal(finish(r->f, NULL), 0);
}

static void assert_delivered(struct step_server *s, bool log, bool result)
{
    server_lock(s);
    assert_int_equal(s->ends[SERVER_LOG], log ? 7 : 0);
    assert_int_equal(s->results, result);
    server_unlock(s);
}

static void a_step_whose_claim_was_forwarded_goes_to_the_leader(void **state)
{
    struct replicas *r = *state;
    claim_in_pod(r, true);
    work(r);
    assert_delivered(&r->leader, true, true);
    assert_delivered(&r->f->server, false, false);
}

static void the_connection_of_a_claim_that_reached_the_leader_is_kept(void **state)
{
    struct replicas *r = *state;
    claim_in_pod(r, false);
    work(r);
    assert_delivered(&r->leader, true, false);
    assert_delivered(&r->f->server, false, true);
}

static void a_leader_that_cannot_be_reached_is_left(void **state)
{
    struct replicas *r = *state;
    server_close(&r->leader);
    claim_in_pod(r, true);
    work(r);
    assert_delivered(&r->f->server, true, true);
}

static void a_leader_that_answers_with_a_failure_is_left(void **state)
{
    struct replicas *r = *state;
    r->leader.refuse = "/";
    r->leader.refuse_times = 1000;
    r->leader.refuse_status = 503;
    claim_in_pod(r, true);
    work(r);
    assert_delivered(&r->f->server, true, true);
}

static void a_step_that_was_told_to_stop_goes_back_to_the_server_at_once(void **state)
{
    struct replicas *r = *state;
    server_close(&r->leader);
    claim_in_pod(r, true);
    r->f->stop = true;
    df_report_heed(r->f->report, &r->f->stop);
    work(r);
    assert_delivered(&r->f->server, true, true);
}

static void a_leader_that_refuses_is_believed(void **state)
{
    struct replicas *r = *state;
    r->leader.over = true;
    claim_in_pod(r, true);
    say(r->f, "a line\n");
    assert_int_equal(finish(r->f, NULL), -1);
    assert_delivered(&r->f->server, false, false);
}

static void a_spawner_with_an_endpoint_file_leads_alone(void **state)
{
    struct replicas *r = *state;
    write_endpoint(r->f);
    claim_step(r, true);
    work(r);
    assert_delivered(&r->f->server, true, true);
}

#define with_replicas(f) cmocka_unit_test_setup_teardown(f, open_replicas, close_replicas)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_replicas(a_step_whose_claim_was_forwarded_goes_to_the_leader),
        with_replicas(the_connection_of_a_claim_that_reached_the_leader_is_kept),
        with_replicas(a_leader_that_cannot_be_reached_is_left),
        with_replicas(a_leader_that_answers_with_a_failure_is_left),
        with_replicas(a_step_that_was_told_to_stop_goes_back_to_the_server_at_once),
        with_replicas(a_leader_that_refuses_is_believed),
        with_replicas(a_spawner_with_an_endpoint_file_leads_alone),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("report_leader", tests, NULL, NULL);
}
