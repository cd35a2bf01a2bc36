/* The shares of connections, and the time of peers: socket pairs stand for the connections. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/http/connections.h"

#define DEADLINE_MS 30000

struct peer {
    int fds[2]; /* ours, theirs */
    struct df_connection *one;
};

struct world {
    struct df_connections *c;
    struct peer peers[3 * DF_LIMIT_HTTP_OPEN];
    size_t count;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct rlimit limit;
    assert_non_null(w);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(df_connections_new(&w->c, NULL), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < w->count; i++) {
        df_connections_remove(w->c, w->peers[i].one);
        (void)close(w->peers[i].fds[0]);
        (void)close(w->peers[i].fds[1]);
    }
    df_connections_free(w->c);
    free(w);
    return 0;
}

static struct peer *arrive(struct world *w, const char *address)
{
    struct peer *p = &w->peers[w->count++];
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    assert_true(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->fds), 0);
    p->one = df_connections_add(
        w->c, p->fds[0], is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6, NULL);
    assert_non_null(p->one);
    return p;
}

static bool is_cut(const struct peer *p)
{
    struct pollfd poller = {.fd = p->fds[1], .events = POLLRDHUP};
    return poll(&poller, 1, 0) > 0 && (poller.revents & (POLLRDHUP | POLLHUP));
}

static int admit(struct world *w, struct peer *p, enum df_share share, const char *who)
{
    struct df_err err = {0};
    int result = df_connections_admit(w->c, p->one, share, who, &err);
    assert_true(result == 0 || strcmp(err.reason, "TooManyRequests") == 0);
    return result;
}

/* Admits callers until one is refused; returns how many were taken. */
static size_t fill(struct world *w, enum df_share share, const char *who)
{
    size_t n = 0;
    while (admit(w, arrive(w, "10.0.0.9"), share, who) == 0)
        n++;
    w->count--;
    df_connections_remove(w->c, w->peers[w->count].one);
    (void)close(w->peers[w->count].fds[0]);
    (void)close(w->peers[w->count].fds[1]);
    return n;
}

static void the_oldest_stranger_makes_room_for_a_newcomer(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < DF_LIMIT_HTTP_OPEN; i++)
        assert_false(is_cut(arrive(w, "10.0.0.1")));
    assert_false(is_cut(&w->peers[0]));
    struct peer *newcomer = arrive(w, "10.0.0.1");
    assert_true(is_cut(&w->peers[0]));
    assert_false(is_cut(&w->peers[1]));
    assert_false(is_cut(newcomer));
}

static void an_address_with_many_makes_room_before_one_with_few(void **state)
{
    struct world *w = *state;
    static const char *const few[] = {"10.0.0.2", "fd00::1", "::ffff:10.0.0.3"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(few); i++)
        (void)arrive(w, few[i]); /* the oldest of all */
    for (int i = 0; i < 2 * DF_LIMIT_HTTP_OPEN; i++)
        (void)arrive(w, i % 2 ? "2001:db8::1" : "2001:db8::2"); /* one site: the same 64 bits */
    for (size_t i = 0; i < DF_ARRAY_SIZE(few); i++)
        assert_false(is_cut(&w->peers[i]));
    assert_true(is_cut(&w->peers[DF_ARRAY_SIZE(few)]));
}

static void a_peer_that_was_admitted_makes_no_room_for_strangers(void **state)
{
    struct world *w = *state;
    struct peer *known = arrive(w, "10.0.0.1");
    assert_int_equal(admit(w, known, DF_SHARE_CALLERS, "ci"), 0);
    for (int i = 0; i < 2 * DF_LIMIT_HTTP_OPEN; i++)
        (void)arrive(w, "10.0.0.1");
    assert_false(is_cut(known));
}

static void an_address_counts_by_its_strangers_alone(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 250; i++)
        assert_int_equal(admit(w, arrive(w, "10.0.0.1"), DF_SHARE_ADMINS, "boss"), 0);
    for (int i = 250; i < 450; i++)
        (void)arrive(w, "10.0.0.1");
    for (int i = 450; i < DF_LIMIT_HTTP_OPEN; i++)
        (void)arrive(w, "10.0.0.2"); /* fewer connections, but more strangers */
    (void)arrive(w, "10.0.0.3");
    assert_false(is_cut(&w->peers[250]));
    assert_true(is_cut(&w->peers[450]));
}

static void strangers_use_what_the_known_leave(void **state)
{
    struct world *w = *state;
    static const char *const admins[] = {"a", "b", "c"};
    for (size_t i = 0; i < DF_LIMIT_HTTP_KNOWN; i++)
        assert_int_equal(admit(w, arrive(w, "10.0.0.1"), DF_SHARE_ADMINS, admins[i % 3]), 0);
    size_t first = w->count;
    for (int i = 0; i <= DF_LIMIT_HTTP_OPEN - DF_LIMIT_HTTP_KNOWN; i++)
        (void)arrive(w, "10.0.0.1");
    assert_true(is_cut(&w->peers[first]));
    assert_false(is_cut(&w->peers[first + 1]));
}

/* A stranger that sends a body. */
static struct peer *send_body(struct world *w, int result)
{
    struct df_err err = {0};
    struct peer *p = arrive(w, "10.0.0.1");
    assert_int_equal(df_connections_receive(w->c, p->one, &err), result);
    return p;
}

static void a_body_of_a_stranger_makes_room_for_a_later_one(void **state)
{
    struct world *w = *state;
    struct peer *one = send_body(w, 0);
    df_connections_answer(w->c, one->one, true);
    for (int i = 0; i < 2 * DF_LIMIT_HTTP_FOREIGN; i++)
        (void)send_body(w, 0);
    assert_false(is_cut(one)); /* it is complete: its memory would stay */
    assert_true(is_cut(&w->peers[1]));
    assert_false(is_cut(&w->peers[w->count - DF_LIMIT_HTTP_FOREIGN + 1]));
}

static void a_stranger_waits_while_every_body_is_being_answered(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < DF_LIMIT_HTTP_FOREIGN; i++)
        df_connections_answer(w->c, send_body(w, 0)->one, true);
    (void)send_body(w, -1);
    df_connections_answer(w->c, w->peers[0].one, false); /* the answer is not read */
    (void)send_body(w, 0);
    assert_true(is_cut(&w->peers[0]));
    df_connections_answer(w->c, w->peers[1].one, false);
    df_connections_wait(w->c, w->peers[1].one); /* it is read */
    (void)send_body(w, 0);
    assert_false(is_cut(&w->peers[1]));
}

static void one_token_takes_its_share_and_no_more(void **state)
{
    struct world *w = *state;
    assert_int_equal(fill(w, DF_SHARE_CALLERS, "greedy"), DF_LIMIT_HTTP_CALLER);
    assert_int_equal(admit(w, &w->peers[0], DF_SHARE_CALLERS, "greedy"), 0); /* its next request */
    assert_int_equal(fill(w, DF_SHARE_CALLERS, "other"),
                     DF_LIMIT_HTTP_CALLERS - DF_LIMIT_HTTP_CALLER);
    assert_int_equal(admit(w, arrive(w, "10.0.0.1"), DF_SHARE_ADMINS, "boss"), 0);
    assert_int_equal(fill(w, DF_SHARE_STEPS, "step"), DF_LIMIT_HTTP_STEP);
}

static void steps_leave_some_for_people(void **state)
{
    struct world *w = *state;
    char uid[16];
    size_t n = 0;
    for (int step = 0; step < 40; step++) {
        (void)snprintf(uid, sizeof(uid), "step-%d", step);
        n += fill(w, DF_SHARE_STEPS, uid);
    }
    assert_int_equal(n, DF_LIMIT_HTTP_STEPS);
    assert_int_equal(fill(w, DF_SHARE_ADMINS, "boss"), DF_LIMIT_HTTP_KNOWN - DF_LIMIT_HTTP_STEPS);
}

static void a_connection_that_serves_several_callers_counts_for_the_last(void **state)
{
    struct world *w = *state;
    assert_int_equal(fill(w, DF_SHARE_CALLERS, "a"), DF_LIMIT_HTTP_CALLER);
    assert_int_equal(admit(w, &w->peers[0], DF_SHARE_CALLERS, "b"), 0); /* a proxy's */
    assert_int_equal(fill(w, DF_SHARE_CALLERS, "a"), 1);
}

static void a_caller_has_fewer_event_streams_than_connections(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    for (size_t i = 0; i < DF_LIMIT_HTTP_FOLLOWERS; i++) {
        struct peer *p = arrive(w, "10.0.0.1");
        assert_int_equal(admit(w, p, DF_SHARE_CALLERS, "ci"), 0);
        assert_int_equal(df_connections_follow(w->c, p->one, &err), 0);
    }
    struct peer *more = arrive(w, "10.0.0.1");
    assert_int_equal(admit(w, more, DF_SHARE_CALLERS, "ci"), 0);
    assert_int_equal(df_connections_follow(w->c, more->one, &err), -1);
    assert_string_equal(err.reason, "TooManyRequests");
    df_connections_wait(w->c, w->peers[0].one); /* a stream ended */
    assert_int_equal(df_connections_follow(w->c, more->one, &err), 0);
}

static void a_peer_out_of_time_is_cut_off_however_much_it_sends(void **state)
{
    struct world *w = *state;
    struct peer *slow = arrive(w, "10.0.0.1"), *patient = arrive(w, "10.0.0.1");
    df_connections_limit(w->c, slow->one, 0);
    df_connections_limit(w->c, patient->one, -1);
    int64_t end = df_mono_ms() + DEADLINE_MS;
    while (send(slow->fds[1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
        assert_true(df_mono_ms() < end);
        (void)poll(NULL, 0, 5);
    }
    assert_false(is_cut(patient));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_stranger_makes_room_for_a_newcomer),
        TEST(an_address_with_many_makes_room_before_one_with_few),
        TEST(a_peer_that_was_admitted_makes_no_room_for_strangers),
        TEST(an_address_counts_by_its_strangers_alone),
        TEST(strangers_use_what_the_known_leave),
        TEST(a_body_of_a_stranger_makes_room_for_a_later_one),
        TEST(a_stranger_waits_while_every_body_is_being_answered),
        TEST(one_token_takes_its_share_and_no_more),
        TEST(steps_leave_some_for_people),
        TEST(a_connection_that_serves_several_callers_counts_for_the_last),
        TEST(a_caller_has_fewer_event_streams_than_connections),
        TEST(a_peer_out_of_time_is_cut_off_however_much_it_sends),
    };
    return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
