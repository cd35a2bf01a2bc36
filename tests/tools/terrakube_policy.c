/*
 * terrakube_policy PAYLOAD.json PLAN.json WORK_DIR - df_terrakube_policies_check() from the shell,
 * with AzBuilderApiUrl and InternalSecret in the environment. Prints {"hard", "soft", "warnings",
 * "exempted"} and, if it fails, "reason" and "message"; the log goes to standard error. MASK in the
 * environment is masked. tests/integration/test_terrakube_policy.py runs it.
 */
#include "common/base/fs.h"
#include "common/http/http.h"
#include "runner/terrakube/policy.h"

struct world {
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_terrakube_api *api;
    struct df_masks *masks;
    struct df_dirs dirs;
    struct df_context c;
};

static int open_world(struct world *w, char **argv, struct df_err *err)
{
    DF_STRS struct df_strs secrets = {0};
    DF_BUF struct df_buf payload = DF_BUF_INIT(DF_MIB);
    w->settings =
        (struct df_terrakube_settings){.api_url = strdup(getenv("AzBuilderApiUrl")),
                                       .public_url = strdup(getenv("AzBuilderApiUrl")),
                                       .internal_secret = strdup(getenv("InternalSecret"))};
    if (getenv("MASK"))
        (void)df_strs_add(&secrets, getenv("MASK"));
    if (df_http_global_init(err) < 0 || df_fs_read(argv[1], &payload, err) < 0 ||
        df_terrakube_payload_read(df_buf_str(&payload), payload.len, &w->payload, err) < 0 ||
        df_terrakube_api_new(&w->settings, &w->payload, 2000, NULL, &w->api, err) < 0 ||
        df_dirs_make(argv[3], &w->dirs, err) < 0 ||
        df_masks_new(&secrets, NULL, &w->masks, err) < 0 ||
        df_report_to_directory(w->dirs.spool, &w->c.report, err) < 0 ||
        df_output_new(w->masks, w->c.report, STDERR_FILENO, &w->c.output, err) < 0 ||
        df_stop_new(-1, &w->c.stop, err) < 0)
        return -1;
    w->c.dirs = &w->dirs;
    w->c.masks = w->masks;
    w->c.source.module_dir = strdup(w->dirs.source);
    return 0;
}

static void close_world(struct world *w)
{
    df_output_free(w->c.output);
    df_report_free(w->c.report);
    df_stop_free(w->c.stop);
    df_context_free(&w->c);
    df_masks_free(w->masks);
    df_dirs_free(&w->dirs);
    df_terrakube_api_free(w->api);
    df_terrakube_payload_free(&w->payload);
    df_terrakube_settings_free(&w->settings);
}

static int print(const struct df_terrakube_verdict *v, const struct df_err *why)
{
    DF_JSON cJSON *document = cJSON_CreateObject();
    (void)df_json_add_num(document, "hard", v->hard, NULL);
    (void)df_json_add_num(document, "soft", v->soft, NULL);
    (void)df_json_add_num(document, "warnings", v->warnings, NULL);
    (void)df_json_add_num(document, "exempted", v->exempted, NULL);
    if (why->cls != DF_ERR_NONE) {
        (void)df_json_add_str(document, "reason", why->reason, NULL);
        (void)df_json_add_str(document, "message", why->message, NULL);
    }
    DF_FREE char *text = df_json_print(document);
    return text && puts(text) >= 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (df_source_is_helper())
        return df_source_help(argc, argv);
    struct world w = {0};
    struct df_err err = {0};
    struct df_terrakube_verdict verdict = {0};
    if (argc != 4)
        return 2;
    if (open_world(&w, argv, &err) == 0) {
        const struct df_terrakube_policies q = {
            .payload = &w.payload, .api = w.api, .plan_json = argv[2]};
        if (df_terrakube_policies_check(&w.c, &q, &verdict, &err) < 0)
            (void)!df_output_flush(w.c.output, NULL);
    }
    int failed = print(&verdict, &err);
    close_world(&w);
    return failed;
}
