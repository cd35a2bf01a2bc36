#include <ctype.h>
#include <errno.h>
#include <strings.h>

#include "common/yaml/yaml.h"

/* True for words that readers of YAML 1.2 or 1.1 do not read as strings. */
static bool is_reserved(const char *s)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (strcasecmp(s, words[i]) == 0)
            return true;
    return false;
}

/* True if every YAML reader takes the unquoted string for the same string. */
static bool is_plain(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '/' && *s != '_')
        return false;
    for (const char *p = s; *p; p++) {
        bool inner = (*p == ' ' || *p == ':') && p[1] && p[1] != ' ';
        if (!isalnum((unsigned char)*p) && !strchr("_./-@+=~", *p) && !inner)
            return false;
    }
    return !is_reserved(s);
}

/* Every JSON scalar is also YAML. */
static void put_scalar(struct df_buf *b, const cJSON *j)
{
    if (cJSON_IsString(j) && is_plain(j->valuestring)) {
        (void)df_buf_adds(b, j->valuestring);
        return;
    }
    char *text = df_json_print_nul(j);
    if (!text) {
        b->failed = ENOMEM;
        return;
    }
    (void)df_buf_adds(b, text);
    explicit_bzero(text, strlen(text));
    free(text);
}

static void put_key(struct df_buf *b, const char *key)
{
    cJSON borrowed = {.type = cJSON_String};
    DF_FREE char *copy = strdup(key);
    borrowed.valuestring = copy;
    if (copy)
        put_scalar(b, &borrowed);
    else
        b->failed = ENOMEM;
}

static void put_indent(struct df_buf *b, int depth)
{
    for (int i = 0; i < depth; i++)
        (void)df_buf_adds(b, "  ");
}

/* Puts the members or items of j, each on its line. inline_first: the first one continues a line
 * that begins with "- ". */
static void put_items(struct df_buf *b, const cJSON *j, int depth, bool inline_first)
{
    for (const cJSON *item = j->child; item; item = item->next) {
        bool is_member = cJSON_IsObject(j);
        if (item != j->child || !inline_first)
            put_indent(b, depth);
        if (is_member) {
            put_key(b, item->string);
            (void)df_buf_addc(b, ':');
        } else {
            (void)df_buf_addc(b, '-');
        }
        if (!item->child) {
            (void)df_buf_addc(b, ' ');
            put_scalar(b, item);
            (void)df_buf_addc(b, '\n');
        } else {
            (void)df_buf_addc(b, is_member ? '\n' : ' ');
            put_items(b, item, depth + 1, !is_member);
        }
    }
}

char *df_yaml_print(const cJSON *j)
{
    struct df_buf b = DF_BUF_INIT(SIZE_MAX / 4);
    if (!j)
        return NULL;
    if (j->child) {
        put_items(&b, j, 0, false);
    } else {
        put_scalar(&b, j);
        (void)df_buf_addc(&b, '\n');
    }
    return df_buf_take(&b);
}
