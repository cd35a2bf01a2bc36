#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/listing.h"

/* "PATH=CONTENT PATH=CONTENT" */
static void list(struct df_listing *l, const char *text)
{
    DF_FREE char *copy = strdup(text);
    char *rest = copy;
    assert_non_null(copy);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        df_listing_add(l, df_hash_str(DF_HASH_BEGIN, equals + 1), word);
    }
}

static void what_was_added_changed_and_removed_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *before, *now, *words;
    } cases[] = {
        {"a=1 b=2", "a=1 b=2", ""},
        {"a=1", "a=1 b=2", "b (added)"},
        {"a=1 b=2", "b=2", "a (removed)"},
        {"a=1 b=2 c=3", "a=2 c=3 d=4", "a (changed), b (removed), d (added)"},
        /* a directory comes before its content, and both before what begins alike */
        {"a=d a/b=1 a.b=1", "a=d a/b=1 a/c=1 a.b=1", "a/c (added)"},
        {"a=d a/b=1 a.b=1", "a.b=1", "a (removed), a/b (removed)"},
        {"a=1", "a=1 b=1 c=1 d=1 e=1 f=1 g=1",
         "b (added), c (added), d (added), e (added), f (added) and 1 other"},
        {"a=1", "a=1 x\033[1my=1 \xff=1", "x?[1my (added), ? (added)"},
        {"", "a=1", ""}, /* there was none */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_CLEANUP(df_listing_free) struct df_listing before = {0}, now = {0};
        char words[DF_LISTING_WORDS];
        list(&before, cases[i].before);
        list(&now, cases[i].now);
        assert_string_equal(df_listing_differences(&before, &now, words), cases[i].words);
    }
}

static void what_is_written_is_read_and_nonsense_ends_it(void **state)
{
    (void)state;
    DF_CLEANUP(df_listing_free) struct df_listing l = {0}, read = {0};
    DF_CLOSE int fd = memfd_create("files", MFD_CLOEXEC);
    DF_BUF struct df_buf text = DF_BUF_INIT(1000);
    list(&l, "a=1 b/c=2");
    assert_int_equal(df_listing_write(&l, fd, NULL), 0);
    assert_int_equal(df_fs_write_all(fd, "nonsense\0short", 14, NULL), 0);
    assert_true(lseek(fd, 0, SEEK_SET) == 0);
    assert_int_equal(df_fs_read_fd(fd, &text, NULL), 0);
    df_listing_read(&read, df_buf_str(&text), text.len);
    assert_int_equal(read.entries.len, 2);
    assert_string_equal(read.entries.items[1], l.entries.items[1]);
}

static void a_listing_that_grows_too_large_is_dropped(void **state)
{
    (void)state;
    DF_CLEANUP(df_listing_free) struct df_listing l = {0};
    char path[1000];
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    for (size_t i = 0; i < DF_LIMIT_SOURCE_LISTING / sizeof(path) + 1; i++)
        df_listing_add(&l, i, path);
    assert_true(l.is_dropped);
    assert_int_equal(l.entries.len, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_changed_and_removed_is_named),
        cmocka_unit_test(what_is_written_is_read_and_nonsense_ends_it),
        cmocka_unit_test(a_listing_that_grows_too_large_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
