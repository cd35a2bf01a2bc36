/* As OpenTofu's internal/repl/format.go and Terraform's do. */
#include "common/hcl/value.h"

#include <errno.h>

#define STEP 2

static void print(const cJSON *value, const cJSON *type, int indent, struct df_buf *out);

static void begin_line(int indent, struct df_buf *out)
{
    (void)df_buf_addf(out, "\n%*s", indent, "");
}

/* ---- strings ---- */

/* Control characters of Unicode's second block, in UTF-8. */
static bool is_c1(const char *s)
{
    return (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0;
}

static void print_quoted(const char *s, struct df_buf *out)
{
    static const char special[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    (void)df_buf_addc(out, '"');
    for (; *s; s++) {
        const char *found = strchr(special, *s);
        if (found)
            (void)df_buf_addf(out, "\\%c", letters[found - special]);
        else if (strncmp(s, DF_JSON_NUL, 2) == 0) {
            (void)df_buf_adds(out, "\\x00");
            s++;
        } else if (is_c1(s))
            (void)df_buf_addf(out, "\\u%04x", (unsigned char)*++s);
        else if ((unsigned char)*s < ' ' || *s == 0x7f)
            (void)df_buf_addf(out, "\\x%02x", (unsigned char)*s);
        else
            (void)df_buf_addc(out, *s);
    }
    (void)df_buf_addc(out, '"');
}

/* Is there a line that is this word alone? */
static bool has_line(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line + strspn(line, " \t\r");
        if (strncmp(at, word, n) == 0 && strchr("\r\n\t ", at[n]) /* its end, too */)
            return true;
    }
    return false;
}

static void print_heredoc(const char *s, int indent, struct df_buf *out)
{
    char word[32] = "EOT";
    for (size_t n = strlen(word); has_line(s, word) && n + 1 < sizeof(word); n++)
        word[n] = '_'; /* the rest is zeros */
    (void)df_buf_addf(out, "<<%s%s", indent ? "-" : "", word);
    for (const char *line = s; line;) {
        const char *end = strchr(line, '\n');
        begin_line(indent, out);
        (void)df_buf_add(out, line, end ? (size_t)(end - line) : strlen(line));
        line = end ? end + 1 : NULL;
    }
    begin_line(indent, out);
    (void)df_buf_adds(out, word);
}

static void print_string(const char *s, int indent, struct df_buf *out)
{
    if (strchr(s, '\n'))
        print_heredoc(s, indent, out);
    else
        print_quoted(s, out);
}

/* ---- types ---- */

/* "list" of ["list", "string"]; "string" of "string"; or NULL. */
static const char *kind_of(const cJSON *type)
{
    return cJSON_GetStringValue(cJSON_IsArray(type) ? type->child : type);
}

/* The types of a tuple's or object's members, or the one of all members. */
static const cJSON *inner_of(const cJSON *type)
{
    return cJSON_IsArray(type) && type->child ? type->child->next : NULL;
}

static const cJSON *type_of_member(const cJSON *type, const char *name)
{
    const cJSON *inner = inner_of(type);
    return df_streq(kind_of(type), "object") ? cJSON_GetObjectItemCaseSensitive(inner, name)
                                             : inner;
}

static const cJSON *type_of_item(const cJSON *type, int i)
{
    const cJSON *inner = inner_of(type);
    return df_streq(kind_of(type), "tuple") ? cJSON_GetArrayItem(inner, i) : inner;
}

/* What the tool writes around a value of this type: "tolist". NULL: nothing. */
static const char *conversion(const cJSON *type)
{
    static const char *const known[][2] = {{"list", "tolist"}, {"set", "toset"}, {"map", "tomap"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (df_streq(kind_of(type), known[i][0]))
            return known[i][1];
    return NULL;
}

/* ---- values ---- */

static void print_object(const cJSON *value, const cJSON *type, int indent, struct df_buf *out)
{
    const cJSON *member;
    (void)df_buf_addc(out, '{');
    cJSON_ArrayForEach (member, value) {
        begin_line(indent + STEP, out);
        print_string(member->string, indent + STEP, out);
        (void)df_buf_adds(out, " = ");
        print(member, type_of_member(type, member->string), indent + STEP, out);
    }
    if (value->child)
        begin_line(indent, out);
    (void)df_buf_addc(out, '}');
}

static void print_list(const cJSON *value, const cJSON *type, int indent, struct df_buf *out)
{
    const cJSON *item;
    int i = 0;
    (void)df_buf_addc(out, '[');
    cJSON_ArrayForEach (item, value) {
        begin_line(indent + STEP, out);
        print(item, type_of_item(type, i++), indent + STEP, out);
        (void)df_buf_addc(out, ',');
    }
    if (value->child)
        begin_line(indent, out);
    (void)df_buf_addc(out, ']');
}

static void print_null(const cJSON *type, struct df_buf *out)
{
    static const char *const known[] = {"string", "number", "bool"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (df_streq(kind_of(type), known[i])) {
            (void)df_buf_addf(out, "to%s(null)", known[i]);
            return;
        }
    (void)df_buf_adds(out, "null");
}

static void print_scalar(const cJSON *value, struct df_buf *out)
{
    DF_FREE char *text = df_json_print(value);
    if (text)
        (void)df_buf_adds(out, text);
    else
        out->failed = ENOMEM;
}

/* The depth is that of the parsed JSON, which has a limit. */
static void print(const cJSON *value, const cJSON *type, int indent, struct df_buf *out)
{
    const char *wrapped = cJSON_IsNull(value) ? NULL : conversion(type);
    if (wrapped)
        (void)df_buf_addf(out, "%s(", wrapped);
    if (cJSON_IsObject(value))
        print_object(value, type, indent, out);
    else if (cJSON_IsArray(value))
        print_list(value, type, indent, out);
    else if (cJSON_IsString(value))
        print_string(value->valuestring, indent, out);
    else if (cJSON_IsNull(value))
        print_null(type, out);
    else
        print_scalar(value, out);
    if (wrapped)
        (void)df_buf_addc(out, ')');
}

void df_hcl_print_value(const cJSON *value, const cJSON *type, struct df_buf *out)
{
    print(value, type, 0, out);
}
