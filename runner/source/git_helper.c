/*
 * What git starts this very program for. Without this git would need a shell to start
 * `ssh -F FILE`, and an image may have none.
 *
 * As askpass it is asked two questions: "Username for 'https://host:port': " and "Password for
 * 'https://user@host:port': ". Only the host of the source gets an answer: a submodule on another
 * host or a redirect to one gets none.
 */
#include <errno.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/source/source.h"

bool df_source_is_helper(void)
{
    return getenv(DF_ASKPASS_ENV) || getenv(DF_SSH_CONFIG_ENV);
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

static int ask_pass(const char *prompt)
{
    const char *path = getenv(DF_ASKPASS_ENV);
    struct df_buf b = DF_BUF_INIT(2 * DF_LIMIT_SECRET_VALUE);
    int result = 1;
    if (path && df_fs_read(path, &b, NULL) == 0 && b.data)
        result = answer(prompt, b.data);
    df_buf_wipe(&b);
    return fflush(stdout) == 0 ? result : 1;
}

/* Returns only after a failure. */
static int become_ssh(int argc, char **argv)
{
    char *config = getenv(DF_SSH_CONFIG_ENV);
    char **args = config ? calloc((size_t)argc + 3, sizeof(*args)) : NULL;
    if (!args)
        return 1;
    args[0] = (char[]){"ssh"};
    args[1] = (char[]){"-F"};
    args[2] = config;
    for (int i = 1; i < argc; i++)
        args[i + 2] = argv[i];
    (void)execvp(args[0], args);
    (void)fprintf(stderr, "error: cannot run ssh: %s\n", strerror(errno));
    return 1;
}

int df_source_help(int argc, char **argv)
{
    return argc == 2 ? ask_pass(argv[1]) : become_ssh(argc, argv);
}
