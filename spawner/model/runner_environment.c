#include "spawner/model/runner_environment.h"

#include <strings.h>

#define LOADS "it changes which code the runner loads"
#define RESOLVES "it changes which hosts the runner speaks to"
#define TRUSTS "it changes whom the runner believes"
#define FINDS "it changes which programs and files the runner finds"

struct refusal {
    const char *pattern; /* a name, or its beginning and `*`, or `*` and its end */
    const char *why;
};

/* What the C library and the libraries read before or below the runner's own code. */
static const struct refusal of_all[] = {
    {"DAYFLY_*", "it is set by the service"},
    {"LD_*", LOADS},
    {"GCONV_PATH", LOADS},
    {"OPENSSL_*", LOADS}, /* OPENSSL_CONF names engines and providers */
    {"GLIBC_TUNABLES", "it changes how the runner's memory is kept"},
    {"MALLOC_*", "it changes how the runner's memory is kept"},
    {"LOCALDOMAIN", RESOLVES},
    {"RES_OPTIONS", RESOLVES},
    {"RESOLV_*", RESOLVES},
    {"HOSTALIASES", RESOLVES},
    {"CURL_*", TRUSTS},
    {"NLSPATH", FINDS},
    {"LOCPATH", FINDS},
};

/* An operator or the author of an Executor sets a proxy, an authority or a PATH on purpose, and
 * brings an image of his own anyway. The variables of a workspace are edited by many. */
static const struct refusal of_workspaces[] = {
    {"*_PROXY", RESOLVES}, {"SSL_*", TRUSTS}, {"GIT_*", FINDS}, {"SSH_*", FINDS},
    {"XDG_*", FINDS},      {"PATH", FINDS},   {"HOME", FINDS},  {"TMPDIR", FINDS},
    {"BASH_*", FINDS}, /* BASH_ENV is a script that bash runs first */
    {"ENV", FINDS},
};

static bool matches(const char *pattern, const char *name)
{
    size_t n = strlen(pattern), has = strlen(name);
    if (*pattern == '*')
        return has >= n - 1 && strcasecmp(name + has - (n - 1), pattern + 1) == 0;
    if (pattern[n - 1] == '*')
        return strncasecmp(name, pattern, n - 1) == 0;
    return strcasecmp(name, pattern) == 0;
}

static const char *find(const struct refusal *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (matches(table[i].pattern, name))
            return table[i].why;
    return NULL;
}

const char *df_runner_variable_refused(const char *name, enum df_environment_author author)
{
    const char *why = find(of_all, DF_ARRAY_SIZE(of_all), name);
    if (why || author == DF_SET_BY_DOCUMENT)
        return why;
    return find(of_workspaces, DF_ARRAY_SIZE(of_workspaces), name);
}
