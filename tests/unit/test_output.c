#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/json/json.h"
#include "runner/report/output.h"
#include "tests/unit/memory.h"
#include "tests/unit/scratch.h"

#define FIXTURES "tests/fixtures/events"

/* --- an output whose report is a directory --------------------------------------------------- */

struct fixture {
    char *dir;
    struct df_masks *masks;
    struct df_report *report;
    struct df_output *output;
    int echo[2];
};

static int open_output(struct fixture *f, const char *const *secrets)
{
    DF_STRS struct df_strs v = {0};
    for (; *secrets; secrets++)
        (void)df_strs_add(&v, *secrets);
    return df_masks_new(&v, NULL, &f->masks, NULL) < 0 ||
                   df_report_to_directory(f->dir, &f->report, NULL) < 0 ||
                   df_output_new(f->masks, f->report, f->echo[1], &f->output, NULL) < 0
               ? -1
               : 0;
}

static void close_output(struct fixture *f)
{
    df_output_free(f->output);
    df_report_free(f->report);
    df_masks_free(f->masks);
}

static const char *const no_secrets[] = {NULL};
static const char *const hunter[] = {"hunter2-secret", NULL};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    void *dir = NULL;
    if (!f || enter_scratch(&dir) < 0 || pipe2(f->echo, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    f->dir = dir;
    *state = f;
    return open_output(f, hunter);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_output(f);
    (void)close(f->echo[0]);
    (void)close(f->echo[1]);
    void *dir = f->dir;
    free(f);
    return leave_scratch(&dir);
}

static void start_over(struct fixture *f, const char *const *secrets)
{
    close_output(f);
    assert_int_equal(open_output(f, secrets), 0);
}

static void text(struct fixture *f, const char *s)
{
    assert_int_equal(df_output_text(f->output, s, strlen(s), NULL), 0);
}

static void events(struct fixture *f, const char *s, bool render)
{
    assert_int_equal(df_output_events(f->output, s, strlen(s), render, NULL), 0);
}

static void flush(struct fixture *f)
{
    assert_int_equal(df_output_flush(f->output, NULL), 0);
}

static void read_file(const char *dir, const char *name, struct df_buf *b)
{
    DF_FREE char *path = df_fs_join(dir, name);
    df_buf_clear(b);
    struct df_err err = {0};
    if (df_fs_read(path, b, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_stream(struct fixture *f, const char *name, const char *expected)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(64 * DF_MIB);
    read_file(f->dir, name, &b);
    assert_string_equal(df_buf_str(&b), expected);
}

/* --- text ------------------------------------------------------------------------------------ */

static void text_goes_to_the_log_and_to_stdout_at_once(void **state)
{
    struct fixture *f = *state;
    text(f, "Initializing the backend...\n");
    assert_stream(f, "log", "Initializing the backend...\n");
    char echoed[100] = "";
    assert_int_equal(read(f->echo[0], echoed, sizeof echoed - 1), 28);
    assert_string_equal(echoed, "Initializing the backend...\n");
}

static void a_secret_in_two_reads_is_masked_in_both_places(void **state)
{
    struct fixture *f = *state;
    text(f, "password=hunter2");
    text(f, "-secret\n");
    assert_stream(f, "log", "password=***\n");
    char echoed[100] = "";
    assert_int_equal(read(f->echo[0], echoed, sizeof echoed - 1), 13);
    assert_string_equal(echoed, "password=***\n");
}

static void what_is_held_back_goes_out_when_the_command_ends(void **state)
{
    struct fixture *f = *state;
    text(f, "who is hunter2");
    assert_stream(f, "log", "who is ");
    flush(f);
    assert_stream(f, "log", "who is hunter2");
}

static void a_note_has_a_line_of_its_own_and_is_masked(void **state)
{
    struct fixture *f = *state;
    text(f, "no newline");
    assert_int_equal(df_output_note(f->output, "dayfly: %s of %d", "hunter2-secret", 7), 0);
    assert_int_equal(df_output_note(f->output, "dayfly: next"), 0);
    assert_stream(f, "log", "no newline\ndayfly: *** of 7\ndayfly: next\n");
}

static void a_note_of_any_length_is_cut_not_lost(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *wide = malloc(100001);
    memset(wide, 'x', 100000);
    wide[100000] = '\0';
    assert_int_equal(df_output_note(f->output, "%s", wide), 0);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_file(f->dir, "log", &b);
    assert_true(b.len > 10000);
    assert_int_equal(b.data[b.len - 1], '\n');
}

static void binary_bytes_pass(void **state)
{
    struct fixture *f = *state;
    static const char bytes[] = "\0\x1b[31m\xff\xfe\0\n";
    assert_int_equal(df_output_text(f->output, bytes, sizeof bytes, NULL), 0);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_file(f->dir, "log", &b);
    assert_int_equal(b.len, sizeof bytes);
    assert_memory_equal(b.data, bytes, sizeof bytes);
}

static void the_log_goes_on_when_nobody_reads_stdout(void **state)
{
    struct fixture *f = *state;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(f->echo[0]);
    f->echo[0] = dup(f->echo[1]);
    text(f, "one\n");
    text(f, "two\n");
    assert_stream(f, "log", "one\ntwo\n");
}

static void a_log_that_cannot_be_kept_is_said_once_on_stdout(void **state)
{
    struct fixture *f = *state;
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    text(f, "one\n");
    text(f, "two\n");
    limit.rlim_cur = RLIM_INFINITY;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char echoed[300] = "";
    assert_true(read(f->echo[0], echoed, sizeof echoed - 1) > 0);
    assert_true(df_starts_with(echoed, "dayfly: some of the log is lost: write spool: "));
    assert_true(df_ends_with(echoed, "\none\ntwo\n"));
}

/* --- events of the real tools ---------------------------------------------------------------- */

static const struct {
    const char *name;
    bool seen;
    int add, change, destroy, applied, errors;
    bool output_changes;
    const char *first_error;
} samples[] = {
    {"tofu-plan", true, 3, 0, 0, 0, 0, true, ""},
    {"tofu-plan-failed", true, 0, 2, 0, 0, 1, true, "Resource precondition failed"},
    {"tofu-apply", true, 1, 1, 1, 3, 0, false, ""},
    {"tofu-apply-failed", false, 0, 0, 0, 2, 1, false,
     "local-exec provisioner error (terraform_data.fails)"},
    {"tofu-plan-destroy", true, 0, 0, 3, 0, 0, true, ""},
    {"tofu-destroy", true, 0, 0, 3, 3, 0, false, ""},
    {"tofu-syntax", false, 0, 0, 0, 0, 2, false, "Unclosed configuration block"},
    {"terraform-apply", true, 1, 1, 1, 3, 0, false, ""},
    {"terraform-apply-failed", false, 0, 0, 0, 2, 1, false,
     "local-exec provisioner error (terraform_data.fails)"},
    {"odd", true, 0, 2147483647, 0, 0, 1, false, "error"},
};

static void load_sample(const char *name, const char *extension, struct df_buf *b)
{
    DF_FREE char *file = df_strf("%s.%s", name, extension);
    read_file(FIXTURES, file, b);
}

static void the_events_of_the_tools_are_kept_as_they_came_and_summed_up(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(samples); i++) {
        start_over(f, no_secrets);
        DF_BUF struct df_buf sample = DF_BUF_INIT(DF_MIB);
        load_sample(samples[i].name, "jsonl", &sample);
        events(f, df_buf_str(&sample), false);
        flush(f);
        assert_stream(f, "events", df_buf_str(&sample));
        assert_stream(f, "log", "");
        const struct df_output_summary *s = df_output_summary(f->output);
        assert_int_equal(s->seen, samples[i].seen);
        assert_int_equal(s->changes.of[DF_CHANGES_ADD], samples[i].add);
        assert_int_equal(s->changes.of[DF_CHANGES_CHANGE], samples[i].change);
        assert_int_equal(s->changes.of[DF_CHANGES_DESTROY], samples[i].destroy);
        assert_int_equal(s->applied, samples[i].applied);
        assert_int_equal(s->errors, samples[i].errors);
        assert_int_equal(s->output_changes, samples[i].output_changes);
        assert_string_equal(s->first_error, samples[i].first_error);
    }
}

static void the_events_of_the_tools_read_as_their_own_text(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(samples); i++) {
        start_over(f, no_secrets);
        DF_BUF struct df_buf sample = DF_BUF_INIT(DF_MIB), expected = DF_BUF_INIT(DF_MIB);
        load_sample(samples[i].name, "jsonl", &sample);
        events(f, df_buf_str(&sample), true);
        flush(f);
        if (getenv("DAYFLY_TEST_REWRITE")) { /* then look at the difference */
            read_file(f->dir, "log", &expected);
            DF_FREE char *path = df_strf(FIXTURES "/%s.txt", samples[i].name);
            assert_int_equal(df_fs_replace(path, df_buf_str(&expected), expected.len, 0644, NULL),
                             0);
        }
        df_buf_clear(&expected);
        load_sample(samples[i].name, "txt", &expected);
        assert_stream(f, "log", df_buf_str(&expected));
    }
}

static void events_may_come_in_pieces_of_any_size(void **state)
{
    struct fixture *f = *state;
    DF_BUF struct df_buf sample = DF_BUF_INIT(DF_MIB), expected = DF_BUF_INIT(DF_MIB);
    load_sample("tofu-apply-failed", "jsonl", &sample);
    load_sample("tofu-apply-failed", "txt", &expected);
    static const size_t sizes[] = {1, 2, 7, 100, 4096};
    for (size_t i = 0; i < DF_ARRAY_SIZE(sizes); i++) {
        start_over(f, no_secrets);
        for (size_t at = 0; at < sample.len; at += sizes[i]) {
            size_t left = sample.len - at;
            assert_int_equal(df_output_events(f->output, sample.data + at,
                                              left < sizes[i] ? left : sizes[i], true, NULL),
                             0);
        }
        flush(f);
        assert_stream(f, "events", df_buf_str(&sample));
        assert_stream(f, "log", df_buf_str(&expected));
    }
}

static void the_end_of_a_plan_that_destroys_reads_so(void **state)
{
    struct fixture *f = *state;
    static const char end[] = "{\"@message\":\"Apply complete! Resources: 0 added, 0 changed, 4 "
                              "destroyed.\",\"changes\":{"
                              "\"add\":0,\"change\":0,\"remove\":4,\"operation\":\"apply\"},"
                              "\"type\":\"change_summary\"}\n";
    events(f, end, true);
    df_output_destroys(f->output);
    events(f, end, true);
    flush(f);
    assert_stream(f, "log",
                  "Apply complete! Resources: 0 added, 0 changed, 4 destroyed.\n"
                  "Destroy complete! Resources: 4 destroyed.\n");
}

/* In an output the lines of a string are lines of the log, each with blanks before it. */
static void a_secret_of_several_lines_is_masked_in_an_output(void **state)
{
    struct fixture *f = *state;
    static const char *const secrets[] = {"first line of it\nsecond line of it", NULL};
    start_over(f, secrets);
    events(
        f,
        "{\"type\":\"outputs\",\"outputs\":{\"a\":{\"sensitive\":false,\"value\":{\"b\":\"x first "
        "line of it\\nsecond line of it y\"}}}}\n",
        true);
    flush(f);
    assert_stream(f, "log", "\nOutputs:\n\na = {\n  \"b\" = \"x *** y\"\n}\n");
}

static void a_summary_is_forgotten_before_the_next_command(void **state)
{
    struct fixture *f = *state;
    events(f, "{\"type\":\"change_summary\",\"changes\":{\"add\":3}}\n", false);
    assert_int_equal(df_output_summary(f->output)->changes.of[DF_CHANGES_ADD], 3);
    df_output_reset(f->output);
    assert_int_equal(df_changes_total(&df_output_summary(f->output)->changes), 0);
    assert_false(df_output_summary(f->output)->seen);
}

#define PLANNED(action) "{'type':'planned_change','change':{'action':'" action "'}}\n"
#define NOTHING "'add':0,'change':0,'import':0,'remove':0"
#define SUM(more) "{'type':'change_summary','changes':{" NOTHING more ",'operation':'plan'}}\n"

static void what_a_plan_changes_is_counted_whoever_counts_it(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *events;
        enum df_changes_kind kind;
        int count;
    } cases[] = {
        {PLANNED("remove") SUM(""), DF_CHANGES_FORGET, 1},            /* Terraform */
        {PLANNED("remove") SUM(",'forget':1"), DF_CHANGES_FORGET, 1}, /* OpenTofu */
        {"{'type':'planned_change','change':{'action':'move','previous_resource':{}}}\n" SUM(""),
         DF_CHANGES_MOVE, 1},
        {"{'type':'resource_drift','change':{'action':'update'}}\n" SUM(""), DF_CHANGES_DRIFT, 1},
        {PLANNED("abandon") SUM(""), DF_CHANGES_OTHER, 1},
        {SUM(",'action_invocation':2"), DF_CHANGES_OTHER, 2},
        {SUM(""), DF_CHANGES_OTHER, 1}, /* the tool says that there are changes */
        {"", DF_CHANGES_OTHER, 1},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *text = strdup(cases[i].events);
        for (char *p = text; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        start_over(f, no_secrets);
        events(f, text, false);
        df_output_expect_changes(f->output);
        const struct df_output_summary *s = df_output_summary(f->output);
        assert_int_equal(s->changes.of[cases[i].kind], cases[i].count);
        assert_int_equal(df_changes_total(&s->changes), cases[i].count);
        assert_true(s->seen);
    }
}

static void a_plan_that_only_reads_or_changes_outputs_counts_no_object(void **state)
{
    struct fixture *f = *state;
    static const char *const cases[] = {
        "{\"type\":\"planned_change\",\"change\":{\"action\":\"read\"}}\n",
        "{\"type\":\"outputs\",\"outputs\":{\"a\":{\"action\":\"create\"}}}\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        start_over(f, no_secrets);
        events(f, cases[i], false);
        df_output_expect_changes(f->output);
        assert_int_equal(df_changes_total(&df_output_summary(f->output)->changes), 0);
    }
}

/* --- what is no event ------------------------------------------------------------------------ */

static void a_line_that_is_no_event_is_text(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[] = {
        "panic: runtime error\n",
        "\n",
        "{\n",
        "{\"no\":\"type\"}\n",
        "[\"type\"]\n",
        "{\"type\":\"a\"} {\"type\":\"b\"}\n",
        "{\"type\":\"a\",\"type\":\"b\"}\n",
        "{\"type\":\"\xff\xfe\"}\n",
        "{\"type\":\"cut\n",
        " {\"type\":\"indented\"}\n",
    };
    DF_BUF struct df_buf all = DF_BUF_INIT(DF_MIB);
    for (size_t i = 0; i < DF_ARRAY_SIZE(lines); i++) {
        events(f, lines[i], i % 2);
        (void)df_buf_adds(&all, lines[i]);
    }
    flush(f);
    assert_stream(f, "log", df_buf_str(&all));
    assert_stream(f, "events", "");
}

static void the_last_line_needs_no_newline(void **state)
{
    struct fixture *f = *state;
    events(f, "{\"type\":\"version\"}\n{\"type\":\"change_summary\",\"changes\":{\"add\":1}}",
           false);
    assert_false(df_output_summary(f->output)->seen);
    flush(f);
    assert_true(df_output_summary(f->output)->seen);
    assert_stream(
        f, "events",
        "{\"type\":\"version\"}\n{\"type\":\"change_summary\",\"changes\":{\"add\":1}}\n");
    assert_stream(f, "log", "");
}

static void
a_line_that_is_too_long_for_an_event_is_text_and_the_next_is_an_event_again(void **state)
{
    struct fixture *f = *state;
    size_t n = DF_LIMIT_EVENT_LINE + 5;
    char *line = malloc(n + 1);
    memset(line, 'x', n);
    memcpy(line, "{\"type\":\"", 9);
    memcpy(line + n - 3, "\"}\n", 4);
    events(f, line, false);
    events(f, "{\"type\":\"next\"}\n", false);
    flush(f);
    assert_stream(f, "log", line);
    assert_stream(f, "events", "{\"type\":\"next\"}\n");
    free(line);
}

static void an_event_as_long_as_may_be_is_an_event(void **state)
{
    struct fixture *f = *state;
    size_t n = DF_LIMIT_EVENT_LINE;
    char *line = malloc(n + 1);
    memset(line, 'x', n);
    memcpy(line, "{\"type\":\"", 9);
    memcpy(line + n - 3, "\"}\n", 4);
    events(f, line, true);
    assert_stream(f, "events", line);
    assert_stream(f, "log", "");
    free(line);
}

static void events_that_never_end_a_line_need_no_memory(void **state)
{
    struct fixture *f = *state;
    char *piece = malloc(64 * DF_KIB);
    memset(piece, 'x', 64 * DF_KIB);
    (void)close(f->echo[0]);
    (void)signal(SIGPIPE, SIG_IGN);
    f->echo[0] = dup(f->echo[1]);
    long before = peak_kib();
    for (int i = 0; i < 2048; i++) /* 128 MiB */
        assert_int_equal(df_output_events(f->output, piece, 64 * DF_KIB, true, NULL), 0);
    flush(f);
    free(piece);
    assert_peak_below(before + 6 * 1024);
}

/* ---- lines of a provisioner ---- */

static char *progress_line(const char *output, const char *more)
{
    return df_strf("{\"@message\":\"a.b: (local-exec): %s\",\"hook\":{\"output\":\"%s\"},%s"
                   "\"type\":\"provision_progress\"}\n",
                   output, output, more);
}

static void progress(struct fixture *f, const char *output, const char *more)
{
    DF_FREE char *line = progress_line(output, more);
    events(f, line, true);
}

static void a_secret_in_the_lines_of_a_provisioner_is_in_no_event(void **state)
{
    struct fixture *f = *state;
    static const char *const lines[] = {"with hunter2", "-sec", "ret now", "hunter2", "and more"};
    static const char *const shown[] = {"with ***", "***", "*** now", "hunter2", "and more"};
    DF_BUF struct df_buf expected = DF_BUF_INIT(10000), text = DF_BUF_INIT(10000);
    for (size_t i = 0; i < DF_ARRAY_SIZE(lines); i++) {
        DF_FREE char *line = progress_line(shown[i], "");
        progress(f, lines[i], "");
        (void)df_buf_adds(&expected, line);
        (void)df_buf_addf(&text, "a.b: (local-exec): %s\n", shown[i]);
    }
    events(f, "{\"type\":\"provision_complete\"}\n", true);
    (void)df_buf_adds(&expected, "{\"type\":\"provision_complete\"}\n");
    assert_stream(f, "events", df_buf_str(&expected));
    flush(f);
    assert_stream(f, "log", df_buf_str(&text));
}

static void an_event_waits_only_while_its_line_may_begin_a_secret(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *one = progress_line("one", ""), *two = progress_line("hunter2", "");
    DF_FREE char *both = df_strf("%s%s", one, two);
    progress(f, "one", "");
    assert_stream(f, "events", one);
    progress(f, "hunter2", "");
    assert_stream(f, "events", one);
    flush(f);
    assert_stream(f, "events", both);
}

static void events_that_wait_have_a_limit_and_come_in_their_order(void **state)
{
    struct fixture *f = *state;
    enum { EVENTS = 50, BYTES = DF_LIMIT_EVENTS_HELD / 40 };
    DF_BUF struct df_buf shown = DF_BUF_INIT(64 * DF_MIB), all = DF_BUF_INIT(64 * DF_MIB);
    char *more = malloc(BYTES);
    memset(more, 'x', BYTES - 1);
    more[BYTES - 1] = '\0';
    for (int i = 0; i < EVENTS; i++) {
        DF_FREE char *member = df_strf("\"n\":%d,\"x\":\"%s\",", i, more);
        DF_FREE char *line = progress_line(i ? "\u2502" : "hunter2", member);
        progress(f, i ? "\u2502" : "hunter2", member);
        (void)df_buf_adds(&all, line);
        read_file(f->dir, "events", &shown);
        assert_true(all.len - shown.len <= DF_LIMIT_EVENTS_HELD + 2 * BYTES);
    }
    free(more);
    assert_true(shown.len > 0);
    flush(f);
    assert_stream(f, "events", df_buf_str(&all));
}

/* --- bytes that are no text ------------------------------------------------------------------- */

static void assert_bytes(struct fixture *f, const char *name, const char *bytes, size_t n)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_file(f->dir, name, &b);
    assert_int_equal(b.len, n);
    assert_memory_equal(b.data, bytes, n);
}

static void a_nul_in_an_event_is_one_in_the_log_and_stays_one_in_the_event(void **state)
{
    struct fixture *f = *state;
    static const char event[] = "{\"@message\":\"a\\u0000b\",\"type\":\"log\"}\n",
                      masked[] = "{\"@message\":\"\\u0000hunter2-secret\",\"type\":\"log\"}\n",
                      log[] = "a\0b\n\0***\n";
    DF_FREE char *both = df_strf("%s%s", event, "{\"@message\":\"\\u0000***\",\"type\":\"log\"}\n");
    events(f, event, true);
    events(f, masked, true);
    flush(f);
    assert_bytes(f, "log", log, sizeof log - 1);
    assert_stream(f, "events", both);
}

static void an_error_with_a_nul_is_counted_and_shown_as_a_terminal_does(void **state)
{
    struct fixture *f = *state;
    events(f,
           "{\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"error\",\"summary\":"
           "\"bad\",\"detail\":\"A\\u0000B\"}}\n",
           true);
    assert_int_equal(df_output_summary(f->output)->errors, 1);
    assert_string_equal(df_output_summary(f->output)->first_detail, "A^@B");
}

/* --- secrets in events ----------------------------------------------------------------------- */

/* Each row: a secret, an event that shows it, and what is left. */
static void a_masked_event_is_still_an_event(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *secret, *event, *left;
    } rows[] = {
        {"hunter2-secret", "{\"@message\":\"pw hunter2-secret\",\"type\":\"log\"}",
         "{\"@message\":\"pw ***\",\"type\":\"log\"}"},
        {"in \"quotes\"", "{\"@message\":\"is in \\\"quotes\\\"\",\"type\":\"log\"}",
         "{\"@message\":\"is ***\",\"type\":\"log\"}"},
        {"in \"quotes\"",
         "{\"@message\":\"{\\\"p\\\":\\\"in \\\\\\\"quotes\\\\\\\"\\\"}\",\"type\":"
         "\"log\"}",
         "{\"@message\":\"{\\\"p\\\":\\\"***\\\"}\",\"type\":\"log\"}"},
        {"caf\xc3\xa9s", "{\"@message\":\"caf\\u00e9s\",\"type\":\"log\"}",
         "{\"@message\":\"***\",\"type\":\"log\"}"},
        {"4711", "{\"type\":\"log\",\"port\":4711,\"list\":[47110,1]}",
         "{\"type\":\"log\",\"port\":\"***\",\"list\":[\"***0\",1]}"},
        {"the-key", "{\"type\":\"outputs\",\"outputs\":{\"the-key\":{\"value\":1}}}",
         "{\"type\":\"outputs\",\"outputs\":{\"***\":{\"value\":1}}}"},
        {"true", "{\"type\":\"outputs\",\"s\":\"true\"}", "{\"type\":\"outputs\",\"s\":\"***\"}"},
        {"one\ntwo\nthree", "{\"@message\":\"one\\ntwo\\nthree\",\"type\":\"log\"}",
         "{\"@message\":\"***\",\"type\":\"log\"}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        start_over(f, (const char *const[]){rows[i].secret, NULL});
        DF_FREE char *line = df_strf("%s\n", rows[i].event), *left = df_strf("%s\n", rows[i].left);
        events(f, line, false);
        assert_stream(f, "events", left);
    }
}

/* The value is no part of the text, but of the text's spelling: the end of an escape, or a bit of
 * the syntax. It may not be shown, and the line must stay JSON. */
static void an_event_that_cannot_be_masked_says_so(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *secret, *event;
    } rows[] = {
        {"nabc", "{\"@message\":\"first\\nabc\",\"type\":\"log\"}"},
        {"x\",\"type\":", "{\"@message\":\"x\",\"type\":\"log\"}"},
        {":true,", "{\"a\":true,\"type\":\"log\"}"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        start_over(f, (const char *const[]){rows[i].secret, NULL});
        DF_FREE char *line = df_strf("%s\n", rows[i].event);
        events(f, line, false);
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        read_file(f->dir, "events", &b);
        DF_JSON cJSON *event = NULL;
        assert_int_equal(df_json_parse(df_buf_str(&b), b.len, &event, NULL), 0);
        assert_string_equal(df_json_str(event, "type"), "log");
        assert_null(strstr(df_buf_str(&b), rows[i].secret));
    }
}

static void what_is_rendered_and_summed_up_is_masked_too(void **state)
{
    struct fixture *f = *state;
    events(f,
           "{\"@message\":\"Error: bad hunter2-secret\",\"type\":\"diagnostic\",\"diagnostic\":{"
           "\"severity\":\"error\",\"summary\":\"bad hunter2-secret\",\"detail\":\"is "
           "hunter2-secret.\",\"address\":\"a.hunter2-secret\",\"range\":{\"filename\":"
           "\"hunter2-secret.tf\",\"start\":{\"line\":3}},\"snippet\":{\"code\":\"x = "
           "hunter2-secret\",\"start_line\":3}}}\n",
           true);
    flush(f);
    assert_stream(f, "log",
                  "\nError: bad ***\n\n  with a.***,\n  on ***.tf line 3:\n   3: x = ***\n\nis "
                  "***.\n");
    const struct df_output_summary *s = df_output_summary(f->output);
    assert_string_equal(s->first_error, "bad *** (a.***)");
    assert_string_equal(s->first_place, "***.tf:3");
    assert_string_equal(s->first_detail, "is ***.");
}

#define output_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        output_test(text_goes_to_the_log_and_to_stdout_at_once),
        output_test(a_secret_in_two_reads_is_masked_in_both_places),
        output_test(what_is_held_back_goes_out_when_the_command_ends),
        output_test(a_note_has_a_line_of_its_own_and_is_masked),
        output_test(a_note_of_any_length_is_cut_not_lost),
        output_test(binary_bytes_pass),
        output_test(the_log_goes_on_when_nobody_reads_stdout),
        output_test(a_log_that_cannot_be_kept_is_said_once_on_stdout),
        output_test(the_events_of_the_tools_are_kept_as_they_came_and_summed_up),
        output_test(the_events_of_the_tools_read_as_their_own_text),
        output_test(events_may_come_in_pieces_of_any_size),
        output_test(the_end_of_a_plan_that_destroys_reads_so),
        output_test(a_secret_of_several_lines_is_masked_in_an_output),
        output_test(a_summary_is_forgotten_before_the_next_command),
        output_test(what_a_plan_changes_is_counted_whoever_counts_it),
        output_test(a_plan_that_only_reads_or_changes_outputs_counts_no_object),
        output_test(a_line_that_is_no_event_is_text),
        output_test(the_last_line_needs_no_newline),
        output_test(a_line_that_is_too_long_for_an_event_is_text_and_the_next_is_an_event_again),
        output_test(an_event_as_long_as_may_be_is_an_event),
        output_test(events_that_never_end_a_line_need_no_memory),
        output_test(a_secret_in_the_lines_of_a_provisioner_is_in_no_event),
        output_test(an_event_waits_only_while_its_line_may_begin_a_secret),
        output_test(events_that_wait_have_a_limit_and_come_in_their_order),
        output_test(a_nul_in_an_event_is_one_in_the_log_and_stays_one_in_the_event),
        output_test(an_error_with_a_nul_is_counted_and_shown_as_a_terminal_does),
        output_test(a_masked_event_is_still_an_event),
        output_test(an_event_that_cannot_be_masked_says_so),
        output_test(what_is_rendered_and_summed_up_is_masked_too),
    };
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
