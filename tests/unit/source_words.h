/* source_words.h - a directory with the source, checkout and private directory of a test, and the
 * fetch of a directory in it. */
#ifndef DF_TEST_SOURCE_WORDS_H
#define DF_TEST_SOURCE_WORDS_H

#include <sys/stat.h>

#include "common/base/fs.h"
#include "runner/source/source.h"

static char top[] = "/tmp/df-source-XXXXXX";

static inline char *at(const char *name)
{
    char *path = df_fs_join(top, name);
    assert_non_null(path);
    return path;
}

static inline void put(const char *name, const char *text)
{
    DF_FREE char *path = at(name);
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(df_fs_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0644, NULL), 0);
}

static inline void put_link(const char *name, const char *target)
{
    DF_FREE char *path = at(name);
    assert_int_equal(symlink(target, path), 0);
}

static inline bool has(const char *name)
{
    DF_FREE char *path = at(name);
    return df_fs_exists(path);
}

static int make_top(void **state)
{
    (void)state;
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
    (void)state;
    return df_fs_remove_tree(top, NULL);
}

/* Fetches top/module into top/checkout. hidden: what a source must not lead to; or NULL. */
static inline int fetch_with(const char *folder, bool follows, const struct df_wall *hidden,
                             struct df_source_result *r, struct df_err *err)
{
    DF_FREE char *url = df_strf("file://%s/module", top);
    DF_FREE char *checkout = at("checkout");
    DF_FREE char *private_dir = at("private");
    assert_int_equal(df_fs_mkdirs(checkout, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(private_dir, 0700, NULL), 0);
    DF_JSON cJSON *source = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", "directory", NULL), 0);
    assert_int_equal(df_json_add_str(source, "folder", folder, NULL), 0);
    assert_int_equal(df_json_add_bool(source, "followsLinks", follows, NULL), 0);
    const struct df_source_request q = {.source = source,
                                        .checkout = checkout,
                                        .private_dir = private_dir,
                                        .log_fd = -1,
                                        .hidden = hidden};
    return df_source_fetch(&q, r, err);
}

static inline int fetch_module(const char *folder, struct df_source_result *r, struct df_err *err)
{
    return fetch_with(folder, false, NULL, r, err);
}

#endif
