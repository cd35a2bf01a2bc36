/*
 * selector.c - one regular expression checks the text of a label selector, which is then split into
 * requirements. A document must meet all of them.
 */
#include "spawner/model/selector.h"

#include <regex.h>

#include "common/base/limits.h"
#include "common/base/strs.h"

enum op { OP_EXISTS, OP_ABSENT, OP_IN, OP_NOT_IN };

struct requirement {
    enum op op;
    char *key;
    struct df_strs values; /* of IN and NOT_IN */
};

struct df_selector {
    struct requirement *list;
    size_t count;
    char *label; /* "key=value" of the first requirement that names one value */
};

#define KEY "[A-Za-z0-9._/-]+"
#define VALUE "[A-Za-z0-9._-]*"
#define ONE                                                                                        \
    " *(! *" KEY "|" KEY "( *(=|==|!=) *" VALUE "| +(in|notin) *\\( *" VALUE "( *, *" VALUE        \
    ")* *\\))?) *"
#define KEY_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"
#define VALUE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

void df_selector_free(struct df_selector *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++) {
        free(s->list[i].key);
        df_strs_free(&s->list[i].values);
    }
    free(s->list);
    free(s->label);
    free(s);
}

static int check_syntax(const char *text, struct df_err *err)
{
    regex_t syntax;
    if (regcomp(&syntax, "^" ONE "(," ONE ")*$", REG_EXTENDED | REG_NOSUB) != 0)
        return df_fail_oom(err);
    int result =
        strlen(text) <= DF_LIMIT_SELECTOR ? regexec(&syntax, text, 0, NULL, 0) : REG_ESPACE;
    regfree(&syntax);
    if (result == 0)
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "label selector \"%.64s\": must be like `a=b,c!=d,e,!f,g in (h,i)`, at most %d "
                   "bytes",
                   text, DF_LIMIT_SELECTOR);
}

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " ");
}

static bool take_token(const char **at, const char *word)
{
    if (!df_starts_with(*at, word))
        return false;
    *at += strlen(word);
    skip_blanks(at);
    return true;
}

static void take_value(const char **at, struct df_strs *values)
{
    size_t n = strspn(*at, VALUE_CHARS);
    (void)df_strs_addf(values, "%.*s", (int)n, *at);
    *at += n;
    skip_blanks(at);
}

/* Parses what follows the key, in a text whose syntax is checked. */
static enum op take_condition(const char **at, struct df_strs *values)
{
    bool equal = take_token(at, "==") || take_token(at, "="),
         unequal = !equal && take_token(at, "!=");
    if (equal || unequal) {
        take_value(at, values);
        return equal ? OP_IN : OP_NOT_IN;
    }
    bool in = take_token(at, "in"), not_in = !in && take_token(at, "notin");
    if (!in && !not_in)
        return OP_EXISTS;
    (void)take_token(at, "(");
    do
        take_value(at, values);
    while (take_token(at, ","));
    (void)take_token(at, ")");
    return in ? OP_IN : OP_NOT_IN;
}

static int add_requirement(struct df_selector *s, const char **at, struct df_err *err)
{
    struct requirement *more = reallocarray(s->list, s->count + 1, sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    s->list = more;
    struct requirement *r = &s->list[s->count++];
    *r = (struct requirement){0};
    skip_blanks(at);
    bool absent = take_token(at, "!");
    size_t n = strspn(*at, KEY_CHARS);
    r->key = strndup(*at, n);
    *at += n;
    skip_blanks(at);
    r->op = absent ? OP_ABSENT : take_condition(at, &r->values);
    return r->key ? df_strs_check(&r->values, err) : df_fail_oom(err);
}

static int name_label(struct df_selector *s, struct df_err *err)
{
    for (size_t i = 0; i < s->count && !s->label; i++) {
        const struct requirement *r = &s->list[i];
        if (r->op == OP_IN && r->values.len == 1 &&
            !(s->label = df_strf("%s=%s", r->key, r->values.items[0])))
            return df_fail_oom(err);
    }
    return 0;
}

int df_selector_parse(const char *text, struct df_selector **ret, struct df_err *err)
{
    if (check_syntax(text, err) < 0)
        return -1;
    struct df_selector *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    const char *at = text;
    int result = 0;
    do
        result = add_requirement(s, &at, err);
    while (result == 0 && take_token(&at, ","));
    if (result < 0 || name_label(s, err) < 0) {
        df_selector_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

static bool holds_for(const struct requirement *r, const cJSON *labels)
{
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(labels, r->key));
    if (r->op == OP_EXISTS || r->op == OP_ABSENT)
        return (value != NULL) == (r->op == OP_EXISTS);
    bool listed = false;
    for (size_t i = 0; value && i < r->values.len; i++)
        listed = listed || df_streq(r->values.items[i], value);
    return listed == (r->op == OP_IN);
}

bool df_selector_matches(const struct df_selector *s, const cJSON *doc)
{
    const cJSON *labels = df_json_at(doc, "metadata.labels");
    for (size_t i = 0; i < s->count; i++)
        if (!holds_for(&s->list[i], labels))
            return false;
    return true;
}

const char *df_selector_label(const struct df_selector *s)
{
    return s->label;
}
