/*
 * fuzz_events - the event stream of a tool, whatever a provider makes of it, through the whole
 * output. Input: one byte that picks render or not and the size of the pieces, then the stream.
 *
 * Held: each line that reaches the events is one JSON object without the secret; the log does not
 * show the secret; one that is masked stays an event.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/json/json.h"
#include "runner/report/events.h"
#include "runner/report/output.h"
#include "tests/fuzz/directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "hunter2 \"s\"";

/* Nor is it in lines of a provisioner that follow each other. */
static void check_lines(const cJSON *event, struct df_buf *lines)
{
    if (!df_event_is_progress(event))
        df_buf_clear(lines);
    else
        (void)df_buf_adds(lines, df_json_str(event, "hook.output"));
    if (lines->len && memmem(lines->data, lines->len, secret, sizeof secret - 1))
        abort();
}

static void check_file(const char *name, bool json)
{
    DF_BUF struct df_buf lines = DF_BUF_INIT(64 * DF_MIB);
    DF_FREE char *path = df_fs_join(fuzz_directory(), name);
    DF_BUF struct df_buf b = DF_BUF_INIT(64 * DF_MIB);
    if (df_fs_read(path, &b, NULL) < 0)
        abort();
    if (b.len && memmem(b.data, b.len, secret, sizeof secret - 1))
        abort();
    for (const char *line = df_buf_str(&b); json && line < b.data + b.len;) {
        const char *end = memchr(line, '\n', (size_t)(b.data + b.len - line));
        DF_JSON cJSON *event = NULL;
        if (!end || !df_event_parse(line, (size_t)(end - line), &event))
            abort();
        check_lines(event, &lines);
        line = end + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct df_masks *masks;
    DF_STRS struct df_strs secrets = {0};
    if (!masks &&
        (df_strs_add(&secrets, secret) < 0 || df_masks_new(&secrets, NULL, &masks, NULL) < 0))
        abort();
    if (!size)
        return 0;
    bool render = data[0] & 1;
    size_t piece = 1 + (data[0] >> 1);
    struct df_report *report = NULL;
    struct df_output *output = NULL;
    if (df_report_to_directory(fuzz_directory(), &report, NULL) < 0 ||
        df_output_new(masks, report, -1, &output, NULL) < 0)
        abort();
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (df_output_events(output, (const char *)data + at, n, render, NULL) < 0)
            abort();
    }
    if (df_output_flush(output, NULL) < 0 ||
        df_changes_total(&df_output_summary(output)->changes) < 0)
        abort();
    df_output_free(output);
    df_report_free(report);
    check_file("log", false);
    check_file("events", true);
    return 0;
}
