/* The service as a mirror of providers: what it hands out, and to whom. */
#include <sys/stat.h>

#include "spawner/steps/provider_mirror.h"
#include "spawner/steps/step_auth.h"
#include "tests/unit/api_world.h"

#define SOURCE "registry.example/a/b"

static void put(const struct world *w, const char *name, const char *text)
{
    DF_FREE char *parent = df_strf("%s/mirror/" SOURCE, w->dir);
    DF_FREE char *path = df_fs_join(parent, name);
    assert_int_equal(df_fs_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(df_fs_write(path, text, strlen(text), 0644, NULL), 0);
}

static char uid[64]; /* of the step */

/* A step; ret_token: with this in its URL it may read. */
static void make_step(const struct world *w, char ret_token[65])
{
    char hash[65];
    assert_int_equal(df_random_hex(ret_token, 32, NULL), 0);
    assert_int_equal(df_sha256_hex(ret_token, 64, hash, NULL), 0);
    DF_FREE char *text =
        df_strf("{\"apiVersion\":\"" DF_API_VERSION "\",\"kind\":\"TaskAction\",\"metadata\":"
                "{\"name\":\"net-1-plan\"},\"spec\":{\"action\":\"plan\"},"
                "\"status\":{\"auth\":{\"providers\":\"%s\"}}}",
                hash);
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &doc, NULL), 0);
    DF_JSON cJSON *made = NULL;
    assert_int_equal(df_store_create(w->s.store, DF_KIND_TASK_ACTION, doc, &made, NULL), 0);
    df_copy(uid, sizeof(uid), df_json_str(made, "metadata.uid"));
}

static struct reply fetch(const struct world *w, const char *token, const char *rest)
{
    DF_FREE char *path = df_strf("/v1/steps/%s/providers/%s/%s", uid, token, rest);
    return get(w, path, "");
}

static int set_up_mirror(void **state)
{
    if (set_up(state) < 0)
        return -1;
    struct world *w = *state;
    w->config.mirror_directory = path_in(w, "mirror");
    put(w, "index.json", "{\"versions\":{\"1.0.0\":{}}}");
    put(w, "terraform-provider-b_1.0.0_linux_amd64.zip", "PK");
    put(w, ".hidden.json", "{}");
    put(w, "secret.key", "k");
    return 0;
}

static int tear_down_mirror(void **state)
{
    struct world *w = *state;
    free(w->config.mirror_directory);
    return tear_down(state);
}

static void a_step_gets_the_files_of_its_mirror(void **state)
{
    const struct world *w = *state;
    char token[65];
    make_step(w, token);
    REPLY struct reply index = fetch(w, token, SOURCE "/index.json");
    assert_int_equal(index.status, 200);
    assert_non_null(strstr(df_buf_str(&index.all), "Content-Type: application/json"));
    assert_string_equal(index.body, "{\"versions\":{\"1.0.0\":{}}}");
    REPLY struct reply zip = fetch(w, token, SOURCE "/terraform-provider-b_1.0.0_linux_amd64.zip");
    assert_int_equal(zip.status, 200);
    assert_non_null(strstr(df_buf_str(&zip.all), "Content-Type: application/zip"));
    assert_string_equal(zip.body, "PK");
}

static void nobody_gets_anything_else(void **state)
{
    const struct world *w = *state;
    char token[65];
    make_step(w, token);
    DF_FREE char *fifo = df_strf("%s/mirror/" SOURCE "/fifo.json", w->dir);
    DF_FREE char *folder = df_strf("%s/mirror/" SOURCE "/folder.zip", w->dir);
    assert_int_equal(mkfifo(fifo, 0644), 0);
    assert_int_equal(mkdir(folder, 0755), 0);
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {SOURCE "/2.0.0.json", 404},
        {SOURCE "/.hidden.json", 404},
        {SOURCE "/secret.key", 404},
        {SOURCE "/fifo.json", 404},
        {SOURCE "/folder.zip", 404},
        {SOURCE "/..%2f..%2fx.json", 400},
        {"registry.example/a/../index.json", 400},
        {"registry.example/a/%2e%2e/index.json", 400},
        {"registry.example/.a/b/index.json", 404},
        {"registry.example/a/b/c/index.json", 404},
        {"registry.example/a/index.json", 404},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        REPLY struct reply r = fetch(w, token, cases[i].path);
        if (r.status != cases[i].status)
            fail_msg("%s: %s", cases[i].path, df_buf_str(&r.all));
    }
}

static void a_stranger_gets_nothing(void **state)
{
    const struct world *w = *state;
    char token[65], other[65], hash[65];
    make_step(w, token);
    assert_int_equal(df_random_hex(other, 32, NULL), 0);
    assert_int_equal(df_sha256_hex(token, 64, hash, NULL), 0);
    REPLY struct reply wrong = fetch(w, other, SOURCE "/index.json");
    expect_problem(&wrong, 401, "Unauthorized");
    DF_FREE char *path = df_strf("/v1/steps/%s/providers/%s/" SOURCE "/index.json", uid, hash);
    REPLY struct reply by_hash = get(w, path, "");
    assert_int_equal(by_hash.status, 401);
    DF_FREE char *elsewhere = df_strf("/v1/steps/x/providers/%s/" SOURCE "/index.json", token);
    REPLY struct reply of_another = get(w, elsewhere, "");
    assert_int_equal(of_another.status, 404);
}

static void a_service_without_a_mirror_says_so(void **state)
{
    struct world *w = *state;
    char token[65];
    make_step(w, token);
    free(w->config.mirror_directory);
    w->config.mirror_directory = NULL;
    REPLY struct reply r = fetch(w, token, SOURCE "/index.json");
    assert_int_equal(r.status, 404);
    assert_non_null(strstr(r.body, "providers.mirror.directory is not set"));
}

static bool has_made(const struct world *w, const char *name)
{
    DF_FREE char *path = df_strf("%s/mirror/%s", w->dir, name);
    return df_fs_exists(path);
}

/* Each answer of "there is none" left a directory and a lock. */
static void a_provider_that_no_registry_has_leaves_nothing(void **state)
{
    struct world *w = *state;
    char token[65];
    make_step(w, token);
    assert_int_equal(df_strs_add(&w->config.mirror_registries, "127.0.0.1:1"), 0);
    REPLY struct reply r =
        fetch(w, token, "127.0.0.1:1/a/b/terraform-provider-b_1.0.0_linux_amd64.zip");
    df_strs_free(&w->config.mirror_registries);
    assert_true(r.status >= 500);
    assert_false(has_made(w, "127.0.0.1:1"));
}

static void all_that_the_directory_has_is_counted(void **state)
{
    struct world *w = *state;
    struct df_provider_usage used;
    w->config.mirror_max_mib = 3;
    assert_int_equal(df_provider_mirror_measure(&w->config, &used, NULL), 0);
    assert_int_equal(used.archives, 1);
    assert_int_equal(used.bytes, strlen("{\"versions\":{\"1.0.0\":{}}}") + strlen("PK{}k"));
    assert_int_equal(used.limit, 3 * DF_MIB);
    free(w->config.mirror_directory);
    w->config.mirror_directory = path_in(w, "absent");
    assert_int_equal(df_provider_mirror_measure(&w->config, &used, NULL), 0);
    assert_int_equal(used.bytes, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up_mirror, tear_down_mirror)
    const struct CMUnitTest tests[] = {
        T(a_step_gets_the_files_of_its_mirror),
        T(nobody_gets_anything_else),
        T(a_stranger_gets_nothing),
        T(a_service_without_a_mirror_says_so),
        T(a_provider_that_no_registry_has_leaves_nothing),
        T(all_that_the_directory_has_is_counted),
    };
    df_log_setup(DF_LOG_ERROR, false, "test");
    return cmocka_run_group_tests_name("provider_mirror", tests, NULL, NULL);
}
