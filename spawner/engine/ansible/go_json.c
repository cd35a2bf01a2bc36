/*
 * Brackets, members and what is repeated are read here; each text, number and word between them is
 * left to the strict parser of common/json, which refuses repeated names and halves of surrogate
 * pairs in a whole document. Read df_go_json() at the end first.
 */
#include "spawner/engine/ansible/go_json.h"

#include <math.h>

/* ---- numbers ---- */

/* Digits without a point: d1 d2 d3 ... times ten to the power of (exponent + 1 - n), n <= 17. */
static void print_plain(const char *digits, int n, int exponent, char out[DF_GO_NUMBER])
{
    static const char zeros[] = "00000000000000000000";
    if (exponent < 0)
        (void)snprintf(out, DF_GO_NUMBER, "0.%.*s%s", -exponent - 1, zeros, digits);
    else if (n <= exponent + 1)
        (void)snprintf(out, DF_GO_NUMBER, "%s%.*s", digits, exponent + 1 - n, zeros);
    else
        (void)snprintf(out, DF_GO_NUMBER, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

void df_go_number(double d, char out[DF_GO_NUMBER])
{
    char text[32], digits[32];
    double size = fabs(d);
    int more = 0; /* digits behind the first one */
    do
        (void)snprintf(text, sizeof(text), "%.*e", more, size);
    while (strtod(text, NULL) != size && ++more < 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    *strchr(text, 'e') = '\0';
    (void)snprintf(digits, sizeof(digits), "%c%s", text[0], more ? text + 2 : "");
    *out = '-';
    out += signbit(d) != 0;
    if (size != 0 && (exponent < -6 || exponent >= 21))
        (void)snprintf(out, DF_GO_NUMBER - 1, "%se%+d", text, exponent);
    else
        print_plain(digits, more + 1, exponent, out);
}

/* ---- reading ---- */

enum fault { NO_FAULT, NOT_JSON, TOO_DEEP, NO_MEMORY };

struct reader {
    const char *at;
    int depth;
    enum fault fault; /* the first one */
};

/* Returns NULL. */
static cJSON *fail(struct reader *r, enum fault fault)
{
    r->fault = r->fault ? r->fault : fault;
    return NULL;
}

static void skip_blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    bool found = *r->at == c;
    r->at += found;
    return found;
}

/* The length of a string with its quotes, or up to the end of the text. */
static size_t string_length(const char *s)
{
    const char *p = s + 1;
    while (*p && *p != '"')
        p += *p == '\\' && p[1] ? 2 : 1;
    return (size_t)(p - s) + (*p == '"');
}

static cJSON *make_number(struct reader *r, const char *text)
{
    char printed[DF_GO_NUMBER];
    double d = strtod(text, NULL);
    if (!isfinite(d))
        return fail(r, NOT_JSON);
    df_go_number(d, printed);
    cJSON *number = cJSON_CreateRaw(printed);
    return number ? number : fail(r, NO_MEMORY);
}

static cJSON *read_scalar(struct reader *r)
{
    DF_JSON cJSON *item = NULL;
    struct df_err why = {0};
    const char *text = r->at;
    size_t n = *text == '"' ? string_length(text) : strcspn(text, " \t\r\n[]{}:,\"");
    if (df_json_parse_nul(text, n, &item, &why) < 0)
        return fail(r, why.cls == DF_ERR_USER ? NOT_JSON : NO_MEMORY);
    r->at += n;
    return df_json_is_number(item) ? make_number(r, text) : DF_TAKE(item);
}

static cJSON *read_value(struct reader *r);

static int read_item(struct reader *r, cJSON *list)
{
    DF_JSON cJSON *name = NULL;
    skip_blanks(r);
    if (cJSON_IsObject(list)) {
        name = *r->at == '"' ? read_scalar(r) : fail(r, NOT_JSON);
        if (name && !take(r, ':'))
            (void)fail(r, NOT_JSON);
    }
    cJSON *value = r->fault ? NULL : read_value(r);
    if (!value)
        return -1;
    int result = name ? df_json_add(list, name->valuestring, value, NULL)
                      : df_json_append(list, value, NULL);
    if (result < 0)
        (void)fail(r, NO_MEMORY);
    return result;
}

struct place {
    cJSON *member;
    size_t at;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    int order = strcmp(one->member->string, other->member->string);
    return order ? order : one->at < other->at ? -1 : 1;
}

/* Sorted, because an object may have thousands of members. */
static int keep_the_last(cJSON *object)
{
    size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
    DF_FREE struct place *places = reallocarray(NULL, n + 1, sizeof(*places));
    if (!places)
        return -1;
    for (cJSON *m = object->child; m; m = m->next, i++)
        places[i] = (struct place){m, i};
    qsort(places, n, sizeof(*places), compare_places);
    for (i = 1; i < n; i++)
        if (df_streq(places[i - 1].member->string, places[i].member->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(object, places[i - 1].member));
    return 0;
}

static cJSON *read_list(struct reader *r)
{
    bool is_object = *r->at++ == '{';
    char end = is_object ? '}' : ']';
    DF_JSON cJSON *list = is_object ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!list)
        return fail(r, NO_MEMORY);
    if (take(r, end))
        return DF_TAKE(list);
    do
        if (read_item(r, list) < 0)
            return NULL;
    while (take(r, ','));
    if (!take(r, end))
        return fail(r, NOT_JSON);
    if (is_object && keep_the_last(list) < 0)
        return fail(r, NO_MEMORY);
    return DF_TAKE(list);
}

static cJSON *read_value(struct reader *r)
{
    skip_blanks(r);
    if (*r->at != '[' && *r->at != '{')
        return read_scalar(r);
    if (r->depth == DF_LIMIT_JSON_DEPTH)
        return fail(r, TOO_DEEP);
    r->depth++;
    cJSON *list = read_list(r);
    r->depth--;
    return list;
}

/* ---- surrogates ---- */

/* The code unit that "\uXXXX" writes; -1: this is none. */
static long unit_of(const char *escape)
{
    char digits[5] = "";
    if (!df_starts_with(escape, "\\u") || strspn(escape + 2, "0123456789abcdefABCDEF") < 4)
        return -1;
    memcpy(digits, escape + 2, 4);
    return strtol(digits, NULL, 16);
}

/* In place: the escape of U+FFFD is as long. */
static void replace_half_pairs(char *p)
{
    static const char replacement[] = {'f', 'f', 'f', 'd'};
    while ((p = strchr(p, '\\'))) {
        long unit = unit_of(p), next = unit < 0 ? -1 : unit_of(p + 6);
        bool is_half = unit >= 0xd800 && unit <= 0xdfff;
        bool is_pair = is_half && unit < 0xdc00 && next >= 0xdc00 && next <= 0xdfff;
        if (is_half && !is_pair)
            memcpy(p + 2, replacement, sizeof(replacement));
        p += is_pair ? 12 : p[1] ? 2 : 1;
    }
}

int df_go_json(const char *text, cJSON **ret, struct df_err *err)
{
    DF_FREE char *mended = strdup(text);
    if (!mended)
        return df_fail_oom(err);
    replace_half_pairs(mended);
    struct reader r = {.at = mended, .depth = 1}; /* it becomes a member of the variables */
    DF_JSON cJSON *value = read_value(&r);
    skip_blanks(&r);
    if (r.fault == NO_MEMORY)
        return df_fail_oom(err);
    if (r.fault == TOO_DEEP)
        return df_fail(err, DF_ERR_USER, "is JSON that is nested deeper than %d levels",
                       DF_LIMIT_JSON_DEPTH - 1);
    *ret = r.fault || *r.at ? NULL : DF_TAKE(value);
    return 0;
}
