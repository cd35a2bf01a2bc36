#include "spawner/model/audit_filter.h"

#include "common/base/limits.h"
#include "common/base/util.h"

static const char *const names[DF_AUDIT_WORDS] = {[DF_AUDIT_NAME] = "name",
                                                  [DF_AUDIT_ACTOR] = "actor",
                                                  [DF_AUDIT_ACTION] = "action",
                                                  [DF_AUDIT_KIND] = "kind",
                                                  [DF_AUDIT_OUTCOME] = "outcome"};

static const char *const outcomes[] = {"done", "refused", "failed", "canceled"};

const char *df_audit_word_name(enum df_audit_word word)
{
    return names[word];
}

static int check_outcome(const char *value, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(outcomes); i++)
        if (df_streq(outcomes[i], value))
            return 0;
    return df_fail(err, DF_ERR_USER, "\"%.64s\": must be done, refused, failed or canceled", value);
}

static int set_word(struct df_audit_filter *f, enum df_audit_word word, const char *value,
                    struct df_err *err)
{
    if (!*value)
        return df_fail(err, DF_ERR_USER, "must not be empty");
    if (strlen(value) > DF_LIMIT_CALLER)
        return df_fail(err, DF_ERR_USER, "\"%.64s...\": is longer than %d bytes", value,
                       DF_LIMIT_CALLER);
    if (word == DF_AUDIT_OUTCOME && check_outcome(value, err) < 0)
        return -1;
    f->words[word] = value;
    return 0;
}

static int set_time(char out[DF_TIME_LEN], const char *value, struct df_err *err)
{
    int64_t at_us = 0;
    if (df_time_parse(value, &at_us, err) < 0)
        return -1;
    (void)df_time_format(at_us, out);
    return 0;
}

/* Times of one format are in order as texts. */
static int check_order(const struct df_audit_filter *f, struct df_err *err)
{
    if (f->since[0] && f->until[0] && strcmp(f->since, f->until) >= 0)
        return df_fail(err, DF_ERR_USER, "since %s is not before until %s", f->since, f->until);
    return 0;
}

static int set(struct df_audit_filter *f, const char *name, const char *value, struct df_err *err)
{
    for (int word = 0; word < DF_AUDIT_WORDS; word++)
        if (df_streq(names[word], name))
            return set_word(f, (enum df_audit_word)word, value, err);
    return set_time(df_streq(name, "since") ? f->since : f->until, value, err) < 0
               ? -1
               : check_order(f, err);
}

int df_audit_filter_set(struct df_audit_filter *f, const char *name, const char *value,
                        struct df_err *err)
{
    return value ? set(f, name, value, err) : 0;
}

bool df_audit_filter_takes(const struct df_audit_filter *f, const cJSON *entry)
{
    const char *at = df_json_text(entry, "at");
    for (int word = 0; word < DF_AUDIT_WORDS; word++)
        if (f->words[word] && !df_streq(f->words[word], df_json_str(entry, names[word])))
            return false;
    return (!f->since[0] || strcmp(at, f->since) >= 0) &&
           (!f->until[0] || strcmp(at, f->until) < 0);
}
