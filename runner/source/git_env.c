/*
 * The environment of every git process of a fetch: configuration, allowed transports, credentials.
 * df_git_open() at the end lists the parts; each add_... adds its variables and writes its files.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/process/process.h"
#include "runner/source/git.h"
#include "runner/source/source.h"

/* The only configuration that git processes of this fetch read. It is a file, because the process
 * that serves a file URL does not get `-c` options. */
static const char configuration[] = "[core]\n"
                                    "\thooksPath = /dev/null\n"
                                    "\tfsmonitor = false\n"
                                    "\tprotectNTFS = true\n"
                                    "\tprotectHFS = true\n"
                                    "[protocol]\n"
                                    "\tallow = never\n"
                                    "[transfer]\n"
                                    "\tfsckObjects = true\n"
                                    /* Harmless faults of old git versions. */
                                    "[fetch \"fsck\"]\n"
                                    "\tzeroPaddedFilemode = ignore\n"
                                    "\tmissingSpaceBeforeDate = ignore\n"
                                    "\tbadTimezone = ignore\n"
                                    "\tmissingEmail = ignore\n"
                                    "[http]\n"
                                    "\tfollowRedirects = initial\n"
                                    "\tlowSpeedLimit = 1\n"
                                    "\tlowSpeedTime = %d\n"
                                    "[safe]\n"
                                    "\tdirectory = *\n"
                                    "[filter \"lfs\"]\n"
                                    "\tsmudge =\n"
                                    "\tprocess =\n"
                                    "\trequired = false\n"
                                    /* Of the process that serves a file URL: contained.c. */
                                    "[uploadpack]\n"
                                    "\tallowFilter = true\n"
                                    "[gc]\n"
                                    "\tauto = 0\n"
                                    "[maintenance]\n"
                                    "\tauto = false\n"
                                    "[submodule]\n"
                                    "\trecurse = false\n";

static int add_configuration(struct df_git *g, struct df_err *err)
{
    DF_FREE char *text = df_strf(configuration, DF_LIMIT_HTTP_IDLE_SECONDS);
    DF_FREE char *path = NULL;
    if (df_check_alloc(text, err) < 0 ||
        df_fetch_private_file(g->fetch, "gitconfig", text, &path, err) < 0)
        return -1;
    (void)df_strs_set_env(&g->env, "GIT_CONFIG_GLOBAL", path);
    (void)df_strs_set_env(&g->env, "GIT_CONFIG_NOSYSTEM", "1");
    return df_strs_check(&g->env, err);
}

/* Variables that git inherits: where programs are, and the proxies. */
static void add_inherited(struct df_strs *env)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY",  "no_proxy",    "NO_PROXY",    "TMPDIR"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value)
            (void)df_strs_set_env(env, names[i], value);
    }
    const char *path = getenv("PATH");
    (void)df_strs_set_env(env, "PATH", df_str_empty(path) ? "/usr/local/bin:/usr/bin:/bin" : path);
}

static int add_plain(struct df_git *g, struct df_err *err)
{
    add_inherited(&g->env);
    (void)df_strs_set_env(&g->env, "HOME", g->fetch->private_dir);
    (void)df_strs_set_env(&g->env, "XDG_CONFIG_HOME", g->fetch->private_dir);
    (void)df_strs_set_env(&g->env, "LC_ALL", "C");
    (void)df_strs_set_env(&g->env, "GIT_TERMINAL_PROMPT", "0");
    (void)df_strs_set_env(&g->env, "GIT_PROTOCOL_FROM_USER", "0");
    (void)df_strs_set_env(&g->env, "GIT_LFS_SKIP_SMUDGE", "1");
    (void)df_strs_set_env(&g->env, "GIT_ATTR_NOSYSTEM", "1");
    (void)df_strs_set_env(&g->env, "GIT_NO_REPLACE_OBJECTS", "1");
    return df_strs_check(&g->env, err);
}

/* Only a source on this disk may have submodules on this disk. */
static int add_transports(struct df_git *g, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    const char *allowed = s->scheme == DF_SCHEME_FILE                            ? "file:https:ssh"
                          : s->accepts_http || df_starts_with(s->url, "http://") ? "http:https:ssh"
                                                                                 : "https:ssh";
    (void)df_strs_set_env(&g->env, "GIT_ALLOW_PROTOCOL", allowed);
    return df_strs_check(&g->env, err);
}

static int add_https(struct df_git *g, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    DF_FREE char *ca = NULL;
    if (s->ca_certificate) {
        if (df_fetch_private_file(g->fetch, "ca.pem", s->ca_certificate, &ca, err) < 0)
            return -1;
        (void)df_strs_set_env(&g->env, "GIT_SSL_CAINFO", ca);
    }
    return df_strs_check(&g->env, err);
}

/* Without credentials there is no askpass, and git reports at once what is missing. */
static int add_askpass(struct df_git *g, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    if (!s->password || !s->origin)
        return 0;
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_SECRET_VALUE);
    DF_FREE char *path = NULL, *self = NULL;
    if (df_process_own_path(&self, err) < 0)
        return -1;
    (void)df_buf_addf(&text, "%s\n%s\n%s\n", s->origin, s->username ? s->username : "git",
                      s->password);
    int result = df_buf_check(&text, err);
    if (result == 0)
        result = df_fetch_private_file(g->fetch, "askpass", df_buf_str(&text), &path, err);
    df_buf_wipe(&text);
    if (result < 0)
        return -1;
    (void)df_strs_set_env(&g->env, "GIT_ASKPASS", self);
    (void)df_strs_set_env(&g->env, DF_ASKPASS_ENV, path);
    return df_strs_check(&g->env, err);
}

/* Adds an option of ssh's configuration with a path: "/a b/%%". */
static int add_ssh_path(struct df_buf *b, const char *option, const char *path, struct df_err *err)
{
    if (!path || strpbrk(path, "\"'\\"))
        return df_fail(err, DF_ERR_USER, "the data directory \"%s\" has a quote in its name", path);
    (void)df_buf_addf(b, "%s \"", option);
    for (; *path; path++)
        (void)df_buf_adds(b, *path == '%' ? "%%" : (const char[]){*path, '\0'});
    (void)df_buf_adds(b, "\"\n");
    return df_buf_check(b, err);
}

static const char ssh_options[] = "BatchMode yes\n"
                                  "IdentitiesOnly yes\n"
                                  "IdentityAgent none\n"
                                  "GlobalKnownHostsFile /dev/null\n"
                                  "UpdateHostKeys no\n"
                                  "PasswordAuthentication no\n"
                                  "KbdInteractiveAuthentication no\n"
                                  "PermitLocalCommand no\n"
                                  "ClearAllForwardings yes\n"
                                  "ConnectTimeout 20\n"
                                  "ServerAliveInterval 15\n"
                                  "ServerAliveCountMax 4\n";

/* pattern: the hosts that all of this is for. accept-new writes the key that it accepts into the
 * file, for the submodules. */
static int add_ssh_options(const struct df_git *g, const char *pattern, const char *key,
                           const char *hosts, struct df_buf *b, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    bool accepts = s->accepts_host_keys && !s->known_hosts;
    (void)df_buf_addf(b, "Host %s\n%sStrictHostKeyChecking %s\n", pattern, ssh_options,
                      accepts ? "accept-new" : "yes");
    return add_ssh_path(b, "IdentityFile", key, err) < 0
               ? -1
               : add_ssh_path(b, "UserKnownHostsFile", hosts, err);
}

/* This very program becomes ssh: git would run a command of more than one word by a shell. */
static int add_ssh_helper(struct df_git *g, const char *config, struct df_err *err)
{
    DF_FREE char *self = NULL;
    if (df_process_own_path(&self, err) < 0)
        return -1;
    (void)df_strs_set_env(&g->env, "GIT_SSH", self);
    (void)df_strs_set_env(&g->env, "GIT_SSH_VARIANT", "ssh");
    (void)df_strs_set_env(&g->env, DF_SSH_CONFIG_ENV, config);
    return df_strs_check(&g->env, err);
}

/* Tools know the command, and add to it. */
static int add_ssh_command(struct df_git *g, const char *config, struct df_err *err)
{
    DF_FREE char *command = df_strf("ssh -F '%s'", config);
    if (!command)
        return df_fail_oom(err);
    (void)df_strs_set_env(&g->env, "GIT_SSH_COMMAND", command);
    (void)df_strs_set_env(&g->env, "GIT_SSH_VARIANT", "ssh");
    return df_strs_check(&g->env, err);
}

static int check_ssh(const struct df_fetch *f, struct df_err *err)
{
    const struct df_source_spec *s = f->spec;
    if (!s->ssh_key)
        return df_fail_reason(
            err, DF_ERR_USER, "SourceFailed", "source.url \"%s\" is ssh, and there is no key: %s",
            s->url,
            f->advice ? f->advice->ssh_key
                      : "put one as ssh-privatekey into a secret (`dayfly secret set NAME "
                        "ssh-privatekey --from-file FILE`) and name it in spec.source.secretRef "
                        "(`dayfly edit executor NAME`). Keys of ~/.ssh and of an agent are used "
                        "for modules, not for a source");
    if (!s->known_hosts && !s->accepts_host_keys)
        return df_fail_reason(err, DF_ERR_USER, "SourceFailed",
                              "the host key of %s is not pinned: put the lines of `ssh-keyscan` "
                              "for it, after comparing them with what its operator publishes, "
                              "as known_hosts into the secret of source.secretRef",
                              s->host);
    return 0;
}

/* ssh rejects a key without a line feed at its end. */
static int write_key(const struct df_fetch *f, const char *key, char **ret, struct df_err *err)
{
    DF_FREE char *text = df_strf("%s\n", key);
    if (!text)
        return df_fail_oom(err);
    int result = df_fetch_private_file(f, "key", text, ret, err);
    explicit_bzero(text, strlen(text));
    return result;
}

/* A file with all that ssh reads. after: what follows in it. */
static int configure_ssh(struct df_git *g, const char *pattern, const char *after, char **ret,
                         struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    DF_BUF struct df_buf config = DF_BUF_INIT(32 * 1024);
    DF_FREE char *key = NULL;
    DF_FREE char *hosts = NULL;
    if ((s->ssh_key && write_key(g->fetch, s->ssh_key, &key, err) < 0) ||
        df_fetch_private_file(g->fetch, "known_hosts", s->known_hosts ? s->known_hosts : "", &hosts,
                              err) < 0 ||
        add_ssh_options(g, pattern, key ? key : "/dev/null", hosts, &config, err) < 0)
        return -1;
    (void)df_buf_adds(&config, after);
    return df_buf_check(&config, err) < 0
               ? -1
               : df_fetch_private_file(g->fetch, "sshconfig", df_buf_str(&config), ret, err);
}

/* Also for an https source, whose submodules may use ssh. */
static int add_ssh_of_source(struct df_git *g, struct df_err *err)
{
    DF_FREE char *config = NULL;
    const struct df_source_spec *s = g->fetch->spec;
    if (s->scheme == DF_SCHEME_SSH && check_ssh(g->fetch, err) < 0)
        return -1;
    if (s->scheme == DF_SCHEME_SSH && !s->known_hosts)
        df_fetch_note(g->fetch, "no known hosts are configured: whichever key %s has is accepted",
                      s->host);
    return configure_ssh(g, "*", "", &config, err) < 0 ? -1 : add_ssh_helper(g, config, err);
}

int df_git_open(const struct df_fetch *f, struct df_git *ret, struct df_err *err)
{
    DF_GIT struct df_git g = {.fetch = f};
    if (add_plain(&g, err) < 0 || add_configuration(&g, err) < 0 || add_transports(&g, err) < 0 ||
        add_https(&g, err) < 0 || add_askpass(&g, err) < 0 || add_ssh_of_source(&g, err) < 0)
        return -1;
    *ret = g;
    g = (struct df_git){0};
    return 0;
}

void df_git_close(struct df_git *g)
{
    df_strs_free(&g->env);
}

/* ---- for the modules of the source ---- */

/* One more setting for every git process: of this URL alone, while GIT_SSL_CAINFO is of all. */
static int add_setting(struct df_strs *env, const char *key, const char *value, struct df_err *err)
{
    int64_t n = 0;
    const char *count = df_strs_get_env(env, "GIT_CONFIG_COUNT");
    char name[64], text[24];
    if (!df_str_empty(count) && df_parse_i64(count, 0, 1000, &n, err) < 0)
        return df_err_wrap(err, "GIT_CONFIG_COUNT");
    (void)snprintf(name, sizeof(name), "GIT_CONFIG_KEY_%d", (int)n);
    (void)df_strs_set_env(env, name, key);
    (void)snprintf(name, sizeof(name), "GIT_CONFIG_VALUE_%d", (int)n);
    (void)df_strs_set_env(env, name, value);
    (void)snprintf(text, sizeof(text), "%d", (int)n + 1);
    (void)df_strs_set_env(env, "GIT_CONFIG_COUNT", text);
    return df_strs_check(env, err);
}

static int share_https(struct df_git *g, struct df_err *err)
{
    const struct df_source_spec *s = g->fetch->spec;
    DF_FREE char *ca = NULL;
    DF_FREE char *key = df_strf("http.%s/.sslCAInfo", s->origin);
    if (df_check_alloc(key, err) < 0 ||
        (s->ca_certificate &&
         (df_fetch_private_file(g->fetch, "ca.pem", s->ca_certificate, &ca, err) < 0 ||
          add_setting(&g->env, key, ca, err) < 0)))
        return -1;
    /* An integration, or the executor's environment, may have its own. */
    return df_strs_get_env(&g->env, "GIT_ASKPASS") ? 0 : add_askpass(g, err);
}

/* Of other hosts ssh asks as it would without us. */
static int share_ssh(struct df_git *g, struct df_err *err)
{
    static const char others[] = "Match all\n"
                                 "Include ~/.ssh/config\n"
                                 "Include /etc/ssh/ssh_config\n";
    DF_FREE char *host = NULL, *config = NULL;
    if (df_strs_get_env(&g->env, "GIT_SSH_COMMAND"))
        return 0;
    host = df_source_host(g->fetch->spec->url);
    if (df_check_alloc(host, err) < 0 || configure_ssh(g, host, others, &config, err) < 0)
        return -1;
    return add_ssh_command(g, config, err);
}

int df_source_share(const cJSON *source, const char *private_dir, struct df_strs *env,
                    struct df_err *err)
{
    DF_SOURCE_SPEC struct df_source_spec spec = {0};
    if (df_source_spec_read(source, &spec, err) < 0)
        return -1;
    const struct df_fetch f = {.spec = &spec, .private_dir = private_dir, .log_fd = -1};
    struct df_git g = {.fetch = &f, .env = *env};
    int failed = spec.scheme == DF_SCHEME_HTTPS ? share_https(&g, err)
                 : spec.scheme == DF_SCHEME_SSH ? share_ssh(&g, err)
                                                : 0;
    *env = g.env;
    return failed;
}
