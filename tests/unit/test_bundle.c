#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/bundle/bundle.h"

struct place {
    char dir[64];
    char plan[96], json[96], lock[96], bundle[96], out[96];
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/dayfly-bundle-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->plan, sizeof(p->plan), "%s/plan", p->dir);
    (void)snprintf(p->json, sizeof(p->json), "%s/plan.json", p->dir);
    (void)snprintf(p->lock, sizeof(p->lock), "%s/lock", p->dir);
    (void)snprintf(p->bundle, sizeof(p->bundle), "%s/bundle", p->dir);
    (void)snprintf(p->out, sizeof(p->out), "%s/out", p->dir);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    int failed = df_fs_remove_tree(p->dir, NULL);
    free(p);
    return failed;
}

static void put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, bytes, n, NULL), 0);
    close(fd);
}

static struct df_buf slurp(const char *path)
{
    struct df_buf b = DF_BUF_INIT(8 * DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return b;
}

/* A bundle of "the plan", "{}" and, if with_lock, "locked". */
static void make(const struct place *p, bool with_lock)
{
    put(p->plan, "the plan", 8);
    put(p->json, "{}", 2);
    if (with_lock)
        put(p->lock, "locked", 6);
    DF_JSON cJSON *header = cJSON_Parse("{\"run\":\"net-1\",\"tool\":{\"version\":\"1.12.6\"}}");
    const struct df_bundle_part parts[] = {{.name = "plan", .path = p->plan},
                                           {.name = "plan.json", .path = p->json},
                                           {.name = "lock", .path = p->lock}};
    int fd = open(p->bundle, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct df_err err = {0};
    if (df_bundle_write(fd, header, parts, 3, &err) < 0)
        fail_msg("%s", err.message);
    close(fd);
}

static int verify(const char *path, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    return df_bundle_verify(fd, err);
}

static int extract(const struct place *p, const char *name, struct df_err *err)
{
    DF_CLOSE int fd = open(p->bundle, O_RDONLY);
    assert_true(fd >= 0);
    return df_bundle_extract(fd, name, p->out, err);
}

static void what_goes_in_comes_out(void **state)
{
    const struct place *p = *state;
    make(p, true);
    assert_int_equal(verify(p->bundle, NULL), 0);
    const char *expected[][2] = {{"plan", "the plan"}, {"plan.json", "{}"}, {"lock", "locked"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(expected); i++) {
        assert_int_equal(extract(p, expected[i][0], NULL), 0);
        DF_BUF struct df_buf b = slurp(p->out);
        assert_string_equal(df_buf_str(&b), expected[i][1]);
        struct stat st;
        assert_int_equal(stat(p->out, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

static void the_header_keeps_its_members_and_lists_the_parts(void **state)
{
    const struct place *p = *state;
    make(p, true);
    DF_CLOSE int fd = open(p->bundle, O_RDONLY);
    DF_JSON cJSON *header = NULL;
    assert_int_equal(df_bundle_header(fd, &header, NULL), 0);
    assert_string_equal(df_json_str(header, "run"), "net-1");
    assert_string_equal(df_json_str(header, "tool.version"), "1.12.6");
    assert_int_equal(cJSON_GetArraySize(df_json_at(header, "parts")), 3);
}

static void an_absent_file_is_left_out(void **state)
{
    const struct place *p = *state;
    make(p, false);
    assert_int_equal(verify(p->bundle, NULL), 0);
    struct df_err err = {0};
    assert_int_equal(extract(p, "lock", &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_false(df_fs_exists(p->out));
}

static void parts_larger_than_any_buffer_survive(void **state)
{
    const struct place *p = *state;
    size_t n = 3 * DF_MIB + 17;
    DF_FREE unsigned char *big = malloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (unsigned char)(i * 2654435761u >> 13);
    make(p, true);
    put(p->plan, big, n);
    DF_JSON cJSON *header = cJSON_CreateObject();
    const struct df_bundle_part parts[] = {{.name = "lock", .path = p->lock},
                                           {.name = "plan", .path = p->plan}};
    int fd = open(p->bundle, O_WRONLY | O_TRUNC);
    assert_int_equal(df_bundle_write(fd, header, parts, 2, NULL), 0);
    close(fd);
    assert_int_equal(extract(p, "plan", NULL), 0);
    DF_BUF struct df_buf b = slurp(p->out);
    assert_int_equal(b.len, n);
    assert_memory_equal(b.data, big, n);
}

/* Text of the header that is no digest or size may change unseen: the spawner's seal covers it. */
static void no_flipped_bit_changes_a_part_unseen(void **state)
{
    const struct place *p = *state;
    make(p, true);
    DF_BUF struct df_buf good = slurp(p->bundle);
    for (size_t bit = 0; bit < good.len * 8; bit++) {
        char mask = (char)(1 << (bit % 8));
        good.data[bit / 8] = (char)(good.data[bit / 8] ^ mask);
        put(p->bundle, good.data, good.len);
        good.data[bit / 8] = (char)(good.data[bit / 8] ^ mask);
        struct df_err err = {0};
        if (verify(p->bundle, &err) < 0) {
            assert_string_equal(err.reason, "PlanCorrupt");
            assert_int_equal(err.cls, DF_ERR_DENIED);
        } else if (extract(p, "plan", NULL) == 0) {
            DF_BUF struct df_buf b = slurp(p->out);
            assert_string_equal(df_buf_str(&b), "the plan");
        }
    }
}

static void a_bundle_cut_or_grown_anywhere_is_refused(void **state)
{
    const struct place *p = *state;
    make(p, true);
    DF_BUF struct df_buf good = slurp(p->bundle);
    for (size_t n = 0; n < good.len; n++) {
        put(p->bundle, good.data, n);
        struct df_err err = {0};
        assert_int_equal(verify(p->bundle, &err), -1);
        assert_string_equal(err.reason, "PlanCorrupt");
    }
    put(p->bundle, good.data, good.len + 1); /* with its NUL */
    assert_int_equal(verify(p->bundle, NULL), -1);
}

static void a_damaged_part_leaves_no_file(void **state)
{
    const struct place *p = *state;
    make(p, false);
    DF_BUF struct df_buf b = slurp(p->bundle);
    b.data[b.len - 1] = 'x'; /* the last byte of plan.json */
    put(p->bundle, b.data, b.len);
    struct df_err err = {0};
    assert_int_equal(extract(p, "plan.json", &err), -1);
    assert_string_equal(err.reason, "PlanCorrupt");
    assert_false(df_fs_exists(p->out));
    assert_int_equal(extract(p, "plan", NULL), 0);
}

static void headers_that_lie_are_refused(void **state)
{
    const struct place *p = *state;
#define SHA "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
    static const char *const headers[] = {
        "",
        "[]",
        "{}",
        "{\"parts\":{}}",
        "{\"parts\":[{}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":-1," SHA "}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":1," SHA "}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":1e300," SHA "}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":9223372036854775807," SHA "}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":\"0\"," SHA "}]}",
        "{\"parts\":[{\"name\":\"\",\"size\":0," SHA "}]}",
        "{\"parts\":[{\"size\":0," SHA "}]}",
        "{\"parts\":[{\"name\":\"plan\",\"size\":0,\"sha256\":\"E3\"}]}",
        "{\"parts\":[],\"parts\":[]}",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(headers); i++) {
        DF_BUF struct df_buf b = DF_BUF_INIT(4096);
        df_buf_addf(&b, "DFBUNDLE1\n%08zx\n%s", strlen(headers[i]), headers[i]);
        put(p->bundle, b.data, b.len);
        struct df_err err = {0};
        if (verify(p->bundle, &err) == 0)
            fail_msg("taken: %s", headers[i]);
        assert_string_equal(err.reason, "PlanCorrupt");
    }
}

static void a_header_beyond_its_cap_is_refused_before_it_is_read(void **state)
{
    const struct place *p = *state;
    put(p->bundle, "DFBUNDLE1\nffffffff\n{", 20);
    struct df_err err = {0};
    assert_int_equal(verify(p->bundle, &err), -1);
    assert_non_null(strstr(err.message, "too long"));
    DF_JSON cJSON *header = cJSON_CreateObject();
    DF_FREE char *big = calloc(1, DF_LIMIT_BUNDLE_HEADER + 1);
    memset(big, 'x', DF_LIMIT_BUNDLE_HEADER);
    cJSON_AddStringToObject(header, "run", big);
    int fd = open(p->bundle, O_WRONLY | O_TRUNC);
    assert_int_equal(df_bundle_write(fd, header, NULL, 0, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    close(fd);
}

static void a_full_disk_is_an_error_that_says_so(void **state)
{
    const struct place *p = *state;
    DF_CLOSE int full = open("/dev/full", O_WRONLY);
    if (full < 0)
        skip();
    make(p, true);
    DF_JSON cJSON *header = cJSON_CreateObject();
    const struct df_bundle_part parts[] = {{.name = "plan", .path = p->plan}};
    struct df_err err = {0};
    assert_int_equal(df_bundle_write(full, header, parts, 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_non_null(strstr(err.message, "No space left"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_goes_in_comes_out),
        T(the_header_keeps_its_members_and_lists_the_parts),
        T(an_absent_file_is_left_out),
        T(parts_larger_than_any_buffer_survive),
        T(no_flipped_bit_changes_a_part_unseen),
        T(a_bundle_cut_or_grown_anywhere_is_refused),
        T(a_damaged_part_leaves_no_file),
        T(headers_that_lie_are_refused),
        T(a_header_beyond_its_cap_is_refused_before_it_is_read),
        T(a_full_disk_is_an_error_that_says_so),
    };
    return cmocka_run_group_tests_name("bundle", tests, NULL, NULL);
}
