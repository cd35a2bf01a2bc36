/* What an image notes of the tools in it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "runner/tofu/image_records.h"
#include "tests/unit/scratch.h"

enum { HEAD = 4096 };

struct place {
    char *records, *program;
};

static void place_free(struct place *p)
{
    free(p->records);
    free(p->program);
}
#define PLACE DF_CLEANUP(place_free) struct place

/* A program of n bytes, of which the one at `changed` is another than in the other programs. */
static void write_program(const struct place *p, size_t n, size_t changed)
{
    DF_FREE char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 'x', n);
    bytes[changed] = 'y';
    assert_int_equal(df_fs_replace(p->program, bytes, n, 0755, NULL), 0);
}

/* As images/rootfs makes it: of the head, the size and a line feed. */
static void record(const struct place *p, const char *banner)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(HEAD + 64);
    char identity[DF_SHA256_HEX];
    struct stat st;
    int fd = open(p->program, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(df_fs_read_at(fd, 0, HEAD, &b, NULL), 0);
    (void)close(fd);
    (void)df_buf_addf(&b, "%lld\n", (long long)st.st_size);
    assert_int_equal(df_sha256_hex(df_buf_str(&b), b.len, identity, NULL), 0);
    DF_FREE char *path = df_strf("%s/versions/%s", p->records, identity);
    assert_int_equal(df_fs_write(path, banner, strlen(banner), 0644, NULL), 0);
}

static struct place make_place(const char *dir)
{
    struct place p = {df_fs_join(dir, "records"), df_fs_join(dir, "tofu")};
    DF_FREE char *versions = df_fs_join(p.records, "versions");
    assert_int_equal(df_fs_mkdirs(versions, 0755, NULL), 0);
    write_program(&p, 3 * HEAD, 0);
    return p;
}

static int read_record(const struct place *p, struct df_tool *ret)
{
    struct df_err err = {0};
    *ret = (struct df_tool){0};
    return df_image_record_read(p->records, p->program, ret, &err);
}

static void a_program_with_a_record_is_known_by_it(void **state)
{
    PLACE p = make_place(*state);
    struct df_tool tool;
    char version[DF_VERSION_TEXT];
    record(&p, "Terraform v1.5.7\n");
    assert_int_equal(read_record(&p, &tool), 0);
    assert_int_equal(tool.kind, DF_TOOL_TERRAFORM);
    assert_string_equal(df_version_format(&tool.version, version), "1.5.7");
    assert_null(tool.path);
}

static void a_program_in_its_place_has_no_record(void **state)
{
    PLACE p = make_place(*state);
    struct df_tool tool;
    record(&p, "OpenTofu v1.9.0\n");
    write_program(&p, 3 * HEAD, HEAD - 1); /* another head */
    assert_int_equal(read_record(&p, &tool), -1);
    write_program(&p, 3 * HEAD + 1, 0); /* another size */
    assert_int_equal(read_record(&p, &tool), -1);
    write_program(&p, 3 * HEAD, 0);
    assert_int_equal(read_record(&p, &tool), 0);
}

static void without_records_nothing_is_known(void **state)
{
    PLACE p = make_place(*state);
    struct df_tool tool;
    assert_int_equal(read_record(&p, &tool), -1);
    record(&p, "something else\n");
    assert_int_equal(read_record(&p, &tool), -1);
    record(&p, "OpenTofu v1.9.0\n");
    write_program(&p, HEAD - 1, 0); /* a script */
    assert_int_equal(read_record(&p, &tool), -1);
    assert_int_equal(unlink(p.program), 0);
    assert_int_equal(read_record(&p, &tool), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_program_with_a_record_is_known_by_it),
        scratch_test(a_program_in_its_place_has_no_record),
        scratch_test(without_records_nothing_is_known),
    };
    return cmocka_run_group_tests_name("image_records", tests, NULL, NULL);
}
