/*
 * rules.c - rules of single fields that occur in several tables: names, variables, durations,
 * times, versions, labels.
 */
#include "spawner/model/rules.h"

#include "common/base/clock.h"
#include "common/base/parse.h"

void df_rule_name(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_is_dns_label(value->valuestring))
        df_fault(f, path,
                 "\"%.64s\" is not a valid name: 1 to 63 of a-z, 0-9 and -, with a letter or digit "
                 "at both "
                 "ends",
                 value->valuestring);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_identifier(const char *s)
{
    if (!is_letter(*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!is_letter(*s) && !is_digit(*s) && *s != '_' && *s != '-')
            return false;
    return true;
}

void df_check_identifier(const char *name, const struct df_path *path, struct df_faults *f)
{
    if (!is_identifier(name))
        df_fault(f, path, "\"%.64s\" is not an identifier (letters, digits, _ and -)", name);
}

void df_rule_variables(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *v = value->child; v; v = v->next)
        if (!is_identifier(v->string) || strlen(v->string) > 256)
            df_fault(f, path, "\"%.64s\" is not the name of a variable (letters, digits, _ and -)",
                     v->string);
}

void df_rule_duration(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    struct df_err err = {0};
    const int64_t second = 1000000, week = 7 * 24 * 3600 * second;
    int64_t us = 0;
    if (df_duration_parse(value->valuestring, &us, &err) < 0)
        df_fault(f, path, "%s", err.message);
    else if (us < second || us > week)
        df_fault(f, path, "\"%.64s\" must be from 1s to 168h", value->valuestring);
}

void df_rule_age(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    struct df_err err = {0};
    const int64_t most = INT64_C(87600) * 3600 * 1000000;
    int64_t us = 0;
    if (df_duration_parse(value->valuestring, &us, &err) < 0)
        df_fault(f, path, "%s", err.message);
    else if (us < 0 || us > most)
        df_fault(f, path, "\"%.64s\" must be from 0s to 87600h", value->valuestring);
}

void df_rule_time(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    struct df_err err = {0};
    int64_t us = 0;
    if (df_time_parse(value->valuestring, &us, &err) < 0)
        df_fault(f, path, "%s", err.message);
}

void df_rule_sha256(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *s = value->valuestring;
    if (strlen(s) != 64 || s[strspn(s, "0123456789abcdef")] != '\0')
        df_fault(f, path, "must be 64 lower-case hex digits");
}

/* ---- versions ---- */

static const char *skip_spaces(const char *s)
{
    return s + strspn(s, " ");
}

/* The end of a version (1, 1.2, 1.2.3, 1.2.3-rc1), or NULL. */
static const char *skip_version(const char *s)
{
    for (int part = 0; part < 3; part++) {
        if (!is_digit(*s))
            return NULL;
        while (is_digit(*s))
            s++;
        if (*s != '.')
            break;
        if (part < 2)
            s++;
    }
    if (*s == '-' || *s == '+') {
        const char *first = ++s;
        while (is_letter(*s) || is_digit(*s) || *s == '.' || *s == '-' || *s == '+')
            s++;
        if (s == first)
            return NULL;
    }
    return s;
}

static const char *skip_operator(const char *s)
{
    static const char *const operators[] = {">=", "<=", "!=", "~>", "=", ">", "<"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(operators); i++)
        if (df_starts_with(s, operators[i]))
            return s + strlen(operators[i]);
    return s;
}

static bool is_version_constraint(const char *s)
{
    for (;;) {
        s = skip_version(skip_spaces(skip_operator(skip_spaces(s))));
        if (!s)
            return false;
        s = skip_spaces(s);
        if (!*s)
            return true;
        if (*s++ != ',')
            return false;
    }
}

void df_rule_version(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!is_version_constraint(value->valuestring))
        df_fault(
            f, path,
            "\"%.64s\" is not a version (1.12.6) or constraint (>= 1.8, < 2.0); leave it out to "
            "take what is found",
            value->valuestring);
}

/* ---- labels ---- */

/* At most max of [A-Za-z0-9._-], alphanumeric at both ends. */
static bool is_label_part(const char *s, size_t n, size_t max)
{
    if (n < 1 || n > max)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool alnum = is_letter(s[i]) || is_digit(s[i]);
        bool inner = i > 0 && i + 1 < n && strchr("._-", s[i]);
        if (!alnum && !inner)
            return false;
    }
    return true;
}

/* name or prefix/name */
static bool is_label_key(const char *s)
{
    const char *slash = strchr(s, '/');
    if (slash && !is_label_part(s, (size_t)(slash - s), 253))
        return false;
    const char *name = slash ? slash + 1 : s;
    return is_label_part(name, strlen(name), 63);
}

void df_rule_annotation_keys(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *m = value->child; m; m = m->next)
        if (!is_label_key(m->string))
            df_fault(f, path, "\"%.64s\" is not a key (name or prefix/name)", m->string);
}

void df_rule_labels(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    df_rule_annotation_keys(value, path, f);
    for (const cJSON *m = value->child; m; m = m->next) {
        const char *s = m->valuestring;
        if (*s && !is_label_part(s, strlen(s), 63))
            df_fault(f, path,
                     "the value \"%.64s\" is not a label (at most 63 of A-Z a-z 0-9 . _ -)", s);
    }
}
