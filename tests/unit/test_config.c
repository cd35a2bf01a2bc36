#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/config/keys.h"

static char directory[] = "/tmp/dayfly-test-XXXXXX";
static char *file_path;

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    file_path = df_fs_join(directory, "config.yaml");
    return file_path ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    free(file_path);
    return df_fs_remove_tree(directory, NULL);
}

static void write_file(const char *text)
{
    assert_int_equal(df_fs_replace(file_path, text, strlen(text), 0600, NULL), 0);
}

static char *home_env[] = {(char[]){"HOME=/home/eve"}, NULL};

static void assert_fails(const char *file, char *const *env, const char *override,
                         const char *message)
{
    DF_STRS struct df_strs overrides = {0};
    struct df_config c;
    struct df_err err = {0};
    if (override)
        assert_int_equal(df_strs_add(&overrides, override), 0);
    if (df_config_load(file, env, &overrides, &c, &err) == 0)
        fail_msg("accepted, instead of: %s", message);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" does not say \"%s\"", err.message, message);
}

static void without_anything_there_are_defaults(void **state)
{
    (void)state;
    struct df_config c;
    assert_int_equal(df_config_load(NULL, home_env, NULL, &c, NULL), 0);
    assert_string_equal(c.data_directory, "/home/eve/.local/state/dayfly");
    assert_string_equal(c.tool_cache_directory, "/home/eve/.cache/dayfly/tools");
    assert_string_equal(c.listen, "127.0.0.1:8030");
    assert_string_equal(c.store, "sqlite");
    assert_string_equal(c.engine, "local");
    assert_true(c.runs_here && !c.runs_pods);
    assert_null(c.advertise_url);
    assert_null(c.token_file);
    assert_int_equal(c.workers, 32);
    assert_int_equal(c.limit_steps, 8);
    assert_int_equal(c.tool_directories.len, 0);
    assert_true(c.tool_search_path);
    assert_int_equal(c.timeout_plan_s, DF_TIMEOUT_STEP_SECONDS);
    assert_int_equal(c.timeout_apply_s, DF_TIMEOUT_STEP_SECONDS);
    assert_int_equal(c.timeout_grace_s, DF_TIMEOUT_GRACE_SECONDS);
    assert_int_equal(c.timeout_pending_s, DF_TIMEOUT_PENDING_SECONDS);
    assert_int_equal(c.plan_life_s, DF_PLAN_LIFE_SECONDS);
    assert_int_equal(c.log_level, DF_LOG_INFO);
    assert_false(c.keep_failed);
    assert_false(c.embedded);
    df_config_free(&c);
    df_config_free(&c);
}

static void directories_follow_the_xdg_variables(void **state)
{
    (void)state;
    char *env[] = {(char[]){"HOME=/home/eve"}, (char[]){"XDG_STATE_HOME=/s"},
                   (char[]){"XDG_CACHE_HOME=relative"}, NULL};
    struct df_config c;
    assert_int_equal(df_config_load(NULL, env, NULL, &c, NULL), 0);
    assert_string_equal(c.data_directory, "/s/dayfly");
    assert_string_equal(c.tool_cache_directory, "/home/eve/.cache/dayfly/tools");
    df_config_free(&c);
    char *homeless[] = {(char[]){"DAYFLY_DATA_DIRECTORY=/d"}, NULL}, *nothing[] = {NULL};
    assert_int_equal(df_config_load(NULL, homeless, NULL, &c, NULL), 0);
    assert_string_equal(c.tool_cache_directory, "/d/tools");
    df_config_free(&c);
    assert_fails(NULL, nothing, NULL, "dataDirectory: is required when neither XDG_STATE_HOME nor");
}

static void a_file_sets_every_key(void **state)
{
    (void)state;
    write_file("dataDirectory: /d\n"
               "listen: '[::1]:9000'\n"
               "advertiseUrl: http://me:9000\n"
               "auth:\n  tokenFile: tokens\n"
               "store: kubernetes\n"
               "engine: job\n"
               "runner: {path: ./bin/dayfly-runner, keepFailed: true}\n"
               "control: {workers: 2}\n"
               "limits: {steps: 3, perNamespace: 2}\n"
               "classes: {gpu: {limit: 1, placement: {nodeSelector: {gpu: 'true'}}}, small: {}}\n"
               "workspaces: {net: {class: gpu, environment: [{name: A, value: b}]}}\n"
               "tools:\n"
               "  directories: [/opt/a, b]\n"
               "  searchPath: false\n"
               "  cacheDirectory: /c\n"
               "  index: {opentofu: https://x/, terraform: file:///t}\n"
               "  caFile: /ca.pem\n"
               "providers:\n"
               "  pluginCacheDirectory: /p\n"
               "  filesystemMirror: /f\n"
               "  networkMirror: https://m/\n"
               "  credentialsFile: /cred\n"
               "timeouts: {plan: 1m, apply: 2h, grace: 30s, pending: 1h30m, planLife: 24h}\n"
               "log: {level: debug, format: json}\n");
    struct df_config c;
    struct df_err err = {0};
    if (df_config_load(file_path, home_env, NULL, &c, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *real = realpath(directory, NULL);
    DF_FREE char *tokens = df_fs_join(real, "tokens"), *b = df_fs_join(real, "b");
    assert_string_equal(c.data_directory, "/d");
    assert_string_equal(c.listen, "[::1]:9000");
    assert_string_equal(c.advertise_url, "http://me:9000");
    assert_string_equal(c.token_file, tokens);
    assert_string_equal(c.store, "kubernetes");
    assert_string_equal(c.engine, "job");
    assert_true(df_starts_with(c.runner_path, real));
    assert_true(c.keep_failed);
    assert_int_equal(c.workers, 2);
    assert_int_equal(c.limit_steps, 3);
    assert_int_equal(c.limit_per_namespace, 2);
    assert_int_equal(df_json_int(c.classes, "gpu.limit", 0), 1);
    assert_string_equal(df_json_str(c.workspaces, "net.class"), "gpu");
    assert_int_equal(c.tool_directories.len, 2);
    assert_string_equal(c.tool_directories.items[0], "/opt/a");
    assert_string_equal(c.tool_directories.items[1], b);
    assert_false(c.tool_search_path);
    assert_string_equal(c.tool_cache_directory, "/c");
    assert_string_equal(c.tool_index_opentofu, "https://x/");
    assert_string_equal(c.tool_index_terraform, "file:///t");
    assert_string_equal(c.tool_ca_file, "/ca.pem");
    assert_string_equal(c.plugin_cache_directory, "/p");
    assert_string_equal(c.filesystem_mirror, "/f");
    assert_string_equal(c.network_mirror, "https://m/");
    assert_string_equal(c.registry_credentials_file, "/cred");
    assert_int_equal(c.timeout_plan_s, 60);
    assert_int_equal(c.timeout_apply_s, 7200);
    assert_int_equal(c.timeout_grace_s, 30);
    assert_int_equal(c.timeout_pending_s, 5400);
    assert_int_equal(c.plan_life_s, 86400);
    assert_int_equal(c.log_level, DF_LOG_DEBUG);
    assert_true(c.log_json);
    df_config_free(&c);
}

static void flags_beat_the_environment_and_that_beats_the_file(void **state)
{
    (void)state;
    write_file("control: {workers: 2}\nlimits: {steps: 2}\ntimeouts: {plan: 2s}\n"
               "tools: {directories: [/file]}\n");
    char *env[] = {(char[]){"HOME=/home/eve"},
                   (char[]){"DAYFLY_CONTROL_WORKERS=3"},
                   (char[]){"DAYFLY_LIMITS_STEPS=3"},
                   (char[]){"DAYFLY_LOG_LEVEL="},
                   (char[]){"DAYFLY_TOOLS_DIRECTORIES=/a::/b"},
                   NULL};
    DF_STRS struct df_strs overrides = {0};
    assert_int_equal(df_strs_add(&overrides, "control.workers=4"), 0);
    struct df_config c;
    assert_int_equal(df_config_load(file_path, env, &overrides, &c, NULL), 0);
    assert_int_equal(c.workers, 4);
    assert_int_equal(c.limit_steps, 3);
    assert_int_equal(c.timeout_plan_s, 2);
    assert_int_equal(c.log_level, DF_LOG_INFO);
    assert_int_equal(c.tool_directories.len, 2);
    assert_string_equal(c.tool_directories.items[1], "/b");
    df_config_free(&c);
}

static void an_empty_file_changes_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# nothing\n", "{}", "auth:\nlog: {}\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_config c;
        write_file(texts[i]);
        assert_int_equal(df_config_load(file_path, home_env, NULL, &c, NULL), 0);
        df_config_free(&c);
    }
}

static void a_file_that_is_not_there_is_a_wrong_configuration(void **state)
{
    (void)state;
    struct df_config c = {0};
    struct df_err err = {0};
    assert_int_equal(df_config_load("/nowhere.yaml", home_env, NULL, &c, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "/nowhere.yaml"));
}

static void the_first_of_several_engines_is_that_of_new_steps(void **state)
{
    (void)state;
    struct df_config c;
    write_file("dataDirectory: /d\nengines: [job, local]\n");
    assert_int_equal(df_config_load(file_path, home_env, NULL, &c, NULL), 0);
    assert_string_equal(c.engine, "job");
    assert_true(c.runs_here && c.runs_pods);
    df_config_free(&c);
}

static void an_engine_of_workflows_alone_gets_no_plans_and_applies(void **state)
{
    (void)state;
    struct df_config c;
    write_file("dataDirectory: /d\nengines: [tekton, local]\n");
    assert_int_equal(df_config_load(file_path, home_env, NULL, &c, NULL), 0);
    assert_string_equal(c.engine, "local");
    assert_true(c.runs_here && c.runs_pipelines && c.needs_cluster);
    df_config_free(&c);
}

static void faults_of_a_file_name_the_key_and_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"listen: a:1\ncolour: blue\n", ":2: colour: there is no such key"},
        {"tools:\n  cachDirectory: /x\n", ":2: tools.cachDirectory: there is no such key"},
        {"tools:\n  index:\n    tofu: /x\n", ":3: tools.index.tofu: there is no such key"},
        {"vault:\n  sources:\n    corp: {type: files, executors: ['*'], directory: x}\n",
         ":3: vault.sources: corp.directory: \"x\" must be an absolute path"},
        {"placement:\n  allow:\n    reader: {}\n",
         ":3: placement.allow.reader: there is no such key"},
        {"placement:\n  allow:\n    write:\n      step: {}\n",
         ":4: placement.allow.write.step: there is no such key"},
        {"placement:\n  allow:\n    write:\n      run: {feilds: []}\n",
         ":4: placement.allow.write.run: feilds: is not a field; did you mean \"fields\"?"},
        {"placement:\n  allow:\n    write:\n      run:\n        fields: [nodeSelektor]\n",
         "placement.allow.write.run: fields[0]: \"nodeSelektor\" is not a field of a placement; "
         "did "
         "you "
         "mean \"nodeSelector\"?"},
        {"placement:\n  allow:\n    admin:\n      executor: {volumes: [hostPath]}\n",
         ":4: placement.allow.admin.executor: volumes[0]: \"hostPath\" is not a kind of volume"},
        {"placement:\n  allow:\n    write:\n      executor: {images: ['*/runner']}\n",
         "images[0]: \"*/runner\": a * is possible at the end only"},
        {"placement:\n  allow:\n    write:\n      executor: all\n",
         ":4: placement.allow.write.executor: "},
        {"placement:\n  never:\n    images: []\n",
         ":3: placement.never.images: there is no such key"},
        {"tools.cacheDirectory: /x\n", "tools.cacheDirectory: there is no such key"},
        {"tools: /x\n", ":1: tools: must hold keys"},
        {"tools:\n  index: [a]\n", ":2: tools.index: must hold keys"},
        {"listen: [a]\n", ":1: listen: must be a single value"},
        {"store: etcd\n", "store: \"etcd\" is neither sqlite nor kubernetes"},
        {"blobs: {location: /data}\n",
         "blobs.location: \"/data\" must be s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or "
         "azblob://ACCOUNT/CONTAINER/PREFIX"},
        {"blobs: {move: true}\n", "blobs.move: is of use with blobs.location only: set that to "},
        {"blobs: {takeOver: 0123abcd}\n", "blobs.takeOver: is of use with blobs.location only"},
        {"blobs: {keyFiles: [/k]}\n", "blobs.keyFiles: is of use with blobs.location only"},
        {"blobs: {location: 'azblob://acme/states/prod?sv=2022&sig=S3CRET'}\n",
         "blobs.location: \"azblob://acme/states/prod\" has a query behind it"},
        {"blobs: {location: 'https://acme.blob.core.windows.net/states?sig=S3CRET'}\n",
         "blobs.location: \"https://acme.blob.core.windows.net/states\" has a query behind it"},
        {"engines: [docker]\n",
         "engines: \"docker\" is neither local nor job nor tekton nor ansible"},
        {"engine: {local: {isolation: maybe}}\n",
         "engine.local.isolation: \"maybe\" is neither auto, strict nor none"},
        {"engine: {job: {isolation: auto}}\n", ":1: engine.job: there is no such key"},
        {"engine: [local]\n", ":1: engine: must be a single value"},
        {"engines: [tekton]\n", "engines: \"tekton\" runs no plans and applies: add local or job"},
        {"engines: [job, ansible]\n", "ansible.apiUrl: is required for the engine ansible"},
        {"engines: [job, ansible]\nansible: {apiUrl: 'https://awx', tokenSecretRef: {name: a}}\n",
         "ansible.tokenSecretRef.key: is required for the engine ansible"},
        {"engines: [job, job]\n", "engines: \"job\" is named twice"},
        {"engines: [job]\nengine: local\n", "engine and engines are both set: keep one of them"},
        {"engines: [job, local]\nelection: {enabled: true}\n",
         "election.enabled: is of use with the engine job only"},
        {"engine: docker\n", "engine: \"docker\" is neither local nor job"},
        {"classes: {gpu: {limit: 0}}\n", "classes.gpu.limit: must be from 1 to 10000"},
        {"classes: {gpu: {limit: 1.5}}\n", "classes.gpu.limit: must be a whole number"},
        {"classes: {gpu: {limits: 1}}\n",
         "classes.gpu.limits: is not a field; did you mean \"limit\"?"},
        {"classes: {gpu: 1}\n", "classes.gpu: must be a mapping"},
        {"classes: {GPU: {}}\n", "classes.GPU: is not a valid name: at most 63 lower-case letters"},
        {"classes: {gpu: {placement: {nodeSelektor: {a: b}}}}\n",
         "classes.gpu.placement.nodeSelektor: is not a field; did you mean \"nodeSelector\"?"},
        {"classes: {gpu: {placement: {volumes: [{name: a, mountPath: /tmp, emptyDir: {}}]}}}\n",
         "classes.gpu.placement.volumes[0].mountPath: \"/tmp\" is needed by the runner itself"},
        {"workspaces: {net: {env: []}}\n",
         "workspaces.net.env: is not a field; did you mean \"environment\"?"},
        {"workspaces: {a.b: {}}\n", "is not a valid name"},
        {"workspaces: {net: {environment: [{name: PATH, value: x}]}}\n",
         "workspaces.net.environment[0].name: PATH is refused"},
        {"workspaces: {net: {environment: [{name: EPHEMERAL_CPU_LIMIT, value: lots}]}}\n",
         "workspaces.net.environment: EPHEMERAL_CPU_LIMIT"},
        {"classes: {small: {}, large: {}}\nworkspaces: {net: {class: huge}}\n",
         "workspaces.net: class: \"huge\" is not among the classes of this service: small, large"},
        {"stateService: {protocol: grpc}\n",
         "stateService.protocol: \"grpc\" is neither events nor put"},
        {"stateService: {url: states}\n",
         "stateService.url: \"states\" must be an http:// or https:// URL"},
        {"stateService: {url: http://states:8090, tokenFile: /t}\n",
         "must be an https:// URL, because a token is sent there"},
        {"kubernetes: {applyAheadFor: 1m}\n",
         "kubernetes.applyAheadFor: is of use with kubernetes.applyAhead: true only"},
        {"kubernetes:\n  placement: [a]\n", ":2: kubernetes.placement: must be a single value"},
        {"kubernetes:\n  placement: text\n", ":2: kubernetes.placement: "},
        {"kubernetes: {stepNamespace: Infra_Steps}\n",
         "kubernetes.stepNamespace: \"Infra_Steps\" is not a name of a namespace"},
        {"workflows: {serviceAccount: Fixer}\n",
         "workflows.serviceAccount: \"Fixer\" is not a name of a service account"},
        {"kubernetes: {placement: {image: x, nodeSelektor: {a: b}}}\n",
         "kubernetes.placement.nodeSelektor"},
        {"listen: {a: b}\n", ":1: listen: must be a single value"},
        {"\nlisten:\n", "listen: has no value; leave it out"},
        {"listen: ''\n", ":1: listen: is empty; leave it out"},
        {"control:\n  workers: many\n",
         ":2: control.workers: \"many\" is not a whole number from 1"},
        {"control:\n  workers: 1.5\n", "is not a whole number from 1 to 256"},
        {"control:\n  workers: 0\n", "is not a whole number from 1 to 256"},
        {"tools:\n  searchPath: yes\n", ":2: tools.searchPath: \"yes\" is neither true nor false"},
        {"timeouts:\n  plan: 60\n", ":2: timeouts.plan: \"60\" is not a duration"},
        {"retention:\n  logs: 30d\n",
         ":2: retention.logs: \"30d\" is not a duration: h is the longest unit, say 720h"},
        {"timeouts:\n  plan: 0s\n", ":2: timeouts.plan: \"0s\" is not from 1s to 168h"},
        {"log:\n  level: loud\n", ":2: log.level: log level \"loud\" is not one of"},
        {"log:\n  format: xml\n", ":2: log.format: \"xml\" is neither json nor text"},
        {"tools:\n  directories: [1]\n", ":2: tools.directories: must be a list of strings"},
        {"- listen\n", "config.yaml: must hold keys"},
        {"listen: a\nlisten: b\n", "line 2: the key \"listen\" stands twice"},
        {"listen: [\n", "config.yaml: bad YAML at "},
        {"listen: nowhere\n", "listen: \"nowhere\" must be address:port"},
        {"listen: 127.0.0.1:70000\n", "must be address:port"},
        {"listen: 0.0.0.0:80\n", "auth.tokenFile, auth.serviceAccounts or auth.grants: is "
                                 "required, because listen (0.0.0.0:80) is"},
        {"auth: {serviceAccounts: {boss: admin}}\n", "\"boss\" must be namespace/name"},
        {"auth: {serviceAccounts: {/boss: admin}}\n", "\"/boss\" must be namespace/name"},
        {"auth: {serviceAccounts: {infra/: admin}}\n", "\"infra/\" must be namespace/name"},
        {"auth: {serviceAccounts: {infra/boss: root}}\n", "infra/boss: \"root\" is not a role"},
        {"auth: {serviceAccounts: {infra/boss: 1}}\n", "infra/boss: \"\" is not a role"},
        {"server: {tls: {secret: x}}\n", "set server.tls.names"},
        {"tools: {index: {opentofu: ftp://x}}\n", "must be an https:// or file:/// URL"},
        {"providers: {networkMirror: http://x/}\n", "must be an https:// or file:/// URL"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        write_file(cases[i].text);
        assert_fails(file_path, home_env, NULL, cases[i].message);
    }
    assert_fails("/nowhere/config.yaml", home_env, NULL, "configuration file /nowhere/config.yaml");
}

static void isolation_is_strict_with_tokens_unless_it_is_set(void **state)
{
    static const struct {
        const char *file, *isolation;
    } cases[] = {
        {"log: {level: info}\n", "auto"},
        {"auth: {tokenFile: /t}\n", "strict"},
        {"auth: {serviceAccounts: {infra/boss: admin}}\n", "strict"},
        {"auth: {tokenFile: /t}\nengine: {local: {isolation: auto}}\n", "auto"},
        {"engine: {local: {isolation: none}}\n", "none"},
        {"engine: {local: {isolation: strict}}\n", "strict"},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_config c;
        struct df_err err = {0};
        write_file(cases[i].file);
        if (df_config_load(file_path, home_env, NULL, &c, &err) < 0)
            fail_msg("%s: %s", cases[i].file, err.message);
        assert_string_equal(c.isolation, cases[i].isolation);
        assert_string_equal(c.engine, "local");
        df_config_free(&c);
    }
}

static void a_misspelt_variable_of_our_sections_is_an_error(void **state)
{
    (void)state;
    char *wrong[] = {(char[]){"HOME=/h"}, (char[]){"DAYFLY_TOOLS_CACHE_DIR=/x"}, NULL};
    assert_fails(NULL, wrong, NULL, "DAYFLY_TOOLS_CACHE_DIR: there is no such key");
    char *bad[] = {(char[]){"HOME=/h"}, (char[]){"DAYFLY_CONTROL_WORKERS=x"}, NULL};
    assert_fails(NULL, bad, NULL, "DAYFLY_CONTROL_WORKERS: \"x\" is not a whole number");
    /* Variables of clients, and those that Kubernetes makes of a Service named dayfly. */
    char *others[] = {(char[]){"HOME=/h"},
                      (char[]){"DAYFLY_SERVER=http://x"},
                      (char[]){"DAYFLY_TOKEN=t"},
                      (char[]){"DAYFLY_PORT=tcp://10.0.0.1:80"},
                      (char[]){"DAYFLY_SERVICE_HOST=10.0.0.1"},
                      NULL};
    struct df_config c;
    assert_int_equal(df_config_load(NULL, others, NULL, &c, NULL), 0);
    df_config_free(&c);
}

static void a_flag_must_be_a_key_and_a_value(void **state)
{
    (void)state;
    assert_fails(NULL, home_env, "colour=blue", "colour=blue: there is no such key");
    assert_fails(NULL, home_env, "listen", "listen: there is no such key (key=value");
    assert_fails(NULL, home_env, "control.workers=-1", "control.workers: \"-1\" is not a whole");
}

static void tls_keys_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"server: {tls: {certFile: c}}\n", "certFile and keyFile are set together"},
        {"server: {tls: {keyFile: k}}\n", "certFile and keyFile are set together"},
        {"server: {tls: {certFile: c, keyFile: k}}\n", "advertiseUrl: is required"},
        {"advertiseUrl: https://x\nserver: {tls: {certFile: c, keyFile: k, names: [x]}}\n",
         "leave them out"},
        {"advertiseUrl: http://x\nserver: {tls: {names: [x]}}\n", "must be an https:// URL"},
        {"server: {tls: {caFile: x}}\n", "certFile only"},
        {"server: {tls: {names: [7]}}\n", "must be a list of strings"},
        {"server: {tls: {mode: x}}\n", "server.tls.mode"},
        {"server: {tls: {names: ['*.example']}}\n", "is not a host name or address"},
        {"server: {tls: {names: ['a b']}}\n", "is not a host name or address"},
        {"claim: {jwksUrl: 'https://x'}\n", "claim.issuer: is required"},
        {"claim: {issuer: x, jwksUrl: 'http://x'}\n", "must be an https:// or file:/// URL"},
        {"claim: {caFile: x}\n", "claim.jwksUrl only"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        assert_int_equal(df_fs_replace(file_path, cases[i][0], strlen(cases[i][0]), 0600, NULL), 0);
        char *env[] = {(char[]){"HOME=/h"}, NULL};
        struct df_config c;
        struct df_err err = {0};
        assert_int_equal(df_config_load(file_path, env, NULL, &c, &err), -1);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("%s: %s", cases[i][0], err.message);
    }
}

static void a_host_name_has_the_length_that_dns_takes(void **state)
{
    (void)state;
    char text[DF_LIMIT_HOST + 64];
    char *env[] = {(char[]){"HOME=/h"}, NULL};
    for (int n = DF_LIMIT_HOST; n <= DF_LIMIT_HOST + 1; n++) {
        struct df_config c;
        (void)snprintf(text, sizeof(text), "server: {tls: {names: [%0*d]}}\n", n, 0);
        char *list = strchr(text, '[');
        *strchr(list, '0') = 'x'; /* text, not a number */
        assert_int_equal(df_fs_replace(file_path, text, strlen(text), 0600, NULL), 0);
        int loaded = df_config_load(file_path, env, NULL, &c, NULL);
        assert_int_equal(loaded, n > DF_LIMIT_HOST ? -1 : 0);
        if (loaded == 0)
            df_config_free(&c);
    }
}

static void the_names_of_a_certificate_are_a_list_of_words(void **state)
{
    (void)state;
    const char text[] = "server: {tls: {names: [a.example, '::1']}}\n";
    char *env[] = {(char[]){"HOME=/h"}, NULL, NULL};
    struct df_config c;
    assert_int_equal(df_fs_replace(file_path, text, strlen(text), 0600, NULL), 0);
    assert_int_equal(df_config_load(file_path, env, NULL, &c, NULL), 0);
    assert_true(df_config_has_tls(&c));
    assert_string_equal(c.tls_names.items[0], "a.example");
    assert_string_equal(c.tls_names.items[1], "::1");
    df_config_free(&c);
    env[1] = (char[]){"DAYFLY_SERVER_TLS_NAMES=b.example:c.example"};
    assert_int_equal(df_config_load(file_path, env, NULL, &c, NULL), 0);
    assert_int_equal(c.tls_names.len, 2);
    assert_string_equal(c.tls_names.items[1], "c.example");
    df_config_free(&c);
}

/* Kubernetes puts such variables into every pod beside a Service of this name. */
static void variables_of_a_service_named_dayfly_server_are_no_keys(void **state)
{
    (void)state;
    char *env[] = {(char[]){"HOME=/h"}, (char[]){"DAYFLY_SERVER_SERVICE_HOST=10.96.0.7"},
                   (char[]){"DAYFLY_SERVER_PORT_8030_TCP=x"}, NULL};
    struct df_config c;
    assert_int_equal(df_config_load(NULL, env, NULL, &c, NULL), 0);
    df_config_free(&c);
}

static void every_key_may_be_set_by_its_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < df_key_count; i++) {
        const char *name = df_keys[i].name, *fallback = df_keys[i].fallback;
        char entry[200] = "DAYFLY_";
        size_t n = strlen(entry);
        for (const char *p = name; *p; p++) {
            if (isupper((unsigned char)*p))
                entry[n++] = '_';
            entry[n++] = *p == '.' ? '_' : (char)toupper((unsigned char)*p);
        }
        bool address = df_streq(name, "listen"), format = df_streq(name, "log.format");
        bool host = strstr("server.tls.names kubernetes.stepNamespace", name) != NULL;
        bool object = df_streq(name, "kubernetes.placement"), policies = df_streq(name, "policies");
        bool accounts = df_streq(name, "auth.serviceAccounts");
        bool secret = df_streq(name, "server.tls.secret");
        bool rule = df_starts_with(name, "placement.allow.");
        bool named = df_streq(name, "classes") || df_streq(name, "workspaces");
        bool engine = df_streq(name, "engine") || df_streq(name, "engines");
        bool isolation = df_streq(name, "engine.local.isolation");
        bool location = df_streq(name, "blobs.location");
        bool sources = df_streq(name, "vault.sources"), grants = df_streq(name, "auth.grants");
        const char *value =
            fallback    ? fallback
            : engine    ? "job"
            : isolation ? "none"
            : location  ? "s3://bucket/prefix"
            : format    ? "json"
            : accounts  ? "{\"infra/boss\":\"admin\"}"
            : host      ? "x"
            : object    ? "{\"image\":\"x\"}"
            : rule      ? "{\"fields\":[\"*\"]}"
            : named     ? "{\"x\":{}}"
            : grants
                ? "{\"x\":{\"to\":{\"users\":[\"a\"]},\"on\":{\"all\":true},\"preset\":\"read\"}}"
            : policies ? "{\"x\":{\"level\":\"hard\",\"program\":[\"x\"]}}"
            : sources  ? "{\"x\":{\"type\":\"files\",\"directory\":\"/x\",\"executors\":[]}}"
                       : "https://x/";
        (void)snprintf(entry + n, sizeof(entry) - n, "=%s", address ? "[::1]:0" : value);
        /* Some make sense together only; of two with one name the first counts. */
        bool pulls = df_streq(name, "providers.mirror.registries");
        bool files = pulls || (df_starts_with(name, "server.tls.") &&
                               !df_streq(name, "server.tls.names") && !secret);
        bool claim = df_starts_with(name, "claim."), bucket = df_starts_with(name, "blobs.");
        bool people = df_starts_with(name, "auth.oidc.") || df_streq(name, "auth.grants");
        char *env_of_people[] = {(char[]){"HOME=/h"},
                                 entry,
                                 (char[]){"DAYFLY_AUTH_OIDC_ISSUER=https://x/"},
                                 (char[]){"DAYFLY_AUTH_OIDC_AUDIENCE=x"},
                                 (char[]){"DAYFLY_AUTH_GRANTS={}"},
                                 NULL};
        char *env[] = {(char[]){"HOME=/h"},
                       entry,
                       (char[]){"DAYFLY_ADVERTISE_URL=https://x/"},
                       (char[]){"DAYFLY_CLAIM_ISSUER=https://x/"},
                       claim    ? (char[]){"DAYFLY_CLAIM_JWKS_URL=https://x/"}
                       : secret ? (char[]){"DAYFLY_SERVER_TLS_NAMES=x"}
                       : bucket ? (char[]){"DAYFLY_BLOBS_LOCATION=s3://bucket/prefix"}
                                : NULL,
                       NULL};
        char *env_of_files[] = {(char[]){"HOME=/h"},
                                entry,
                                (char[]){"DAYFLY_ADVERTISE_URL=https://x/"},
                                (char[]){"DAYFLY_SERVER_TLS_CERT_FILE=/c"},
                                (char[]){"DAYFLY_SERVER_TLS_KEY_FILE=/k"},
                                pulls ? (char[]){"DAYFLY_PROVIDERS_MIRROR_DIRECTORY=/m"} : NULL,
                                NULL};
        struct df_config c;
        struct df_err err = {0};
        if (df_config_load(NULL,
                           files    ? env_of_files
                           : people ? env_of_people
                                    : env,
                           NULL, &c, &err) < 0)
            fail_msg("%s: %s", entry, err.message);
        df_config_free(&c);
    }
}

/* ---- registry credentials ---- */

static int load_credentials(const char *text, mode_t mode, cJSON **ret, struct df_err *err)
{
    struct df_config c = {.registry_credentials_file = file_path};
    assert_int_equal(df_fs_replace(file_path, text, strlen(text), mode, NULL), 0);
    return df_config_credentials(&c, ret, err);
}

static void registry_credentials_are_hosts_and_tokens(void **state)
{
    (void)state;
    struct df_config none = {0};
    cJSON *j = NULL;
    assert_int_equal(df_config_credentials(&none, &j, NULL), 0);
    assert_null(j->child);
    df_json_wipe(j);
    assert_int_equal(load_credentials("a.example: s3cret\n", 0600, &j, NULL), 0);
    assert_string_equal(cJSON_GetObjectItem(j, "a.example")->valuestring, "s3cret");
    df_json_wipe(j);
}

static void registry_credentials_that_others_may_read_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mode_t mode;
        const char *message;
    } cases[] = {
        {"a: s3cret\n", 0644, "others may read it"},
        {"a: s3cret\n", 0660, "others may read it"},
        {"- s3cret\n", 0600, "must be a list of"},
        {"a: [s3cret]\n", 0600, "the token of \"a\""},
        {"a: ''\n", 0600, "the token of \"a\""},
        {"a: s3cret\na: b\n", 0600, "stands twice"},
        {"", 0600, "must be a list of"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        cJSON *j = NULL;
        assert_int_equal(load_credentials(cases[i].text, cases[i].mode, &j, &err), -1);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_non_null(strstr(err.message, "providers.credentialsFile"));
        assert_null(strstr(err.message, "s3cret"));
    }
}

static void what_no_step_may_have_comes_from_several_keys(void **state)
{
    (void)state;
    struct df_config c;
    DF_CLEANUP(df_never_free) struct df_never never = {0};
    write_file(
        "server:\n  tls: {names: [a], secret: authority}\n"
        "ansible: {tokenSecretRef: {name: awx, key: token}}\n"
        "auth:\n  serviceAccounts: {jobs/boss: admin, jobs/ci: write, other/far: admin}\n"
        "placement:\n  never: {serviceAccounts: [mine], secrets: [tokens], claims: [data]}\n");
    assert_int_equal(df_config_load(file_path, home_env, NULL, &c, NULL), 0);
    assert_int_equal(df_config_never(&c, "jobs", "jobs/spawner", &never, NULL), 0);
    static const struct {
        const char *name;
        bool is_in;
    } accounts[] = {
        {"mine", true}, {"boss", true}, {"spawner", true}, {"ci", false}, {"far", false}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(accounts); i++)
        assert_int_equal(df_strs_has(&never.accounts, accounts[i].name), accounts[i].is_in);
    assert_true(df_strs_has(&never.secrets, "tokens"));
    assert_true(df_strs_has(&never.secrets, "authority"));
    assert_true(df_strs_has(&never.secrets, "awx"));
    assert_true(df_strs_has(&never.claims, "data"));
    df_config_free(&c);
}

static void a_rule_of_the_policy_is_read_from_file_and_environment(void **state)
{
    (void)state;
    struct df_config c;
    char *env[] = {(char[]){"HOME=/home/eve"},
                   (char[]){"DAYFLY_PLACEMENT_ALLOW_WRITE_RUN={\"fields\":[\"labels\"]}"}, NULL};
    write_file("placement:\n  allow:\n    write:\n      executor: {secrets: [cloud-*]}\n");
    assert_int_equal(df_config_load(file_path, env, NULL, &c, NULL), 0);
    const struct df_allow allow = df_config_allow(&c, NULL);
    const struct df_allow_cell executor = {DF_ALLOW_WRITE, DF_ALLOW_EXECUTOR};
    const struct df_allow_cell run = {DF_ALLOW_WRITE, DF_ALLOW_RUN};
    assert_true(df_allow_has(&allow, &executor, DF_ALLOW_SECRETS, "cloud-ca"));
    assert_false(df_allow_has(&allow, &executor, DF_ALLOW_SECRETS, "other"));
    assert_true(df_allow_has(&allow, &executor, DF_ALLOW_FIELDS, "env"));
    assert_true(df_allow_has(&allow, &run, DF_ALLOW_FIELDS, "labels"));
    assert_false(df_allow_has(&allow, &run, DF_ALLOW_FIELDS, "nodeSelector"));
    df_config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_anything_there_are_defaults),
        cmocka_unit_test(directories_follow_the_xdg_variables),
        cmocka_unit_test(a_file_sets_every_key),
        cmocka_unit_test(flags_beat_the_environment_and_that_beats_the_file),
        cmocka_unit_test(an_empty_file_changes_nothing),
        cmocka_unit_test(a_file_that_is_not_there_is_a_wrong_configuration),
        cmocka_unit_test(the_first_of_several_engines_is_that_of_new_steps),
        cmocka_unit_test(an_engine_of_workflows_alone_gets_no_plans_and_applies),
        cmocka_unit_test(faults_of_a_file_name_the_key_and_the_line),
        cmocka_unit_test(isolation_is_strict_with_tokens_unless_it_is_set),
        cmocka_unit_test(a_misspelt_variable_of_our_sections_is_an_error),
        cmocka_unit_test(a_flag_must_be_a_key_and_a_value),
        cmocka_unit_test(tls_keys_that_do_not_fit_together_are_refused),
        cmocka_unit_test(a_host_name_has_the_length_that_dns_takes),
        cmocka_unit_test(the_names_of_a_certificate_are_a_list_of_words),
        cmocka_unit_test(variables_of_a_service_named_dayfly_server_are_no_keys),
        cmocka_unit_test(every_key_may_be_set_by_its_variable),
        cmocka_unit_test(registry_credentials_are_hosts_and_tokens),
        cmocka_unit_test(registry_credentials_that_others_may_read_are_refused),
        cmocka_unit_test(what_no_step_may_have_comes_from_several_keys),
        cmocka_unit_test(a_rule_of_the_policy_is_read_from_file_and_environment),
    };
    return cmocka_run_group_tests_name("config", tests, make_directory, remove_directory);
}
