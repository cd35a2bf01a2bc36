#include "runner/report/termination.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"

/* Members that are removed until the result fits, in this order. */
static const char *const spare[] = {"timeline", "tool", "source", "lockFileSha256"};

static bool fits(const char *text)
{
    return text && strlen(text) <= DF_TERMINATION_MAX;
}

/* Shortens the message, at a character boundary, until the document fits. Escapes make the printed
 * length hard to compute, so each length is tried. */
static int cut_message(cJSON *doc, char **ret, struct df_err *err)
{
    const char *message = df_json_str(doc, "message");
    DF_FREE char *copy = strdup(message ? message : "");
    if (!copy)
        return df_fail_oom(err);
    for (size_t n = strlen(copy);;) {
        DF_FREE char *text = df_json_print(doc);
        if (!text)
            return df_fail_oom(err);
        if (fits(text)) {
            *ret = DF_TAKE(text);
            return 0;
        }
        if (n == 0)
            return df_fail(err, DF_ERR_LIMIT, "the result has more than %zu bytes",
                           DF_TERMINATION_MAX);
        n -= n / 8 + 1;
        while (n && ((unsigned char)copy[n] & 0xC0) == 0x80)
            n--;
        copy[n] = '\0';
        if (df_json_set_str(doc, "message", copy, err) < 0)
            return -1;
    }
}

int df_termination_text(const cJSON *result, char **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_Duplicate(result, true);
    DF_FREE char *whole = doc ? df_json_print(doc) : NULL;
    if (!whole)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(spare) && !fits(whole); i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(doc, spare[i]);
        free(whole);
        whole = df_json_print(doc);
    }
    if (!fits(whole))
        return cut_message(doc, ret, err);
    *ret = DF_TAKE(whole);
    return 0;
}

int df_termination_write_text(const char *path, const char *sentence, struct df_err *err)
{
    size_t n = strnlen(sentence, DF_TERMINATION_MAX);
    DF_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return df_fail_errno(err, errno, "open %s", path);
    return df_fs_write_all(fd, sentence, n, err);
}

int df_termination_write(const char *path, const cJSON *result, struct df_err *err)
{
    DF_FREE char *text = NULL;
    if (df_termination_text(result, &text, err) < 0)
        return -1;
    return df_termination_write_text(path, text, err);
}
