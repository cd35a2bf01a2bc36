#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/archive/archive.h"
#include "common/archive/names.h"
#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

/* One entry of a tar that is written by hand, so that it may be as wrong as a stranger's. */
struct member {
    const char *name;
    char type;        /* '0' file, '1' hard link, '2' symbolic link, '5' directory, ... */
    const char *text; /* content of a file, target of a link */
    unsigned mode;    /* 0: 0644 or 0755 */
};

static void add_block(struct df_buf *tar, const void *bytes, size_t n)
{
    static const char zeros[512];
    assert_int_equal(df_buf_add(tar, bytes, n), 0);
    if (n % 512)
        assert_int_equal(df_buf_add(tar, zeros, 512 - n % 512), 0);
}

static void add_header(struct df_buf *tar, const struct member *m, size_t size)
{
    char h[512] = {0};
    unsigned mode = m->mode ? m->mode : m->type == '5' ? 0755 : 0644;
    memcpy(h, m->name, strnlen(m->name, 100));
    (void)snprintf(h + 100, 8, "%07o", mode & 07777);
    (void)snprintf(h + 108, 8, "%07o", 0);
    (void)snprintf(h + 116, 8, "%07o", 0);
    (void)snprintf(h + 124, 12, "%011llo", (unsigned long long)size & 077777777777);
    (void)snprintf(h + 136, 12, "%011o", 0);
    h[156] = m->type;
    if (m->text && (m->type == '1' || m->type == '2'))
        memcpy(h + 157, m->text, strnlen(m->text, 100));
    memcpy(h + 257, "ustar\00000", 8);
    memset(h + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum);
    add_block(tar, h, sizeof(h));
}

static void add_member(struct df_buf *tar, const struct member *m)
{
    size_t size = m->type == '0' && m->text ? strlen(m->text) : 0;
    add_header(tar, m, size);
    if (size)
        add_block(tar, m->text, size);
}

static void add_end(struct df_buf *tar)
{
    static const char zeros[1024];
    add_block(tar, zeros, sizeof(zeros));
}

static int as_file(const struct df_buf *b)
{
    int fd = memfd_create("archive", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, df_buf_str(b), b->len, NULL), 0);
    return fd;
}

static int tar_of(const struct member *members, size_t count)
{
    DF_BUF struct df_buf tar = DF_BUF_INIT(16 * DF_MIB);
    for (size_t i = 0; i < count; i++)
        add_member(&tar, &members[i]);
    add_end(&tar);
    return as_file(&tar);
}
#define TAR(...)                                                                                   \
    tar_of((const struct member[]){__VA_ARGS__},                                                   \
           DF_ARRAY_SIZE(((const struct member[]){__VA_ARGS__})))

/* A directory to unpack into, with a canary beside it. */
struct place {
    char top[32];
    char target[64], canary[64];
};

static const char canary_text[] = "alive";

static void make_place(struct place *p)
{
    (void)snprintf(p->top, sizeof(p->top), "/tmp/df-archive-XXXXXX");
    assert_non_null(mkdtemp(p->top));
    (void)snprintf(p->target, sizeof(p->target), "%s/target", p->top);
    (void)snprintf(p->canary, sizeof(p->canary), "%s/canary", p->top);
    assert_int_equal(mkdir(p->target, 0700), 0);
    assert_int_equal(df_fs_create(p->canary, canary_text, strlen(canary_text), 0600, NULL), 0);
}

static size_t count_entries(const char *directory)
{
    size_t n = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += !df_streq(e->d_name, ".") && !df_streq(e->d_name, "..");
    (void)closedir(d);
    return n;
}

static void leave_place(struct place *p)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(p->canary, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), canary_text);
    assert_int_equal(count_entries(p->top), 2);
    assert_int_equal(df_fs_remove_tree(p->top, NULL), 0);
}

static const struct df_archive_limits roomy = {(int64_t)DF_LIMIT_ARCHIVE_BYTES,
                                               DF_LIMIT_ARCHIVE_ENTRIES};

static char *read_at(const struct place *p, const char *name)
{
    DF_FREE char *path = df_fs_join(p->target, name);
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    struct df_err err;
    if (df_fs_read(path, &b, &err) < 0)
        fail_msg("%s", err.message);
    return df_buf_take(&b);
}

static void unpack_ok(const struct place *p, int fd, bool strip)
{
    struct df_err err = {0};
    if (df_archive_unpack(fd, p->target, strip, &roomy, &err) < 0)
        fail_msg("%s", err.message);
    (void)close(fd);
}

static void files_directories_and_inner_links_are_unpacked(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    unpack_ok(&p,
              TAR({"./", '5', NULL, 0}, {"./main.tf", '0', "resource", 0},
                  {"modules//vpc/./main.tf", '0', "vpc", 0}, {"bin/run", '0', "#!", 0755},
                  {"modules/", '5', NULL, 0}, {"modules/link.tf", '2', "../main.tf", 0},
                  {"modules/gone", '2', "not/there", 0}, {"empty", '0', NULL, 0}),
              false);
    DF_FREE char *main_tf = read_at(&p, "main.tf");
    DF_FREE char *vpc = read_at(&p, "modules/vpc/main.tf");
    DF_FREE char *link = read_at(&p, "modules/link.tf");
    DF_FREE char *empty = read_at(&p, "empty");
    assert_string_equal(main_tf, "resource");
    assert_string_equal(vpc, "vpc");
    assert_string_equal(link, "resource");
    assert_string_equal(empty, "");
    struct stat st;
    DF_FREE char *run = df_fs_join(p.target, "bin/run");
    assert_int_equal(stat(run, &st), 0);
    assert_int_equal(st.st_mode & 0111, 0111);
    leave_place(&p);
}

static void a_single_top_directory_is_left_out_only_when_asked_for(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    unpack_ok(&p,
              TAR({"net-1.0/", '5', NULL, 0}, {"net-1.0/main.tf", '0', "m", 0},
                  {"net-1.0/net-1.0/x.tf", '0', "x", 0}, {"net-1.0/l", '2', "main.tf", 0}),
              true);
    DF_FREE char *main_tf = read_at(&p, "main.tf");
    DF_FREE char *x = read_at(&p, "net-1.0/x.tf");
    DF_FREE char *l = read_at(&p, "l");
    assert_string_equal(main_tf, "m");
    assert_string_equal(x, "x");
    assert_string_equal(l, "m");
    assert_int_equal(count_entries(p.target), 3);
    assert_int_equal(df_tree_empty(p.target, NULL), 0);

    unpack_ok(&p, TAR({"net/main.tf", '0', "m", 0}), false);
    DF_FREE char *kept = read_at(&p, "net/main.tf");
    assert_string_equal(kept, "m");
    assert_int_equal(df_tree_empty(p.target, NULL), 0);

    unpack_ok(&p, TAR({"net/main.tf", '0', "m", 0}, {"README", '0', "r", 0}), true);
    DF_FREE char *still = read_at(&p, "net/main.tf");
    assert_string_equal(still, "m");
    leave_place(&p);
}

static void names_beyond_ascii_survive_the_c_locale(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    unpack_ok(&p, TAR({"m\xc3\xbcller/\xe2\x82\xac.tf", '0', "m", 0}), false);
    DF_FREE char *text = read_at(&p, "m\xc3\xbcller/\xe2\x82\xac.tf");
    assert_string_equal(text, "m");
    leave_place(&p);
}

static void expect_refusal(int fd, const struct df_archive_limits *limits, bool strip,
                           enum df_err_class cls, const char *message)
{
    struct place p;
    make_place(&p);
    struct df_err err = {0};
    assert_int_equal(df_archive_unpack(fd, p.target, strip, limits, &err), -1);
    (void)close(fd);
    if (!strstr(err.message, message))
        fail_msg("expected \"%s\", got \"%s\"", message, err.message);
    assert_int_equal(err.cls, cls);
    assert_string_equal(err.reason, "SourceRefused");
    assert_int_equal(count_entries(p.target), 0);
    leave_place(&p);
}

static void hostile_entries_are_refused_by_name_and_leave_nothing(void **state)
{
    (void)state;
    static const struct {
        struct member bad;
        const char *message;
    } cases[] = {
        {{"../canary", '0', "dead", 0}, "leads out with \"..\""},
        {{"a/../../canary", '0', "dead", 0}, "leads out with \"..\""},
        {{"a/..", '5', NULL, 0}, "leads out with \"..\""},
        {{"/tmp/df-absolute", '0', "dead", 0}, "is absolute"},
        {{"//tmp/df-absolute", '0', "dead", 0}, "is absolute"},
        {{"link", '2', "/etc", 0}, "the symbolic link \"link\" leads out"},
        {{"link", '2', "..", 0}, "the symbolic link \"link\" leads out"},
        {{"link", '2', "../canary", 0}, "the symbolic link \"link\" leads out"},
        {{"d/link", '2', "../../canary", 0}, "the symbolic link \"d/link\" leads out"},
        {{"d/link", '2', "x/../../../y", 0}, "the symbolic link \"d/link\" leads out"},
        {{"link", '2', "./link", 0}, "the symbolic link \"link\" leads out"},
        {{"link", '2', "", 0}, "leads out"},
        {{"hard", '1', "ok", 0}, "\"hard\" is a hard link"},
        {{"hard", '1', "../canary", 0}, "\"hard\" is a hard link"},
        {{"null", '3', NULL, 0}, "\"null\" is a device, fifo or socket"},
        {{"disk", '4', NULL, 0}, "\"disk\" is a device, fifo or socket"},
        {{"pipe", '6', NULL, 0}, "\"pipe\" is a device, fifo or socket"},
        {{"root", '0', "x", 04755}, "\"root\" is setuid or setgid"},
        {{"group", '0', "x", 02755}, "\"group\" is setuid or setgid"},
        {{"bell\a", '0', "x", 0}, "\"bell?\" holds a control character"},
        {{"new\nline", '0', "x", 0}, "holds a control character"},
        {{"esc\033[2J", '0', "x", 0}, "holds a control character"},
        {{"latin\xe9", '0', "x", 0}, "is not UTF-8"},
        {{"ok", '0', "again", 0}, "\"ok\" is there twice"},
        {{"./ok", '0', "again", 0}, "\"ok\" is there twice"},
        {{"OK", '0', "x", 0}, "\"OK\" and \"ok\" differ by case only"},
        {{"Dir/x", '0', "x", 0}, "\"Dir\" and \"dir\" differ by case only"},
        {{"ok/x", '0', "x", 0}, "\"ok\" is a directory and something else, too"},
        {{"dir", '0', "x", 0}, "\"dir\" is there twice"},
        {{"dir", '2', "ok", 0}, "\"dir\" is there twice"},
        {{"", '0', "x", 0}, "has no name"},
        {{".", '0', "x", 0}, "has no name"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        int fd = TAR({"ok", '0', "fine", 0}, {"dir/inner", '0', "fine", 0}, cases[i].bad);
        expect_refusal(fd, &roomy, false, DF_ERR_USER, cases[i].message);
    }
}

static void nothing_is_written_through_a_link(void **state)
{
    (void)state;
    expect_refusal(TAR({"l", '2', "..", 0}, {"l/canary", '0', "dead", 0}), &roomy, false,
                   DF_ERR_USER, "\"l\" is a directory and something else, too");
    expect_refusal(TAR({"l", '2', "../canary", 0}, {"l", '0', "dead", 0}), &roomy, false,
                   DF_ERR_USER, "\"l\" is there twice");
    expect_refusal(TAR({"l", '2', "../canary", 0}, {"L", '0', "dead", 0}), &roomy, false,
                   DF_ERR_USER, "differ by case only");
}

static void links_that_only_together_lead_out_are_refused(void **state)
{
    (void)state;
    /* Each alone looks harmless: short/.. is a/b by its letters, but the parent of top in truth. */
    expect_refusal(TAR({"top/x", '0', "x", 0}, {"a/b/c/short", '2', "../../../top", 0},
                       {"out", '2', "a/b/c/short/../..", 0}),
                   &roomy, false, DF_ERR_USER, "the symbolic link \"out\" leads out");
    expect_refusal(TAR({"x", '2', "y", 0}, {"y", '2', "x", 0}), &roomy, false, DF_ERR_USER,
                   "the symbolic link \"x\" leads out");
}

static void a_link_that_leads_out_once_the_top_is_left_out_is_refused(void **state)
{
    (void)state;
    expect_refusal(TAR({"top/f", '0', "x", 0}, {"top/l", '2', "..", 0}), &roomy, true, DF_ERR_USER,
                   "the symbolic link \"l\" leads out");
}

static void names_too_long_or_too_deep_are_refused(void **state)
{
    (void)state;
    struct df_err err = {0};
    char *clean = NULL;
    char raw[DF_LIMIT_ARCHIVE_PATH + 2];
    memset(raw, 'a', sizeof(raw));
    for (size_t i = 100; i < sizeof(raw); i += 100)
        raw[i] = '/';
    raw[DF_LIMIT_ARCHIVE_PATH + 1] = '\0';
    assert_int_equal(df_name_clean(raw, &clean, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    raw[DF_LIMIT_ARCHIVE_PATH] = '\0';
    assert_int_equal(df_name_clean(raw, &clean, &err), 0);
    assert_string_equal(clean, raw);
    free(clean);

    memset(raw, 'a', 256);
    raw[256] = '\0';
    assert_int_equal(df_name_clean(raw, &clean, &err), -1);
    raw[255] = '\0';
    assert_int_equal(df_name_clean(raw, &clean, &err), 0);
    free(clean);

    for (int depth = DF_LIMIT_ARCHIVE_DEPTH; depth <= DF_LIMIT_ARCHIVE_DEPTH + 1; depth++) {
        for (int i = 0; i < depth; i++)
            memcpy(raw + 2 * i, "a/", 3);
        assert_int_equal(df_name_clean(raw, &clean, &err), depth > DF_LIMIT_ARCHIVE_DEPTH ? -1 : 0);
    }
    free(clean);
}

static void more_entries_or_bytes_than_allowed_are_refused(void **state)
{
    (void)state;
    const struct df_archive_limits few = {1000000, 2}, small = {4096, 100};
    expect_refusal(TAR({"a", '0', "1", 0}, {"b", '0', "2", 0}, {"c", '0', "3", 0}), &few, false,
                   DF_ERR_LIMIT, "more than 2 entries");
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    expect_refusal(TAR({"a", '0', text, 0}, {"b", '0', text, 0}), &small, false, DF_ERR_LIMIT,
                   "more than 4096 bytes");
}

static void a_tar_cut_off_anywhere_is_refused(void **state)
{
    (void)state;
    DF_BUF struct df_buf tar = DF_BUF_INIT(DF_MIB);
    char text[700];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    add_member(&tar, &(struct member){"a", '0', text, 0});
    add_member(&tar, &(struct member){"d/", '5', NULL, 0});
    add_member(&tar, &(struct member){"b", '0', "short", 0});
    add_end(&tar);
    size_t whole = tar.len;
    for (tar.len = 0; tar.len < whole;
         tar.len += tar.len % 512 == 511 || tar.len % 512 == 0 ? 1 : 73)
        expect_refusal(as_file(&tar), &roomy, false, DF_ERR_USER, "archive refused: ");
    tar.len = whole;
    struct place p;
    make_place(&p);
    unpack_ok(&p, as_file(&tar), false);
    leave_place(&p);
}

static void what_is_no_archive_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",         "hello",           "PK\003\004", "\037\213\010",
                                        "%PDF-1.4", "\x28\xb5\x2f\xfd"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_BUF struct df_buf b = DF_BUF_INIT(100);
        (void)df_buf_adds(&b, texts[i]);
        expect_refusal(as_file(&b), &roomy, false, DF_ERR_USER, "archive refused: ");
    }
    DF_BUF struct df_buf nothing = DF_BUF_INIT(2000);
    add_end(&nothing);
    expect_refusal(as_file(&nothing), &roomy, false, DF_ERR_USER, "it is empty");
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    expect_refusal(fd, &roomy, false, DF_ERR_USER, "not a regular file");
}

static void a_file_larger_than_its_tar_says_so_before_it_fills_the_disk(void **state)
{
    (void)state;
    DF_BUF struct df_buf tar = DF_BUF_INIT(DF_MIB);
    add_header(&tar, &(struct member){"huge", '0', NULL, 0}, (size_t)1 << 32);
    add_end(&tar);
    expect_refusal(as_file(&tar), &roomy, false, DF_ERR_USER, "archive refused: ");
}

static void one_file_is_taken_out_of_a_tool_archive(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    DF_FREE char *path = df_fs_join(p.target, "tofu");
    DF_CLOSE int fd = TAR({"LICENSE", '0', "free", 0}, {"tofu", '0', "binary", 0644});
    struct df_err err = {0};
    assert_int_equal(df_archive_unpack_one(fd, "tofu", path, 1000000, &err), 0);
    DF_FREE char *text = read_at(&p, "tofu");
    assert_string_equal(text, "binary");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);

    assert_int_equal(df_archive_unpack_one(fd, "tofu", path, 1000000, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT); /* never over a file that is there */
    (void)unlink(path);
    assert_int_equal(df_archive_unpack_one(fd, "terraform", path, 1000000, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_string_equal(err.message, "the archive holds no file \"terraform\"");
    assert_int_equal(df_archive_unpack_one(fd, "tofu", path, 100, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_false(df_fs_exists(path));
    leave_place(&p);
}

static void a_link_is_not_the_file_that_was_asked_for(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    DF_FREE char *path = df_fs_join(p.target, "tofu");
    DF_CLOSE int fd = TAR({"tofu", '2', "/bin/sh", 0});
    struct df_err err = {0};
    assert_int_equal(df_archive_unpack_one(fd, "tofu", path, 1000000, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    leave_place(&p);
}

struct seen {
    char text[1024];
    const char *skip;
};

static enum df_tree_visit note(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct seen *s = arg;
    size_t used = strlen(s->text);
    (void)snprintf(s->text + used, sizeof(s->text) - used, "%s%s ", e->path,
                   S_ISDIR(e->st->st_mode)   ? "/"
                   : S_ISLNK(e->st->st_mode) ? "@"
                                             : "");
    if (df_streq(e->name, "fail"))
        return df_fail(err, DF_ERR_USER, "told to"), DF_TREE_FAIL;
    return df_streq(e->name, s->skip) ? DF_TREE_SKIP : DF_TREE_GO_ON;
}

static void a_walk_sees_everything_once_in_byte_order_and_follows_no_link(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    unpack_ok(&p,
              TAR({"b/2", '0', "", 0}, {"b/10", '0', "", 0}, {"a", '0', "", 0},
                  {"E", '5', NULL, 0444}, {"c.d/x", '0', "", 0}, {"c/x", '0', "", 0},
                  {"z", '2', "b", 0}),
              false);
    (void)state;
    struct seen s = {0};
    assert_int_equal(df_tree_walk(p.target, note, &s, NULL), 0);
    assert_string_equal(s.text, "E/ a b/ b/10 b/2 c/ c/x c.d/ c.d/x z@ ");
    s = (struct seen){.skip = "b"};
    assert_int_equal(df_tree_walk(p.target, note, &s, NULL), 0);
    assert_string_equal(s.text, "E/ a b/ c/ c/x c.d/ c.d/x z@ ");
    DF_FREE char *bad = df_fs_join(p.target, "b/fail");
    assert_int_equal(df_fs_create(bad, "", 0, 0600, NULL), 0);
    s = (struct seen){0};
    struct df_err err = {0};
    assert_int_equal(df_tree_walk(p.target, note, &s, &err), -1);
    assert_string_equal(err.message, "told to");
    leave_place(&p);
}

static void a_tree_too_deep_to_walk_is_refused(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    DF_BUF struct df_buf path = DF_BUF_INIT(4000);
    (void)df_buf_adds(&path, p.target);
    for (int i = 0; i <= DF_LIMIT_TREE_DEPTH; i++)
        (void)df_buf_adds(&path, "/d");
    assert_int_equal(df_fs_mkdirs(df_buf_str(&path), 0700, NULL), 0);
    struct seen s = {0};
    struct df_err err = {0};
    assert_int_equal(df_tree_walk(p.target, note, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    leave_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_directories_and_inner_links_are_unpacked),
        cmocka_unit_test(a_single_top_directory_is_left_out_only_when_asked_for),
        cmocka_unit_test(names_beyond_ascii_survive_the_c_locale),
        cmocka_unit_test(hostile_entries_are_refused_by_name_and_leave_nothing),
        cmocka_unit_test(nothing_is_written_through_a_link),
        cmocka_unit_test(links_that_only_together_lead_out_are_refused),
        cmocka_unit_test(a_link_that_leads_out_once_the_top_is_left_out_is_refused),
        cmocka_unit_test(names_too_long_or_too_deep_are_refused),
        cmocka_unit_test(more_entries_or_bytes_than_allowed_are_refused),
        cmocka_unit_test(a_tar_cut_off_anywhere_is_refused),
        cmocka_unit_test(what_is_no_archive_is_refused),
        cmocka_unit_test(a_file_larger_than_its_tar_says_so_before_it_fills_the_disk),
        cmocka_unit_test(one_file_is_taken_out_of_a_tool_archive),
        cmocka_unit_test(a_link_is_not_the_file_that_was_asked_for),
        cmocka_unit_test(a_walk_sees_everything_once_in_byte_order_and_follows_no_link),
        cmocka_unit_test(a_tree_too_deep_to_walk_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
