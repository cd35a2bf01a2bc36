#include "common/aws/profile.h"

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

/* Cuts white space off both ends, in place. */
static char *trim(char *s)
{
    s += strspn(s, " \t\r");
    for (size_t n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

/* True for "[name]", and then the text without brackets. */
static bool is_section(char *line, char **ret_name)
{
    size_t n = strlen(line);
    if (n < 2 || line[0] != '[' || line[n - 1] != ']')
        return false;
    line[n - 1] = '\0';
    *ret_name = trim(line + 1);
    return true;
}

static int take_setting(char *line, struct df_aws_keys *k, struct df_err *err)
{
    char *value = strchr(line, '=');
    if (!value || line[0] == '#' || line[0] == ';')
        return 0;
    *value++ = '\0';
    const char *name = trim(line);
    value = trim(value);
    if (df_streq(name, "aws_access_key_id"))
        return df_str_set(&k->access_key, value, err);
    if (df_streq(name, "aws_secret_access_key"))
        return df_str_set(&k->secret_key, value, err);
    if (df_streq(name, "aws_session_token"))
        return df_str_set(&k->token, value, err);
    return 0;
}

static int take_lines(char *text, const char *profile, struct df_aws_keys *k, bool *ret_found,
                      struct df_err *err)
{
    bool inside = false;
    char *rest = text, *line = NULL, *name = NULL;
    while ((line = strsep(&rest, "\n"))) {
        line = trim(line);
        if (is_section(line, &name)) {
            inside = df_streq(name, profile);
            *ret_found = *ret_found || inside;
        } else if (inside && take_setting(line, k, err) < 0)
            return -1;
    }
    return 0;
}

int df_aws_profile_read(const char *path, const char *profile, struct df_aws_keys *ret,
                        struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_AWS_PROFILES);
    DF_AWS_KEYS k = {0};
    bool found = false;
    if (df_fs_read(path, &text, err) < 0)
        return df_err_wrap(err, "AWS credentials");
    if (text.len && take_lines(text.data, profile, &k, &found, err) < 0)
        return -1;
    if (!found)
        return df_fail(err, DF_ERR_USER, "%s has no profile \"%s\" (AWS_PROFILE)", path, profile);
    if (!k.access_key || !k.secret_key)
        return df_fail(err, DF_ERR_USER,
                       "%s: profile \"%s\" has no aws_access_key_id and aws_secret_access_key",
                       path, profile);
    *ret = k;
    k = (struct df_aws_keys){0};
    return 0;
}
