#include "spawner/http/target.h"

#include "common/base/parse.h"

static int bad(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_USER, "BadTarget", "the request's URL %s", why);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes in place. plus: '+' means a blank, as in queries. */
static int decode(char *s, bool plus, struct df_err *err)
{
    char *to = s;
    for (const char *p = s; *p; p++) {
        char c = *p;
        if (c == '%') {
            int high = hex_digit(p[1]), low = high < 0 ? -1 : hex_digit(p[2]);
            if (low < 0)
                return bad(err, "has a % without two hexadecimal digits");
            c = (char)(high * 16 + low);
            p += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return bad(err, "has a control character");
        *to++ = c;
    }
    *to = '\0';
    return df_is_utf8(s, (size_t)(to - s)) ? 0 : bad(err, "is not UTF-8");
}

static int add_segment(struct df_target *t, char *segment, struct df_err *err)
{
    if (decode(segment, false, err) < 0)
        return -1;
    if (strchr(segment, '/'))
        return bad(err, "has an encoded slash");
    if (df_streq(segment, ".") || df_streq(segment, ".."))
        return bad(err, "has a . or .. segment");
    if (t->segment_count < DF_TARGET_SEGMENTS)
        t->segments[t->segment_count] = segment;
    if (t->segment_count <= DF_TARGET_SEGMENTS)
        t->segment_count++;
    return 0;
}

static int split_path(struct df_target *t, char *path, struct df_err *err)
{
    if (*path != '/')
        return bad(err, "does not begin with a slash");
    if (!path[1])
        return 0;
    for (char *segment = path + 1; segment;) {
        char *slash = strchr(segment, '/');
        if (slash)
            *slash = '\0';
        if (add_segment(t, segment, err) < 0)
            return -1;
        segment = slash ? slash + 1 : NULL;
    }
    return 0;
}

static int add_parameter(struct df_target *t, char *name, struct df_err *err)
{
    char *value = strchr(name, '=');
    if (value)
        *value++ = '\0';
    else
        value = name + strlen(name);
    if (decode(name, true, err) < 0 || decode(value, true, err) < 0)
        return -1;
    if (df_target_query(t, name))
        return bad(err, "has a parameter twice");
    if (t->query_count == DF_TARGET_QUERY)
        return bad(err, "has too many parameters");
    t->query[t->query_count].name = name;
    t->query[t->query_count++].value = value;
    return 0;
}

static int split_query(struct df_target *t, char *query, struct df_err *err)
{
    for (char *pair = query; pair && *pair;) {
        char *next = strchr(pair, '&');
        if (next)
            *next++ = '\0';
        if (*pair && add_parameter(t, pair, err) < 0)
            return -1;
        pair = next;
    }
    return 0;
}

/* The start of the path: in the absolute form it follows the authority. An absolute form without a
 * path yields its query or the terminating NUL. */
static const char *path_of(const char *raw)
{
    if (!df_starts_with(raw, "http://") && !df_starts_with(raw, "https://"))
        return raw;
    const char *authority = strstr(raw, "://") + 3;
    return authority + strcspn(authority, "/?");
}

int df_target_parse(const char *raw, struct df_target *ret, struct df_err *err)
{
    struct df_target t = {.storage = strdup(path_of(raw))};
    if (!t.storage)
        return df_fail_oom(err);
    char *query = strchr(t.storage, '?');
    if (query)
        *query++ = '\0';
    if (split_path(&t, t.storage, err) < 0 || split_query(&t, query, err) < 0) {
        free(t.storage);
        return -1;
    }
    *ret = t;
    return 0;
}

void df_target_free(struct df_target *t)
{
    free(t->storage);
    *t = (struct df_target){0};
}

const char *df_target_query(const struct df_target *t, const char *name)
{
    for (size_t i = 0; i < t->query_count; i++)
        if (df_streq(t->query[i].name, name))
            return t->query[i].value;
    return NULL;
}
