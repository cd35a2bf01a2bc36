/*
 * tokens.c - first the parser, then reload_changed(), which df_tokens_find() and df_tokens_check()
 * call.
 */
#include "spawner/identity/tokens.h"

#include <pthread.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"

struct df_tokens {
    char *path;
    pthread_mutex_t lock; /* guards everything below */
    struct df_token *list;
    size_t count;
    bool loaded;
    struct timespec mtime; /* mtime, inode, size: of the file at the last load */
    ino_t inode;
    off_t size;
    struct df_err fault; /* cls NONE: the file is valid */
};

static bool is_sha256(const char *s)
{
    if (strlen(s) != 64)
        return false;
    for (; *s; s++)
        if (!strchr("0123456789abcdef", *s))
            return false;
    return true;
}

static int parse_line(char *line, unsigned number, struct df_token *ret, struct df_err *err)
{
    char *at = line, *words[4] = {0};
    size_t n = 0;
    for (char *word; n < 4 && (word = strsep(&at, " \t\r"));)
        if (*word)
            words[n++] = word;
    if (n != 3)
        return df_fail(err, DF_ERR_USER, "line %u: must be `name role sha256`", number);
    /* Messages do not quote the words: any of them may be a plain token. */
    if (!df_is_dns_label(words[0]))
        return df_fail(err, DF_ERR_USER, "line %u: the name must be a DNS label (a-z, 0-9, -)",
                       number);
    if (df_role_parse(words[1], &ret->role, NULL) < 0)
        return df_fail(err, DF_ERR_USER, "line %u: the role must be read, write or admin", number);
    if (!is_sha256(words[2]))
        return df_fail(err, DF_ERR_USER,
                       "line %u: the token's SHA-256 must be 64 lower-case hex digits", number);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", words[0]);
    memcpy(ret->sha256, words[2], sizeof(ret->sha256));
    return 0;
}

static bool has_name(const struct df_token *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (df_streq(list[i].name, name))
            return true;
    return false;
}

static int add_line(char *line, unsigned number, struct df_token *list, size_t *count,
                    struct df_err *err)
{
    const char *first = line + strspn(line, " \t\r");
    if (!*first || *first == '#')
        return 0;
    struct df_token token = {0};
    if (parse_line(line, number, &token, err) < 0)
        return -1;
    if (has_name(list, *count, token.name))
        return df_fail(err, DF_ERR_USER, "line %u: the name \"%s\" is used twice", number,
                       token.name);
    if (*count == DF_LIMIT_TOKENS)
        return df_fail(err, DF_ERR_LIMIT, "more than %d tokens", DF_LIMIT_TOKENS);
    list[(*count)++] = token;
    return 0;
}

static size_t count_lines(const char *text)
{
    size_t lines = 1;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

int df_tokens_parse(const char *text, struct df_token **ret, size_t *ret_count, struct df_err *err)
{
    DF_FREE char *copy = strdup(text);
    DF_FREE struct df_token *list = calloc(count_lines(text), sizeof(*list));
    if (!copy || !list)
        return df_fail_oom(err);
    size_t count = 0;
    unsigned number = 1;
    char *at = copy;
    for (char *line; (line = strsep(&at, "\n")); number++)
        if (add_line(line, number, list, &count, err) < 0)
            return -1;
    *ret = DF_TAKE(list);
    *ret_count = count;
    return 0;
}

static int load_file(const char *path, struct df_token **ret, size_t *ret_count, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    if (df_fs_read(path, &text, err) < 0)
        return df_err_wrap(err, "token file");
    if (memchr(df_buf_str(&text), '\0', text.len))
        return df_fail(err, DF_ERR_USER, "token file %s: is not a text file", path);
    if (df_tokens_parse(df_buf_str(&text), ret, ret_count, err) < 0)
        return df_err_wrap(err, "token file %s", path);
    return 0;
}

static bool same_file(const struct df_tokens *t, const struct stat *st)
{
    return st->st_ino == t->inode && st->st_size == t->size &&
           st->st_mtim.tv_sec == t->mtime.tv_sec && st->st_mtim.tv_nsec == t->mtime.tv_nsec;
}

static void reload_changed(struct df_tokens *t)
{
    struct stat st = {0};
    if (!t->path)
        return;
    (void)stat(t->path, &st); /* a missing file counts as a version; load_file() reports it */
    if (t->loaded && same_file(t, &st))
        return;
    t->loaded = true;
    t->inode = st.st_ino;
    t->size = st.st_size;
    t->mtime = st.st_mtim;
    struct df_token *list = NULL;
    size_t count = 0;
    t->fault = (struct df_err){0};
    int result = load_file(t->path, &list, &count, &t->fault);
    /* Most likely somebody is writing the file at this moment. */
    if (result == 0 && count == 0 && t->count > 0)
        result = df_fail(&t->fault, DF_ERR_USER,
                         "token file %s: has no tokens, although it had %zu: write them anew, or "
                         "restart the service to revoke them all",
                         t->path, t->count);
    if (result < 0) {
        df_warn("the known tokens stay valid: %s", t->fault.message);
        free(list);
        return;
    }
    free(t->list);
    t->list = list;
    t->count = count;
}

int df_tokens_open(const char *path, struct df_tokens **ret, struct df_err *err)
{
    struct df_tokens *t = calloc(1, sizeof(*t));
    if (!t || (path && !(t->path = strdup(path)))) {
        free(t);
        return df_fail_oom(err);
    }
    (void)pthread_mutex_init(&t->lock, NULL);
    if (df_tokens_check(t, err) < 0) {
        df_tokens_close(t);
        return -1;
    }
    *ret = t;
    return 0;
}

int df_tokens_open_local(const char *token, struct df_tokens **ret, struct df_err *err)
{
    DF_FREE struct df_token *one = calloc(1, sizeof(*one));
    if (!one)
        return df_fail_oom(err);
    one->role = DF_ROLE_ADMIN;
    (void)snprintf(one->name, sizeof(one->name), "local");
    if (df_sha256_hex(token, strlen(token), one->sha256, err) < 0 ||
        df_tokens_open(NULL, ret, err) < 0)
        return -1;
    (*ret)->list = DF_TAKE(one);
    (*ret)->count = 1;
    return 0;
}

void df_tokens_close(struct df_tokens *t)
{
    if (!t)
        return;
    (void)pthread_mutex_destroy(&t->lock);
    free(t->list);
    free(t->path);
    free(t);
}

int df_tokens_check(struct df_tokens *t, struct df_err *err)
{
    (void)pthread_mutex_lock(&t->lock);
    reload_changed(t);
    struct df_err fault = t->fault;
    (void)pthread_mutex_unlock(&t->lock);
    if (fault.cls == DF_ERR_NONE)
        return 0;
    return df_err_pass(err, &fault);
}

enum df_role df_tokens_role(struct df_tokens *t, const char *name)
{
    enum df_role role = DF_ROLE_NONE;
    (void)pthread_mutex_lock(&t->lock);
    reload_changed(t);
    for (size_t i = 0; i < t->count; i++)
        if (df_streq(t->list[i].name, name))
            role = t->list[i].role;
    (void)pthread_mutex_unlock(&t->lock);
    return role;
}

bool df_tokens_are_of_file(const struct df_tokens *t)
{
    return t->path != NULL;
}

enum df_role df_tokens_find(struct df_tokens *t, const char *token, char name[64])
{
    char hash[DF_SHA256_HEX];
    if (df_sha256_hex(token, strlen(token), hash, NULL) < 0)
        return DF_ROLE_NONE;
    enum df_role role = DF_ROLE_NONE;
    (void)pthread_mutex_lock(&t->lock);
    reload_changed(t);
    for (size_t i = 0; i < t->count; i++) {
        if (df_secret_equal(t->list[i].sha256, hash)) {
            role = t->list[i].role;
            memcpy(name, t->list[i].name, sizeof(t->list[i].name));
        }
    }
    (void)pthread_mutex_unlock(&t->lock);
    return role;
}

static int add_holder(cJSON *to, const char *name, enum df_role role, struct df_err *err)
{
    return df_json_append(
        to, df_json_object(DF_STR("name", name), DF_STR("role", df_role_name(role))), err);
}

int df_tokens_list(struct df_tokens *t, cJSON *ret, struct df_err *err)
{
    int result = 0;
    if (!t)
        return add_holder(ret, "local", DF_ROLE_ADMIN, err);
    (void)pthread_mutex_lock(&t->lock);
    reload_changed(t);
    for (size_t i = 0; result == 0 && i < t->count; i++)
        result = add_holder(ret, t->list[i].name, t->list[i].role, err);
    (void)pthread_mutex_unlock(&t->lock);
    return result;
}
