/* The stream of all transitions, for clients that are too slow or come back. */
#include "tests/unit/api_world.h"

#include "spawner/journal/journal.h"

/* A step that is queued. */
static void make_step(struct world *w, const char *name)
{
    DF_FREE char *text =
        df_strf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\","
                "\"labels\":{\"dayfly.dev/unfinished\":\"true\"}},"
                "\"spec\":{\"action\":\"plan\",\"runRef\":{\"name\":\"net-1\"}},"
                "\"status\":{\"phaseHistory\":[{\"phase\":\"Queued\",\"occurredAt\":"
                "\"2026-01-01T00:00:00Z\"}]}}",
                name);
    DF_JSON cJSON *doc = cJSON_Parse(text);
    assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, doc, NULL, NULL), 0);
}

static int listen_to(struct world *w, const char *headers)
{
    DF_FREE char *raw =
        df_strf("GET /v1/transitions HTTP/1.1\r\nHost: localhost\r\n%s\r\n", headers);
    int fd = dial(w);
    say(fd, raw);
    return fd;
}

static void who_was_too_slow_is_shown_what_he_missed(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf heard = DF_BUF_INIT(DF_MIB);
    make_step(w, "before");
    DF_CLOSE int fd = listen_to(w, "");
    assert_true(hear(fd, &heard, "event: sentinel"));
    assert_non_null(strstr(df_buf_str(&heard), "\"taskAction\":\"before\""));
    df_buf_clear(&heard);
    /* More than are kept. */
    const struct df_store_event event = {DF_CHANGE_MODIFIED, DF_KIND_TASK_ACTION, "nobody", "1"};
    for (int i = 0; i < 2 * DF_JOURNAL_ENTRIES; i++)
        df_journal_add(w->s.journal, &event);
    make_step(w, "after");
    /* Shown among what is there, or told if he was shown that in the middle of the others. */
    assert_true(hear(fd, &heard, "\"taskAction\":\"after\""));
    assert_true(hear(fd, &heard, "event: sentinel"));
    df_buf_clear(&heard);
    make_step(w, "later");
    assert_true(hear(fd, &heard, "\"taskAction\":\"later\""));
    assert_null(strstr(df_buf_str(&heard), "\"taskAction\":\"after\""));
}

static void who_comes_back_is_told_only_of_what_was_written_since(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf heard = DF_BUF_INIT(DF_MIB);
    char version[32];
    make_step(w, "known");
    (void)df_journal_last(w->s.journal, version);
    make_step(w, "missed");
    DF_FREE char *header = df_strf("Last-Event-ID: %s\r\n", version);
    DF_CLOSE int fd = listen_to(w, header);
    assert_true(hear(fd, &heard, "event: sentinel"));
    assert_non_null(strstr(df_buf_str(&heard), "\"taskAction\":\"missed\""));
    assert_null(strstr(df_buf_str(&heard), "\"taskAction\":\"known\""));
}

/* An id of somebody else's is no reason to keep anything back. */
static void an_id_that_is_none_of_ours_brings_everything(void **state)
{
    struct world *w = *state;
    DF_BUF struct df_buf heard = DF_BUF_INIT(DF_MIB);
    make_step(w, "known");
    DF_CLOSE int fd = listen_to(w, "Last-Event-ID: from-elsewhere\r\n");
    assert_true(hear(fd, &heard, "event: sentinel"));
    assert_non_null(strstr(df_buf_str(&heard), "\"taskAction\":\"known\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(who_was_too_slow_is_shown_what_he_missed),
        WITH(who_comes_back_is_told_only_of_what_was_written_since),
        WITH(an_id_that_is_none_of_ours_brings_everything),
    };
    return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
