/*
 * git asks its helper two questions: "Username for 'https://host:port': " and "Password for
 * 'https://user@host:port': ". Only the host of the source gets an answer: a submodule on another
 * host or a redirect to one gets none.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/source.h"

bool df_source_is_askpass(void)
{
    return getenv(DF_ASKPASS_ENV) != NULL;
}

/* True if the URL that the question quotes has this origin. */
static bool asks_for(const char *prompt, const char *origin)
{
    const char *open = strchr(prompt, '\''), *close = open ? strrchr(prompt, '\'') : NULL;
    const char *scheme_end = open ? strstr(open, "://") : NULL;
    if (!close || close == open || !scheme_end || scheme_end > close)
        return false;
    const char *host = scheme_end + 3;
    for (const char *p = host; p < close; p++)
        if (*p == '@')
            host = p + 1;
    size_t scheme = (size_t)(scheme_end + 3 - (open + 1)), rest = (size_t)(close - host);
    return strlen(origin) == scheme + rest && strncmp(origin, open + 1, scheme) == 0 &&
           strncmp(origin + scheme, host, rest) == 0;
}

/* Cuts the first line off *text. */
static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    *text = end ? end + 1 : line + strlen(line);
    if (end)
        *end = '\0';
    return line;
}

static int answer(const char *prompt, char *text)
{
    const char *origin = next_line(&text), *user = next_line(&text), *password = next_line(&text);
    if (!asks_for(prompt, origin))
        return 1;
    if (df_starts_with(prompt, "Username"))
        return puts(user) < 0;
    return df_starts_with(prompt, "Password") ? puts(password) < 0 : 1;
}

int df_source_askpass(int argc, char **argv)
{
    const char *path = getenv(DF_ASKPASS_ENV);
    struct df_buf b = DF_BUF_INIT(2 * DF_LIMIT_SECRET_VALUE);
    int result = 1;
    if (path && argc == 2 && df_fs_read(path, &b, NULL) == 0 && b.data)
        result = answer(argv[1], b.data);
    df_buf_wipe(&b);
    return fflush(stdout) == 0 ? result : 1;
}
