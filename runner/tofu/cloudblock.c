#include "runner/tofu/cloudblock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>

#include "common/base/fs.h"
#include "common/json/json.h"

#define MAX_FILE (8 * DF_MIB)

/* ---- the language, as far as needed ---- */

struct scan {
    const char *p, *end;
};

static bool at(const struct scan *s, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(s->end - s->p) >= n && memcmp(s->p, word, n) == 0;
}

static void skip_to_line_end(struct scan *s)
{
    while (s->p < s->end && *s->p != '\n')
        s->p++;
}

static void skip_block_comment(struct scan *s)
{
    while (s->p < s->end && !at(s, "*/"))
        s->p++;
    s->p += s->p < s->end ? 2 : 0;
}

/* From behind the opening quote to behind the closing one. A template "${...}" may hold strings of
 * its own: levels counts the braces and quotes that are open, by a stack of what each one is. */
static void skip_string(struct scan *s)
{
    char open[64] = {'"'};
    size_t depth = 1;
    while (s->p < s->end && depth > 0) {
        bool in_string = open[depth - 1] == '"';
        char c = *s->p;
        if (in_string && c == '\\') {
            s->p += s->end - s->p > 1 ? 2 : 1;
            continue;
        }
        if (in_string && (at(s, "$${") || at(s, "%%{"))) {
            s->p += 3;
            continue;
        }
        bool template = in_string && (at(s, "${") || at(s, "%{"));
        s->p += template ? 2 : 1;
        if (c == (in_string ? '"' : '}'))
            depth--;
        else if (template || (!in_string && (c == '"' || c == '{'))) {
            if (depth == sizeof(open))
                return; /* nothing that tofu would take */
            open[depth++] = c == '"' ? '"' : '}';
        }
    }
}

/* At "<<": past the line that is the closing word alone. Anything else is no heredoc. */
static void skip_heredoc(struct scan *s)
{
    s->p += 2;
    if (at(s, "-"))
        s->p++;
    const char *word = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || strchr("_-.", *s->p)))
        s->p++;
    size_t n = (size_t)(s->p - word);
    while (n > 0 && s->p < s->end) {
        skip_to_line_end(s);
        while (s->p < s->end && isspace((unsigned char)*s->p))
            s->p++;
        if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
            continue;
        const char *after = s->p + n;
        while (after < s->end && (*after == ' ' || *after == '\t' || *after == '\r'))
            after++;
        if (after == s->end || *after == '\n')
            return;
    }
}

/* Skips what is not code; false when *p is code. */
static bool skip_non_code(struct scan *s)
{
    if (at(s, "#") || at(s, "//"))
        skip_to_line_end(s);
    else if (at(s, "/*"))
        skip_block_comment(s);
    else if (at(s, "<<"))
        skip_heredoc(s);
    else if (at(s, "\"")) {
        s->p++;
        skip_string(s);
    } else
        return false;
    return true;
}

/* At an identifier: steps over it and says whether it is word and opens a block without labels. */
static bool opens_block(struct scan *s, const char *word)
{
    const char *start = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '-'))
        s->p++;
    size_t n = (size_t)(s->p - start);
    const char *next = s->p;
    while (next < s->end && (*next == ' ' || *next == '\t'))
        next++;
    return n == strlen(word) && memcmp(start, word, n) == 0 && next < s->end && *next == '{';
}

bool df_hcl_has_cloud_block(const char *text, size_t n)
{
    struct scan s = {text, text + n};
    int64_t depth = 0;
    bool in_terraform = false;
    while (s.p < s.end) {
        if (skip_non_code(&s))
            continue;
        char c = *s.p;
        if (isalpha((unsigned char)c) || c == '_') {
            if (depth == 0)
                in_terraform = opens_block(&s, "terraform");
            else if (opens_block(&s, "cloud") && depth == 1 && in_terraform)
                return true;
            continue;
        }
        depth += (c == '{') - (c == '}');
        s.p++;
    }
    return false;
}

/* ---- the files of a module ---- */

static bool json_has_cloud_block(const char *text, size_t n)
{
    DF_JSON cJSON *doc = NULL;
    if (df_json_parse(text, n, &doc, NULL) < 0)
        return false;
    const cJSON *settings = df_json_at(doc, "terraform");
    if (cJSON_IsObject(settings))
        return df_json_at(settings, "cloud");
    const cJSON *block;
    cJSON_ArrayForEach (block, settings) {
        if (df_json_at(block, "cloud"))
            return true;
    }
    return false;
}

static int check_file(const char *dir, const char *name, struct df_err *err)
{
    bool json = df_ends_with(name, ".tf.json") || df_ends_with(name, ".tofu.json");
    if (!json && !df_ends_with(name, ".tf") && !df_ends_with(name, ".tofu"))
        return 0;
    DF_FREE char *path = df_fs_join(dir, name);
    if (!path)
        return df_fail_oom(err);
    DF_BUF struct df_buf text = DF_BUF_INIT(MAX_FILE);
    if (df_fs_read(path, &text, NULL) < 0)
        return 0; /* tofu will say what is wrong with it */
    const char *bytes = df_buf_str(&text);
    if (!(json ? json_has_cloud_block : df_hcl_has_cloud_block)(bytes, text.len))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "%s: the module keeps its state in a `cloud` block; here the state is kept for "
                   "it, and starts empty: remove the block if that is meant",
                   name);
}

int df_cloudblock_refuse(const char *module_dir, struct df_err *err)
{
    DIR *d = opendir(module_dir);
    if (!d)
        return df_fail_errno(err, errno, "read directory %s", module_dir);
    int failed = 0;
    for (const struct dirent *e; !failed && (e = readdir(d));)
        failed = check_file(module_dir, e->d_name, err);
    (void)closedir(d);
    return failed;
}
