#include "common/terrakube/log_read.h"

#include <inttypes.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/terrakube/jdk.h"

struct reading {
    struct df_redis *redis;
    const char *step;
    struct df_buf key; /* of the job's stream */
    char from[48];     /* the first id that was not read */
    size_t left;       /* bytes that may still be written */
    bool is_full;
    int fd;
};

static void free_reading(struct reading *r)
{
    df_buf_free(&r->key);
}

/* ---- one entry: [id, [name, value, ...]] ---- */

/* The value of a field, as text; empty: there is none. */
static int take_value(const struct df_redis_answer *fields, const char *name, struct df_buf *ret,
                      struct df_err *err)
{
    for (int64_t i = 0; i + 1 < fields->integer; i += 2) {
        const struct df_buf *key = &fields->items[i].bytes, *value = &fields->items[i + 1].bytes;
        DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_REDIS_ANSWER);
        if (df_jdk_read(key->data, key->len, &text, NULL) < 0 || !df_streq(df_buf_str(&text), name))
            continue;
        return df_jdk_read(value->data, value->len, ret, err);
    }
    return 0;
}

static int write_line(struct reading *r, struct df_buf *line, struct df_err *err)
{
    static const char more[] = "[more lines of this step were in Redis than are saved]\n";
    if (df_buf_addc(line, '\n') < 0)
        return df_buf_check(line, err);
    r->is_full = line->len > r->left;
    if (r->is_full)
        return df_fs_write_all(r->fd, more, strlen(more), err);
    r->left -= line->len;
    return df_fs_write_all(r->fd, line->data, line->len, err);
}

/* An entry that is none of an executor's is nobody's line. */
static int read_entry(struct reading *r, const struct df_redis_answer *entry, struct df_err *err)
{
    DF_BUF struct df_buf step = DF_BUF_INIT(DF_LIMIT_REDIS_ANSWER);
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_LIMIT_REDIS_ANSWER);
    const struct df_redis_answer *fields = &entry->items[1];
    if (take_value(fields, "stepId", &step, NULL) < 0 || !df_streq(df_buf_str(&step), r->step) ||
        take_value(fields, "output", &line, NULL) < 0)
        return 0;
    return write_line(r, &line, err);
}

/* ---- pages ---- */

/* Ids are "<ms>-<number>". Ranges that begin behind an id are not known to Redis before 6.2. */
static int go_behind(struct reading *r, const char *id, struct df_err *err)
{
    int64_t ms = 0, number = 0;
    const char *at = id;
    if (!df_scan_i64(&at, &ms) || *at++ != '-' || !df_scan_i64(&at, &number) || *at)
        return df_fail(err, DF_ERR_SYSTEM, "\"%.60s\" is no id of a stream of Redis", id);
    (void)snprintf(r->from, sizeof(r->from), "%" PRId64 "-%" PRId64, ms, number + 1);
    return 0;
}

static int ask_page(const struct reading *r, int count, struct df_redis_answer *ret,
                    struct df_err *err)
{
    char number[16];
    (void)snprintf(number, sizeof(number), "%d", count);
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("XRANGE"), {r->key.data, r->key.len},
                                        DF_REDIS_TEXT(r->from),  DF_REDIS_TEXT("+"),
                                        DF_REDIS_TEXT("COUNT"),  DF_REDIS_TEXT(number)};
    return df_redis_command(r->redis, args, DF_ARRAY_SIZE(args), ret, err);
}

static bool is_entry(const struct df_redis_answer *a)
{
    return a->kind == DF_REDIS_LIST && a->integer == 2 && a->items[0].kind == DF_REDIS_BYTES &&
           a->items[1].kind == DF_REDIS_LIST;
}

/* *ret_more: there may be another page. */
static int read_page(struct reading *r, bool *ret_more, struct df_err *err)
{
    DF_REDIS_ANSWER page = {0};
    if (ask_page(r, DF_LIMIT_TERRAKUBE_RESCUE_BATCH, &page, err) < 0)
        return -1;
    for (int64_t i = 0; page.items && i < page.integer && !r->is_full; i++) {
        if (!is_entry(&page.items[i]))
            return df_fail(err, DF_ERR_SYSTEM, "Redis answered XRANGE with something else");
        if (read_entry(r, &page.items[i], err) < 0 ||
            go_behind(r, df_buf_str(&page.items[i].items[0].bytes), err) < 0)
            return -1;
    }
    *ret_more = page.integer == DF_LIMIT_TERRAKUBE_RESCUE_BATCH && !r->is_full;
    return 0;
}

int df_terrakube_log_read(struct df_redis *redis, const struct df_terrakube_payload *p, size_t max,
                          int fd, struct df_err *err)
{
    DF_CLEANUP(free_reading)
    struct reading r = {.redis = redis,
                        .step = p->step,
                        .key = DF_BUF_INIT(DF_KIB),
                        .from = "-",
                        .left = max,
                        .fd = fd};
    bool more = true;
    if (df_jdk_add(&r.key, p->job, strlen(p->job), err) < 0)
        return -1;
    while (more)
        if (read_page(&r, &more, err) < 0)
            return -1;
    return 0;
}
