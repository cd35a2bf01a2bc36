#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "input_world.h"
#include "runner/platform/dag.h"

/* ---- what is read ---- */

static void what_is_not_said_has_a_default(void **state)
{
    WORLD w = good_world(*state);
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.environment, "staging");
    assert_string_equal(w.in.name, "shop");
    assert_string_equal(w.in.domain, "shop.example.org");
    assert_string_equal(w.in.git_repository, "https://git.example.org/platform.git");
    assert_string_equal(w.in.git_revision, "main");
    assert_string_equal(w.in.argocd_namespace, "argocd");
    assert_string_equal(w.in.workflows_namespace, "argo");
    assert_int_equal(w.in.sync_ms, 600000);
    assert_int_equal(w.in.health_ms, 600000);
    assert_int_equal(w.in.max_attempts, 3);
    assert_int_equal(w.in.backoff_ms, 10000);
    assert_int_equal(w.in.timeout_ms, 0);
    assert_int_equal(w.in.scope.kind, DF_SCOPE_PLATFORM);
    assert_string_equal(w.in.scope.text, "platform");
    assert_false(w.in.dry_run || w.in.deletes_volumes);
    assert_null(w.in.cluster_name);
    assert_null(w.in.secrets_dir);
    assert_null(w.in.manifests_dir);
    assert_null(w.in.health);
    assert_null(w.in.dag);
    assert_int_equal(strlen(w.in.trace.trace), 32);
    assert_string_equal(w.in.trace.parent, "");
}

static void each_variable_and_key_is_read(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "config/environment.yaml",
        ENVIRONMENT
        "clusterName: prod-1\nargocdNamespace: cd\nworkflowsNamespace: wf\n"
        "timeouts: {sync: 1m, health: 90s}\nretries: {maxAttempts: 5, backoff: 250ms}\n");
    put(w.dir, "manifests/argocd/a.yaml", "");
    set("TARGET_SCOPE", "stack:foundation");
    set("DRY_RUN", "true");
    set("PV_POLICY", "delete");
    set("ACTION_TIMEOUT", "1h");
    set("METRICS_ADDR", ":9090");
    set("METRICS_TEXTFILE", "/tmp/m.prom");
    set("PUSHGATEWAY_URL", "http://push:9091");
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "https://otel.example.org:4318/");
    set("ALERTMANAGER_URL", "http://alerts:9093/am");
    set("REPORT_PATH", "/report/report.json");
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.cluster_name, "prod-1");
    assert_string_equal(w.in.argocd_namespace, "cd");
    assert_string_equal(w.in.workflows_namespace, "wf");
    assert_int_equal(w.in.sync_ms, 60000);
    assert_int_equal(w.in.health_ms, 90000);
    assert_int_equal(w.in.max_attempts, 5);
    assert_int_equal(w.in.backoff_ms, 250);
    assert_int_equal(w.in.scope.kind, DF_SCOPE_STACK);
    assert_string_equal(w.in.scope.name, "foundation");
    assert_true(w.in.dry_run && w.in.deletes_volumes);
    assert_int_equal(w.in.timeout_ms, 3600000);
    assert_string_equal(w.in.metrics_addr, ":9090");
    assert_string_equal(w.in.metrics_textfile, "/tmp/m.prom");
    assert_string_equal(w.in.pushgateway_url, "http://push:9091");
    assert_string_equal(w.in.otlp_endpoint, "https://otel.example.org:4318/");
    assert_string_equal(w.in.alertmanager_url, "http://alerts:9093/am");
    assert_string_equal(w.in.report_path, "/report/report.json");
    assert_string_equal(w.in.manifests_dir, w.manifests);
}

static void a_commit_is_a_pinned_revision_and_a_branch_is_not(void **state)
{
    WORLD w = good_world(*state);
    load(&w);
    assert_false(df_input_is_pinned(&w.in));
    put(w.dir, "config/environment.yaml",
        "name: shop\ndomain: shop.example.org\ngitRepository: file:///srv/git\n"
        "gitRevision: 0123456789abcdef0123456789abcdef01234567\n");
    load(&w);
    assert_good(&w);
    assert_true(df_input_is_pinned(&w.in));
}

static void a_mounted_dag_is_kept_as_text_with_its_path(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "config/dag.yaml", "overrides: {only: [a]}");
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.dag, "overrides: {only: [a]}");
    assert_int_equal(w.in.dag_len, strlen(w.in.dag));
    assert_true(df_ends_with(w.in.dag_path, "/config/dag.yaml"));
}

/* ---- variables ---- */

static void each_fault_of_a_variable_is_named(void **state)
{
    static const struct {
        const char *name, *value, *fault;
    } cases[] = {
        {"ENVIRONMENT", NULL, "is required: one of development, staging, production"},
        {"ENVIRONMENT", "", "is required: one of development, staging, production"},
        {"ENVIRONMENT", "prod",
         "\"prod\" is none of development, staging, production; did you mean production?"},
        {"TARGET_SCOPE", "foundation",
         "\"foundation\" is neither platform nor stack:NAME nor app:NAME"},
        {"TARGET_SCOPE", "stack:", "\"stack:\" is neither platform nor stack:NAME nor app:NAME"},
        {"TARGET_SCOPE", "app:A", "\"app:A\" is neither platform nor stack:NAME nor app:NAME"},
        {"DRY_RUN", "yes", "\"yes\" is none of false, true"},
        {"PV_POLICY", "keep", "\"keep\" is none of retain, delete"},
        {"ACTION_TIMEOUT", "10", "\"10\" is not a duration (250ms, 90s, 1h30m; a day is 24h)"},
        {"METRICS_ADDR", "9090", "must be an address and a port, as 0.0.0.0:9090 or :9090"},
        {"METRICS_ADDR", ":70000", "must be an address and a port, as 0.0.0.0:9090 or :9090"},
        {"PUSHGATEWAY_URL", "push:9091", "must be a URL that begins with https:// or http://"},
        {"PUSHGATEWAY_URL", "http:///x", "must be a URL that begins with https:// or http://"},
        {"ALERTMANAGER_URL", "https://joe:pw@alerts/", "has credentials in it: take them out"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://otel:4317",
         "must be a URL that begins with https:// or http://"},
        {"REPORT_PATH", "report.json",
         "must be an absolute path that ends in .json: the Markdown stands beside it"},
        {"REPORT_PATH", "/report.md",
         "must be an absolute path that ends in .json: the Markdown stands beside it"},
        {"METRICS_TEXTFILE", "/a\nb", "has a control character in it"},
        {"LOG_LEVEL", "verbose", "\"verbose\" is none of debug, info, warn, error"},
        {"LOG_LEVEL", "INFO", "\"INFO\" is none of debug, info, warn, error"},
        {"LOG_FORMAT", "jsn", "\"jsn\" is none of text, json; did you mean json?"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        DF_FREE char *expected = df_strf("%s: %s", cases[i].name, cases[i].fault);
        set(cases[i].name, cases[i].value);
        load(&w);
        assert_faults(&w, expected);
    }
}

static void a_plain_secret_of_ours_is_refused_by_name_and_its_value_is_not_told(void **state)
{
    static const struct {
        const char *name, *file;
    } cases[] = {
        {"GIT_PASSWORD", "git/password or git/ssh-privatekey"},
        {"git_token", "git/password or git/ssh-privatekey"},
        {"GIT_SSH_PRIVATE_KEY", "git/password or git/ssh-privatekey"},
        {"REGISTRY_PASSWORD", "registry/.dockerconfigjson"},
        {"REGISTRY_DOCKERCONFIGJSON", "registry/.dockerconfigjson"},
        {"REGISTRY_SERVICE_PORT_TOKEN", "registry/.dockerconfigjson"},
        {"ARGOCD_AUTH_TOKEN", "argocd/token"},
        {"DAYFLY_PLATFORM_TOKEN", "a file"},
        /* what a Secret of ours becomes by envFrom */
        {"password", "git/password"},
        {"TOKEN", "argocd/token"},
        {"ssh-privatekey", "git/ssh-privatekey"},
        {".dockerconfigjson", "registry/.dockerconfigjson"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        DF_FREE char *expected =
            df_strf("%s: is a secret in a plain variable, which everybody reads who can read the "
                    "pod: take it out, and mount it as %s in the folder of secrets",
                    cases[i].name, cases[i].file);
        set(cases[i].name, "hush");
        load(&w);
        assert_faults(&w, expected);
    }
}

static void what_a_ci_system_or_a_shell_has_in_its_environment_is_no_fault(void **state)
{
    static const char *const names[] = {
        "CI_JOB_TOKEN",        "CI_REGISTRY_PASSWORD", "CI_DEPENDENCY_PROXY_PASSWORD",
        "CI_DEPLOY_PASSWORD",  "GITHUB_TOKEN",         "ACTIONS_RUNTIME_TOKEN",
        "SYSTEM_ACCESS_TOKEN", "GITEA_TOKEN",          "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",   "OPENAI_API_KEY",       "DB_PASSWORD",
        "DAYFLY_TOKEN",        "SSH_PRIVATE_KEY"};
    WORLD w = good_world(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        set(names[i], "hush");
    load(&w);
    assert_good(&w);
}

static void a_variable_that_is_no_secret_is_left_alone(void **state)
{
    WORLD w = good_world(*state);
    set("GIT_PASSWORD", "");
    set("GIT_MONKEY", "x");
    set("ARGOCD_TOKEN_FILE", "/var/run/token");
    set("REGISTRY_SERVICE_PORT_TOKEN", "8200"); /* of a Service with a port named token */
    set("KUBERNETES_SERVICE_PORT", "443");
    set("KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1");
    load(&w);
    assert_good(&w);
}

/* ---- environment.yaml ---- */

static void each_fault_of_the_environment_file_has_key_and_line(void **state)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"", "environment.yaml: must be a mapping with keys"},
        {"name: [\n", "environment.yaml: bad YAML at 2:1: did not find expected node content"},
        {ENVIRONMENT "name: twice\n",
         "environment.yaml: bad YAML at line 5: the key \"name\" stands twice"},
        {"domain: a.b\ngitRepository: file:///r\ngitRevision: v1\n",
         "environment.yaml:1: name: is required"},
        {"name: a\ngitRepository: file:///r\ngitRevision: v1\n",
         "environment.yaml:1: domain: is required"},
        {"name: a\ndomain: a.b\ngitRevision: v1\n",
         "environment.yaml:1: gitRepository: is required"},
        {"name: a\ndomain: a.b\ngitRepository: file:///r\n",
         "environment.yaml:1: gitRevision: is required"},
        {ENVIRONMENT "clusterNam: x\n",
         "environment.yaml:5: clusterNam: is not known: \"clusterNam\" is none of name, domain, "
         "gitRepository, gitRevision, clusterName, argocdNamespace, workflowsNamespace, timeouts, "
         "retries; did you mean clusterName?"},
        {ENVIRONMENT "timeouts:\n  sync: 10\n",
         "environment.yaml:6: timeouts.sync: must be a duration with its unit, as 90s or 15m"},
        {ENVIRONMENT "timeouts:\n  health: '10'\n",
         "environment.yaml:6: timeouts.health: \"10\" is not a duration (250ms, 90s, 1h30m; a day "
         "is 24h)"},
        {ENVIRONMENT "timeouts:\n  wait: 1m\n",
         "environment.yaml:6: timeouts.wait: is not known: \"wait\" is none of sync, health"},
        {ENVIRONMENT "timeouts: 5m\n", "environment.yaml:5: timeouts: must be a mapping"},
        {ENVIRONMENT "retries: {maxAttempts: 0}\n",
         "environment.yaml:5: retries.maxAttempts: must be a whole number from 1 to 100"},
        {ENVIRONMENT "retries: {maxAttempts: 1.5}\n",
         "environment.yaml:5: retries.maxAttempts: must be a whole number from 1 to 100"},
        {ENVIRONMENT "retries: {maxAttempts: '3'}\n",
         "environment.yaml:5: retries.maxAttempts: must be a whole number from 1 to 100"},
        {ENVIRONMENT "argocdNamespace: ''\n", "environment.yaml:5: argocdNamespace: is empty"},
        {"name: a\ndomain: a..b\ngitRepository: file:///r\ngitRevision: v1\n",
         "environment.yaml:2: domain: must be a DNS name, as platform.example.org"},
        {"name: a\ndomain: a.b\ngitRepository: https://joe:pw@h/r\ngitRevision: v1\n",
         "environment.yaml:3: gitRepository: has credentials in it: take them out, and mount them "
         "as git/username and git/password in the folder of secrets"},
        {"name: a\ndomain: a.b\ngitRepository: git.example.org/r\ngitRevision: v1\n",
         "environment.yaml:3: gitRepository: must be an https://, http://, ssh:// or file:/// URL, "
         "or user@host:path"},
        {"name: a\ndomain: a.b\ngitRepository: ftp://h/r\ngitRevision: v1\n",
         "environment.yaml:3: gitRepository: must be an https://, http://, ssh:// or file:/// URL, "
         "or user@host:path"},
        {"name: a\ndomain: a.b\ngitRepository: https://h:x/r\ngitRevision: v1\n",
         "environment.yaml:3: gitRepository: has no valid port"},
        {"name: a\ndomain: a.b\ngitRepository: file:///r\ngitRevision: -x\n",
         "environment.yaml:4: gitRevision: may not begin with -"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        put(w.dir, "config/environment.yaml", cases[i].text);
        load(&w);
        assert_faults(&w, cases[i].fault);
    }
}

static void a_missing_environment_file_is_a_fault(void **state)
{
    WORLD w = good_world(*state);
    assert_int_equal(df_fs_remove_tree(w.config, NULL), 0);
    load(&w);
    assert_faults(&w, "environment.yaml: open DIR/config/environment.yaml: No such file or "
                      "directory; --config DIR names the folder that has it");
}

/* It would be waited for until somebody writes to it. */
static void a_file_that_is_a_pipe_is_a_fault(void **state)
{
    WORLD w = good_world(*state);
    DF_FREE char *path = df_fs_join(w.config, "health.yaml");
    assert_int_equal(mkfifo(path, 0600), 0);
    load(&w);
    assert_faults(&w, "health.yaml: DIR/config/health.yaml is not a regular file");
}

static void a_file_beyond_the_cap_is_a_fault(void **state)
{
    WORLD w = good_world(*state);
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_INPUT_FILE);
    while (text.len <= DF_LIMIT_INPUT_FILE)
        (void)df_buf_adds(&text, "# padding padding padding padding padding\n");
    put(w.dir, "config/environment.yaml", df_buf_str(&text));
    load(&w);
    assert_int_equal(w.faults.lines.len, 1);
    assert_true(df_starts_with(w.faults.lines.items[0], "environment.yaml: "));
}

static void faults_of_all_places_are_told_at_once(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "config/environment.yaml", "name: Shop\nnmae: x\n");
    put(w.dir, "config/health.yaml", "components:\n  a: {minReadyReplicas: -1}\n");
    put(w.dir, "secrets/git/username", "joe");
    set("DRY_RUN", "1");
    set("KUBECONFIG_PATH", NULL);
    set("GIT_PASSWORD", "hush");
    set("LOG_LEVEL", "loud");
    set("LOG_FORMAT", "xml");
    load(&w);
    assert_int_equal(w.faults.lines.len, 12);
    DF_FREE char *all = df_strs_join(&w.faults.lines, "\n");
    assert_null(strstr(all, "hush"));
}

/* ---- the confirmation of a teardown ---- */

static void a_teardown_needs_the_confirmation_of_this_platform(void **state)
{
    WORLD w = good_world(*state);
    set("TEARDOWN_CONFIRMATION", "destroy shop/staging");
    load_as(&w, DF_PLATFORM_TEARDOWN);
    assert_good(&w);

    static const char *const wrong[] = {"yes", "destroy shop/production", "destroy shop",
                                        "Destroy shop/staging", "destroy shop/staging "};
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        set("TEARDOWN_CONFIRMATION", wrong[i]);
        load_as(&w, DF_PLATFORM_TEARDOWN);
        assert_faults(&w, "TEARDOWN_CONFIRMATION: does not confirm the teardown of this platform: "
                          "write the word destroy, a blank, `name` of environment.yaml, a slash "
                          "and ENVIRONMENT");
    }
}

static void without_a_confirmation_nothing_is_torn_down(void **state)
{
    WORLD w = good_world(*state);
    load_as(&w, DF_PLATFORM_TEARDOWN);
    assert_faults(&w, "TEARDOWN_CONFIRMATION: is required for a teardown: write the word destroy, "
                      "a blank, `name` of environment.yaml, a slash and ENVIRONMENT");
    load_as(&w, DF_PLATFORM_VALIDATE);
    assert_good(&w);
}

/* ---- trace ---- */

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static void a_trace_goes_on(void **state)
{
    static const struct {
        const char *trace, *span, *both, *parent;
    } cases[] = {
        {TRACE, SPAN, NULL, SPAN},
        {TRACE, NULL, NULL, ""},
        {"4BF92F3577B34DA6A3CE929D0E0E4736", SPAN, NULL, SPAN},
        {NULL, NULL, "00-" TRACE "-" SPAN "-01", SPAN},
        {TRACE, SPAN, "00-11111111111111111111111111111111-2222222222222222-01", SPAN},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        set("TRACE_ID", cases[i].trace);
        set("SPAN_ID", cases[i].span);
        set("TRACEPARENT", cases[i].both);
        DF_FREE char *log = load_and_listen(&w);
        assert_good(&w);
        assert_string_equal(w.in.trace.trace, TRACE);
        assert_string_equal(w.in.trace.parent, cases[i].parent);
        assert_string_equal(log, "");
    }
}

static void a_malformed_trace_is_warned_of_and_replaced(void **state)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"TRACE_ID", "abc"},
        {"TRACE_ID", TRACE "0"},
        {"TRACE_ID", "00000000000000000000000000000000"},
        {"SPAN_ID", SPAN},
        {"TRACEPARENT", TRACE},
        {"TRACEPARENT", "00-" TRACE "-0000000000000000-01"},
        {"TRACEPARENT", "00-" TRACE "_" SPAN "-01"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        set(cases[i].name, cases[i].value);
        DF_FREE char *log = load_and_listen(&w);
        assert_good(&w);
        assert_int_equal(strspn(w.in.trace.trace, "0123456789abcdef"), 32);
        assert_string_not_equal(w.in.trace.trace, TRACE);
        assert_string_equal(w.in.trace.parent, "");
        assert_non_null(strstr(log, "a new trace begins"));
    }
}

/* ---- secrets ---- */

static void secrets_are_found_as_files(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "secrets/git/username", "joe");
    put(w.dir, "secrets/git/password", "hush");
    put(w.dir, "secrets/registry/.dockerconfigjson", "{}");
    put(w.dir, "secrets/argocd/token", "hush");
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.secrets_dir, w.secrets);
    assert_true(df_ends_with(w.in.registry_file, "/secrets/registry/.dockerconfigjson"));
}

static void each_fault_of_a_secret_is_named(void **state)
{
    static const struct {
        const char *file, *text, *fault;
    } cases[] = {
        {"git/username", "joe", "DIR/secrets/git/username: is of no use without git/password"},
        {"git/password", "hush", "DIR/secrets/git/password: is of no use without git/username"},
        {"git/ssh-privatekey", "hush",
         "DIR/secrets/git/ssh-privatekey: is of no use without git/known_hosts"},
        {"git/known_hosts", "h",
         "DIR/secrets/git/known_hosts: is of no use without git/ssh-privatekey"},
        {"argocd/token", "", "DIR/secrets/argocd/token: is empty"},
        {"registry/.dockerconfigjson/x", "a",
         "DIR/secrets/registry/.dockerconfigjson: must be a file that may be read"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        assert_int_equal(df_fs_remove_tree(w.secrets, NULL), 0);
        put(w.secrets, cases[i].file, cases[i].text);
        load(&w);
        assert_faults(&w, cases[i].fault);
    }
}

#define BY_SSH(url) "name: a\ndomain: a.b\ngitRevision: v1\ngitRepository: " url "\n"
#define NO_KEY                                                                                     \
    "environment.yaml:4: gitRepository: is read by ssh, and there is no key: mount it as "         \
    "DIR/secrets/git/ssh-privatekey, beside the server's keys in known_hosts; or name another "    \
    "folder with --secrets DIR"

static void a_repository_by_ssh_needs_its_key(void **state)
{
    static const char *const files[] = {BY_SSH("git@git.example.org:r.git"),
                                        BY_SSH("ssh://git.example.org/r.git")};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        WORLD w = good_world(*state);
        put(w.dir, "config/environment.yaml", files[i]);
        put(w.dir, "config/dag.yaml", "overrides: {only: [a]}");
        load(&w);
        assert_faults(&w, NO_KEY);
        put(w.dir, "secrets/git/ssh-privatekey", "hush");
        put(w.dir, "secrets/git/known_hosts", "h");
        load(&w);
        assert_good(&w);
        assert_int_equal(df_fs_remove_tree(w.secrets, NULL), 0);
    }
}

/* Argo CD has a key of its own, perhaps. */
static void a_repository_by_ssh_that_is_not_read_from_here_needs_no_key(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "config/environment.yaml", BY_SSH("git@git.example.org:r.git"));
    put(w.dir, "config/dag.yaml", "components: [{name: a, path: a}]");
    load(&w);
    assert_good(&w);
}

/* ---- health.yaml ---- */

static void criteria_of_health_are_read(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "config/health.yaml",
        "components:\n"
        "  web: {minReadyReplicas: 2, allowedHealth: [Healthy, Suspended],\n"
        "        ignoreResources: [Deployment/canary]}\n");
    load(&w);
    assert_good(&w);
    assert_int_equal(df_json_int(w.in.health, "web.minReadyReplicas", 0), 2);
    assert_true(df_json_has_string(df_json_at(w.in.health, "web.allowedHealth"), "Suspended"));
}

static void each_fault_of_the_criteria_has_key_and_line(void **state)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"web: {}", "health.yaml:1: web: is not known: \"web\" is none of components\n"
                    "health.yaml:1: components: is required"},
        {"components: []", "health.yaml:1: components: must be a mapping"},
        {"components:\n  web: 3", "health.yaml:2: components.web: must be a mapping"},
        {"components:\n  web:\n    minReadyReplicas: 10001",
         "health.yaml:3: components.web.minReadyReplicas: must be a whole number from 0 to 10000"},
        {"components:\n  web:\n    allowedHealth: Healthy",
         "health.yaml:3: components.web.allowedHealth: must be a list of strings"},
        {"components:\n  web:\n    allowedHealth:\n    - healthy",
         "health.yaml:4: components.web.allowedHealth[0]: \"healthy\" is none of Healthy, "
         "Progressing, Suspended, Degraded, Missing, Unknown; did you mean Healthy?"},
        {"components:\n  web:\n    ignoreResources: [a]",
         "health.yaml:3: components.web.ignoreResources[0]: must be KIND/NAME, as Deployment/web"},
        {"components:\n  web:\n    ignore: []",
         "health.yaml:3: components.web.ignore: is not known: \"ignore\" is none of "
         "minReadyReplicas, allowedHealth, ignoreResources; did you mean ignoreResources?"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        put(w.dir, "config/health.yaml", cases[i].text);
        load(&w);
        assert_faults(&w, cases[i].fault);
    }
}

static void criteria_of_a_component_that_the_dag_has_not_are_a_fault(void **state)
{
    WORLD w = good_world(*state);
    static const char dag_text[] = "components: [{name: web, path: web}]";
    const struct df_dag_text text = {"dag.yaml", dag_text, strlen(dag_text)};
    DF_DAG struct df_dag dag = {0};
    put(w.dir, "config/health.yaml", "components:\n  web: {}\n  wbe: {}\n");
    load(&w);
    assert_int_equal(df_dag_make(&text, NULL, &w.in.scope, &dag, &w.faults, NULL), 0);
    assert_good(&w);
    df_input_check_health(&w.in, &dag, &w.faults);
    assert_faults(&w, "health.yaml:3: components.wbe: the DAG has no such component; did you mean "
                      "web?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(what_is_not_said_has_a_default),
        scratch_test(each_variable_and_key_is_read),
        scratch_test(a_commit_is_a_pinned_revision_and_a_branch_is_not),
        scratch_test(a_mounted_dag_is_kept_as_text_with_its_path),
        scratch_test(each_fault_of_a_variable_is_named),
        scratch_test(a_plain_secret_of_ours_is_refused_by_name_and_its_value_is_not_told),
        scratch_test(what_a_ci_system_or_a_shell_has_in_its_environment_is_no_fault),
        scratch_test(a_variable_that_is_no_secret_is_left_alone),
        scratch_test(each_fault_of_the_environment_file_has_key_and_line),
        scratch_test(a_missing_environment_file_is_a_fault),
        scratch_test(a_file_that_is_a_pipe_is_a_fault),
        scratch_test(a_file_beyond_the_cap_is_a_fault),
        scratch_test(faults_of_all_places_are_told_at_once),
        scratch_test(a_teardown_needs_the_confirmation_of_this_platform),
        scratch_test(without_a_confirmation_nothing_is_torn_down),
        scratch_test(a_trace_goes_on),
        scratch_test(a_malformed_trace_is_warned_of_and_replaced),
        scratch_test(secrets_are_found_as_files),
        scratch_test(each_fault_of_a_secret_is_named),
        scratch_test(a_repository_by_ssh_needs_its_key),
        scratch_test(a_repository_by_ssh_that_is_not_read_from_here_needs_no_key),
        scratch_test(criteria_of_health_are_read),
        scratch_test(each_fault_of_the_criteria_has_key_and_line),
        scratch_test(criteria_of_a_component_that_the_dag_has_not_are_a_fault),
    };
    int result = cmocka_run_group_tests_name("platform_input", tests, NULL, NULL);
    clear_variables();
    return result;
}
