/*
 * fetch_source SOURCE.json CHECKOUT PRIVATE_DIR [COMMIT]: df_source_fetch() from the shell. Prints
 * one JSON document: what was fetched, or the error's class, reason and message (exit code 1).
 */
#include <signal.h>

#include "common/base/limits.h"
#include "common/http/http.h"
#include "runner/source/source.h"

static volatile bool stop;

static void on_term(int sig)
{
    (void)sig;
    stop = true;
}

static int show(cJSON *document, struct df_err *err)
{
    DF_FREE char *text = df_json_print(document);
    return text && puts(text) >= 0 ? 0 : df_fail_oom(err);
}

static int show_result(const struct df_source_result *r, struct df_err *err)
{
    DF_JSON cJSON *document = cJSON_CreateObject();
    if (df_json_add_str(document, "commit", r->commit, err) < 0 ||
        df_json_add_str(document, "treeDigest", r->tree_digest, err) < 0 ||
        df_json_add_str(document, "moduleDir", r->module_dir, err) < 0)
        return -1;
    return show(document, err);
}

static void show_error(const struct df_err *e)
{
    DF_JSON cJSON *document = cJSON_CreateObject();
    struct df_err err;
    if (df_json_add_str(document, "class", df_err_class_name(e->cls), &err) < 0 ||
        df_json_add_str(document, "reason", e->reason, &err) < 0 ||
        df_json_add_str(document, "message", e->message, &err) < 0 || show(document, &err) < 0)
        (void)fprintf(stderr, "%s\n", e->message);
}

static int fetch(char **argv, struct df_err *err)
{
    DF_JSON cJSON *source = NULL;
    struct df_source_result r;
    if (df_http_global_init(err) < 0 ||
        df_json_load(argv[1], DF_LIMIT_STEP_DOCUMENT, &source, err) < 0)
        return -1;
    const struct df_source_request q = {.source = source,
                                        .expected_commit = argv[4],
                                        .checkout = argv[2],
                                        .private_dir = argv[3],
                                        .log_fd = STDERR_FILENO,
                                        .stop = &stop};
    if (df_source_fetch(&q, &r, err) < 0)
        return -1;
    int result = show_result(&r, err);
    df_source_result_free(&r);
    return result;
}

int main(int argc, char **argv)
{
    if (df_source_is_helper())
        return df_source_help(argc, argv);
    if (argc < 4) {
        (void)fprintf(stderr, "usage: fetch_source SOURCE.json CHECKOUT PRIVATE_DIR [COMMIT]\n");
        return 2;
    }
    (void)signal(SIGTERM, on_term);
    struct df_err err = {0};
    if (fetch(argv, &err) < 0) {
        show_error(&err);
        return 1;
    }
    return 0;
}
