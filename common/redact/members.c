/*
 * visit_text() tries what a text may be; visit_member() decides about each string that it finds
 * there, and looks into it in turn.
 */
#include "common/redact/members.h"

#include "common/base/buf.h"
#include "common/crypto/crypto.h"
#include "common/hcl/hcl.h"
#include "common/redact/nonsecret.h"
#include "common/yaml/yaml.h"

struct members {
    int (*emit)(void *arg, const char *member, struct df_err *err);
    void *arg;
    int depth;
};

static int visit_text(struct members *m, const char *name, const char *text, struct df_err *err);

static int emit_member(struct members *m, const char *member, struct df_err *err)
{
    return strlen(member) < DF_REDACT_MEMBER_MIN ? 0 : m->emit(m->arg, member, err);
}

static int visit_member(struct members *m, const char *name, const char *value, struct df_err *err)
{
    if (df_redact_is_nonsecret(name, value))
        return 0;
    return emit_member(m, value, err) < 0 ? -1 : visit_text(m, name, value, err);
}

/* --- JSON and YAML --------------------------------------------------------------------------- */

static int visit_tree(struct members *m, const char *name, const cJSON *tree, struct df_err *err)
{
    const cJSON *item;
    if (cJSON_IsString(tree))
        return visit_member(m, name, tree->valuestring, err);
    cJSON_ArrayForEach (item, tree) {
        if (visit_tree(m, item->string ? item->string : name, item, err) < 0)
            return -1;
    }
    return 0;
}

typedef int parse_document(const char *text, size_t n, cJSON **ret, struct df_err *err);

/* A text that is not valid is no error: *ret_found stays as it is. Fails only without memory. */
static int visit_document(struct members *m, const char *name, const char *text,
                          parse_document *parse, bool *ret_found, struct df_err *err)
{
    DF_SECRET_JSON cJSON *tree = NULL;
    struct df_err why = {0};
    if (parse(text, strlen(text), &tree, &why) < 0)
        return why.cls == DF_ERR_LIMIT ? df_err_pass(err, &why) : 0;
    *ret_found = true;
    return visit_tree(m, name, tree, err);
}

/* True if some line is a member of a YAML mapping, so that a password with a colon is none. */
static bool is_mapping(const char *text)
{
    for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':'))
        if (colon > text && strchr(" \n\r", colon[1]) && colon[1])
            return true;
    return false;
}

/* --- HCL ------------------------------------------------------------------------------------- */

static int visit_literal(void *arg, const struct df_hcl_literal *l, struct df_err *err)
{
    return visit_member(arg, l->name, l->value, err);
}

/* --- base64 ---------------------------------------------------------------------------------- */

/* The text of base64 in one or more lines; empty if it is none or encodes no text. */
static void decode_base64(const char *text, struct df_buf *ret)
{
    enum { LEAST = 12 }; /* a word of 8 letters is valid base64 as well */
    DF_BUF struct df_buf packed = DF_BUF_INIT(strlen(text) + 1);
    for (const char *p = text; *p; p++)
        if (!strchr(" \t\r\n", *p))
            (void)df_buf_addc(&packed, *p);
    if (packed.failed || packed.len < LEAST ||
        df_base64_decode(packed.data, packed.len, false, ret, NULL) < 0)
        df_buf_clear(ret);
    for (size_t i = 0; i < ret->len; i++) {
        unsigned char c = (unsigned char)ret->data[i];
        if ((c < ' ' && !strchr("\t\r\n", c)) || c == 0x7f || !c) {
            df_buf_clear(ret);
            break;
        }
    }
    df_buf_wipe(&packed);
}

static int visit_base64(struct members *m, const char *name, const char *text, struct df_err *err)
{
    struct df_buf plain = DF_BUF_INIT(strlen(text) + 1);
    decode_base64(text, &plain);
    const char *colon = df_streq(name, "auth") ? strchr(df_buf_str(&plain), ':') : NULL;
    int failed = emit_member(m, df_buf_str(&plain), err) < 0 ||
                 (colon && emit_member(m, colon + 1, err) < 0) ||
                 visit_text(m, name, df_buf_str(&plain), err) < 0;
    df_buf_wipe(&plain);
    return failed ? -1 : 0;
}

/* --- any of them ----------------------------------------------------------------------------- */

/* What begins with a bracket is JSON, or else HCL; YAML may look like either. */
static int visit_bracketed(struct members *m, const char *name, const char *text,
                           struct df_err *err)
{
    bool found = false;
    if (visit_document(m, name, text, df_json_parse, &found, err) < 0)
        return -1;
    if (found)
        return 0;
    return df_hcl_literals(text, visit_literal, m, err) < 0 ||
                   visit_document(m, name, text, df_yaml_parse_all, &found, err) < 0
               ? -1
               : 0;
}

static int visit_plain(struct members *m, const char *name, const char *text, struct df_err *err)
{
    bool found = false;
    if (is_mapping(text) && visit_document(m, name, text, df_yaml_parse_all, &found, err) < 0)
        return -1;
    return found ? 0 : visit_base64(m, name, text, err);
}

static int visit_text(struct members *m, const char *name, const char *text, struct df_err *err)
{
    char first = text[strspn(text, " \t\r\n")];
    if (!first || m->depth == DF_REDACT_MEMBER_DEPTH)
        return 0;
    m->depth++;
    int result = first == '{' || first == '[' ? visit_bracketed(m, name, text, err)
                                              : visit_plain(m, name, text, err);
    m->depth--;
    return result;
}

int df_redact_members(const char *value,
                      int (*emit)(void *arg, const char *member, struct df_err *err), void *arg,
                      struct df_err *err)
{
    struct members m = {emit, arg, 0};
    return visit_text(&m, "", value, err);
}
