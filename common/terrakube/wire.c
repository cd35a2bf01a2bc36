/*
 * wire.c - a command is made argument by argument (struct command); then each thing that an
 * executor says has a section: log, heartbeat, claim, who lives, bell. Keys that Terrakube reads
 * are in Java's form; keys that begin with "dayfly:" are read by dayfly alone, and are plain.
 */
#include "common/terrakube/wire.h"

#include "common/base/clock.h"
#include "common/terrakube/jdk.h"

/* A Redis that is away must not hold the end of a step up for long. */
#define TIMEOUT_MS 5000
/* A line of NULs is twice as long in Java's form, one of bytes that are no UTF-8 three times. */
#define LONGEST (3 * DF_LIMIT_TERRAKUBE_LINE + DF_KIB)

int df_terrakube_wire_new(const struct df_terrakube_settings *s, struct df_redis **ret,
                          struct df_err *err)
{
    const struct df_redis_options o = {
        .host = s->redis.host,
        .port = s->redis.port,
        .user = s->redis.user,
        .password = s->redis.password,
        .tls = s->redis.tls,
        .ca_pem = s->redis.ca_pem,
        .cluster_nodes = &s->redis.cluster_nodes,
        .max_redirects = s->redis.max_redirects,
        .sentinel_primary = s->redis.sentinel_primary,
        .sentinels = &s->redis.sentinels,
        .sentinel_user = s->redis.sentinel_user,
        .sentinel_password = s->redis.sentinel_password,
        .timeout_ms = s->redis.timeout_ms < TIMEOUT_MS ? s->redis.timeout_ms : TIMEOUT_MS,
    };
    return df_redis_new(&o, ret, err);
}

/* ---- arguments ---- */

/* A command whose arguments are made one after the other; it owns their bytes. */
struct command {
    struct df_buf bytes;
    struct {
        size_t at, n;
    } parts[12];
    size_t len;
    struct df_redis_arg args[12]; /* once it is complete */
};

static void free_command(struct command *c)
{
    df_buf_free(&c->bytes);
}
#define COMMAND DF_CLEANUP(free_command) struct command

static void end_part(struct command *c, size_t at)
{
    c->parts[c->len].at = at;
    c->parts[c->len++].n = c->bytes.len - at;
}

static void add_plain(struct command *c, const char *text)
{
    size_t at = c->bytes.len;
    (void)df_buf_adds(&c->bytes, text);
    end_part(c, at);
}

/* A failure sticks to the buffer: complete() reports it. */
static void add_java(struct command *c, const char *text, size_t n)
{
    size_t at = c->bytes.len;
    if (df_jdk_add(&c->bytes, text, n, NULL) == 0 || c->bytes.failed)
        end_part(c, at);
}

static void add_java_text(struct command *c, const char *text)
{
    add_java(c, text, strlen(text));
}

static int complete(struct command *c, struct df_err *err)
{
    if (df_buf_check(&c->bytes, err) < 0)
        return -1;
    for (size_t i = 0; i < c->len; i++)
        c->args[i] = (struct df_redis_arg){c->bytes.data + c->parts[i].at, c->parts[i].n};
    return 0;
}

static int run(struct df_redis *r, struct command *c, struct df_err *err)
{
    return complete(c, err) < 0 ? -1 : df_redis_command(r, c->args, c->len, NULL, err);
}

/* ---- the log ---- */

static int make_group(struct df_redis *r, const char *job, const char *group, struct df_err *err)
{
    COMMAND c = {.bytes = DF_BUF_INIT(DF_KIB)};
    struct df_err why = {0};
    add_plain(&c, "XGROUP");
    add_plain(&c, "CREATE");
    add_java_text(&c, job);
    add_plain(&c, group);
    add_plain(&c, "$");
    add_plain(&c, "MKSTREAM");
    if (run(r, &c, &why) == 0 || why.cls == DF_ERR_CONFLICT)
        return 0;
    return df_err_pass(err, &why);
}

int df_terrakube_wire_groups(struct df_redis *r, const char *job, struct df_err *err)
{
    return make_group(r, job, "CLI", err) < 0 ? -1 : make_group(r, job, "UI", err);
}

static void begin_entry(struct command *c, const char *key, const struct df_terrakube_payload *p)
{
    add_plain(c, "XADD");
    add_java_text(c, key);
    add_plain(c, "*");
    add_java_text(c, "jobId");
    add_java_text(c, p->job);
    add_java_text(c, "stepId");
    add_java_text(c, p->step);
}

static int make_line(struct command *c, const struct df_terrakube_payload *p,
                     const struct df_terrakube_line *line, struct df_err *err)
{
    char number[24];
    (void)snprintf(number, sizeof(number), "%lld", (long long)line->number);
    c->bytes = DF_BUF_INIT(LONGEST);
    begin_entry(c, p->job, p);
    add_java_text(c, "lineNumber");
    add_java_text(c, number);
    add_java_text(c, "output");
    add_java(c, line->text, line->n);
    return complete(c, err);
}

/* Commands and where their arguments are, for df_redis_pipeline(). */
struct commands {
    struct command *each;
    const struct df_redis_arg **args;
    size_t *counts;
    size_t len;
};

static void free_commands(struct commands *c)
{
    for (size_t i = 0; i < c->len; i++)
        free_command(&c->each[i]);
    free(c->each);
    free(c->args);
    free(c->counts);
}

int df_terrakube_wire_lines(struct df_redis *r, const struct df_terrakube_payload *p,
                            const struct df_terrakube_line *lines, size_t n, size_t *ret_done,
                            struct df_err *err)
{
    DF_CLEANUP(free_commands)
    struct commands c = {calloc(n, sizeof(*c.each)), calloc(n, sizeof(*c.args)),
                         calloc(n, sizeof(*c.counts)), 0};
    *ret_done = 0;
    if (!c.each || !c.args || !c.counts)
        return df_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        c.len++;
        if (make_line(&c.each[i], p, &lines[i], err) < 0)
            return -1;
        c.args[i] = c.each[i].args;
        c.counts[i] = c.each[i].len;
    }
    return df_redis_pipeline(r, c.args, c.counts, n, ret_done, err);
}

int df_terrakube_wire_context(struct df_redis *r, const struct df_terrakube_payload *p,
                              const char *json, size_t n, struct df_err *err)
{
    COMMAND c = {.bytes = DF_BUF_INIT(3 * n + DF_KIB)};
    DF_FREE char *key = df_strf("%s-context", p->job);
    if (!key)
        return df_fail_oom(err);
    begin_entry(&c, key, p);
    add_java_text(&c, "output");
    add_java(&c, json, n);
    return run(r, &c, err);
}

/* ---- the heartbeat ---- */

static int say_of_heartbeat(struct df_redis *r, const char *verb, const char *job, bool sets,
                            struct df_err *err)
{
    COMMAND c = {.bytes = DF_BUF_INIT(DF_KIB)};
    DF_FREE char *key = df_strf("executor-job-heartbeat:%s", job);
    DF_FREE char *life = df_strf("%d", DF_TERRAKUBE_BEAT_LIFE_S);
    if (!key || !life)
        return df_fail_oom(err);
    add_plain(&c, verb);
    add_java_text(&c, key);
    if (sets) {
        add_java_text(&c, "1");
        add_plain(&c, "EX");
        add_plain(&c, life);
    }
    return run(r, &c, err);
}

int df_terrakube_wire_beat(struct df_redis *r, const char *job, struct df_err *err)
{
    return say_of_heartbeat(r, "SET", job, true, err);
}

int df_terrakube_wire_unbeat(struct df_redis *r, const char *job, struct df_err *err)
{
    return say_of_heartbeat(r, "DEL", job, false, err);
}

/* ---- the claim ---- */

/* Ours alone: neither key nor value is in Java's form. */
int df_terrakube_wire_claim(struct df_redis *r, const char *step, bool *ret_taken,
                            struct df_err *err)
{
    char who[37];
    DF_FREE char *key = df_strf("dayfly:step:%s", step);
    DF_FREE char *life = df_strf("%d", DF_TERRAKUBE_CLAIM_LIFE_S);
    if (df_check_alloc(key, err) < 0 || df_check_alloc(life, err) < 0 || df_uuid(who, err) < 0)
        return -1;
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("SET"), DF_REDIS_TEXT(key),
                                        DF_REDIS_TEXT(who),   DF_REDIS_TEXT("NX"),
                                        DF_REDIS_TEXT("EX"),  DF_REDIS_TEXT(life)};
    DF_REDIS_ANSWER answer = {0};
    if (df_redis_command(r, args, DF_ARRAY_SIZE(args), &answer, err) < 0)
        return -1;
    *ret_taken = answer.kind == DF_REDIS_NIL;
    return 0;
}

/* ---- who lives ---- */

/* condition: "NX" or "XX". *ret_set: it held. */
static int set_live(struct df_redis *r, const char *key, const char *pod, const char *condition,
                    bool *ret_set, struct df_err *err)
{
    char life[16];
    (void)snprintf(life, sizeof(life), "%d", DF_TERRAKUBE_BEAT_LIFE_S);
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("SET"), DF_REDIS_TEXT(key),
                                        DF_REDIS_TEXT(pod),   DF_REDIS_TEXT("EX"),
                                        DF_REDIS_TEXT(life),  DF_REDIS_TEXT(condition)};
    DF_REDIS_ANSWER answer = {0};
    if (df_redis_command(r, args, DF_ARRAY_SIZE(args), &answer, err) < 0)
        return -1;
    *ret_set = answer.kind != DF_REDIS_NIL;
    return 0;
}

static char *live_key(const char *step)
{
    return df_strf("dayfly:live:%s", step);
}

int df_terrakube_wire_lives_elsewhere(struct df_redis *r, const char *step, const char *pod,
                                      bool *ret, struct df_err *err)
{
    DF_FREE char *key = live_key(step);
    DF_REDIS_ANSWER answer = {0};
    if (!key)
        return df_fail_oom(err);
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("GET"), DF_REDIS_TEXT(key)};
    if (df_redis_command(r, args, DF_ARRAY_SIZE(args), &answer, err) < 0)
        return -1;
    *ret = answer.kind == DF_REDIS_BYTES && !df_streq(df_buf_str(&answer.bytes), pod);
    return 0;
}

int df_terrakube_wire_live(struct df_redis *r, const char *step, const char *pod, bool *ret_other,
                           struct df_err *err)
{
    DF_FREE char *key = live_key(step);
    bool is_set = false;
    if (df_check_alloc(key, err) < 0 || set_live(r, key, pod, "NX", &is_set, err) < 0)
        return -1;
    *ret_other = false;
    if (is_set)
        return 0;
    if (df_terrakube_wire_lives_elsewhere(r, step, pod, ret_other, err) < 0)
        return -1;
    return *ret_other ? 0 : set_live(r, key, pod, "XX", &is_set, err);
}

int df_terrakube_wire_unlive(struct df_redis *r, const char *step, struct df_err *err)
{
    DF_FREE char *key = live_key(step);
    if (!key)
        return df_fail_oom(err);
    const struct df_redis_arg args[] = {DF_REDIS_TEXT("DEL"), DF_REDIS_TEXT(key)};
    return df_redis_command(r, args, DF_ARRAY_SIZE(args), NULL, err);
}

/* ---- the bell ---- */

int df_terrakube_wire_ring(struct df_redis *r, struct df_err *err)
{
    COMMAND c = {.bytes = DF_BUF_INIT(DF_KIB)};
    add_plain(&c, "PUBLISH");
    add_plain(&c, "terrakube:executor-available");
    add_java_text(&c, "");
    return run(r, &c, err);
}
