/* Credentials by VCS, the source in git, remote-content, the key for modules. */
#include "runner/terrakube/source.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>

#include "common/azure/credentials.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/source/rules.h"

/* The id of Azure DevOps among Azure's services. */
#define AZURE_DEVOPS "499b84ac-1321-427f-aa17-267ca6975798"

#define MODULE_KEY "terrakube_module_key"
#define MODULE_HOSTS "terrakube_known_hosts"

static bool is_ssh(const char *vcs_type)
{
    return vcs_type && df_starts_with(vcs_type, "SSH");
}

/* ---- known hosts ---- */

int df_terrakube_known_hosts(const struct df_strs *env, char **ret, struct df_err *err)
{
    const char *path = df_strs_get_env(env, DF_TERRAKUBE_KNOWN_HOSTS);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    *ret = NULL;
    if (df_str_empty(path))
        return 0;
    if (df_fs_read(path, &text, err) < 0) {
        (void)df_err_wrap(err, "the known hosts of " DF_TERRAKUBE_KNOWN_HOSTS);
        return df_err_reason(err, "SourceRefused");
    }
    if (!text.len)
        return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                              DF_TERRAKUBE_KNOWN_HOSTS ": %s is empty", path);
    return df_check_alloc(*ret = df_buf_take(&text), err);
}

/* ---- credentials ---- */

/* Who asks. Terrakube asks GitHub with the token as user name; git would show that in the arguments
 * of its helper, and GitHub takes this name, too. */
static const char *user_of(const char *vcs_type)
{
    static const struct {
        const char *vcs, *user;
    } users[] = {{"GITHUB", "x-access-token"},
                 {"GITLAB", "oauth2"},
                 {"BITBUCKET", "x-token-auth"},
                 {"AZURE_DEVOPS", "dummy"},
                 {"AZURE_SP_MI", "dummy"}};
    for (size_t i = 0; vcs_type && i < DF_ARRAY_SIZE(users); i++) {
        if (df_streq(vcs_type, users[i].vcs))
            return users[i].user;
    }
    return NULL;
}

static int add_ssh(const char *key, const char *known_hosts, cJSON *to, struct df_err *err)
{
    if (df_json_add_str(to, "sshPrivateKey", key, err) < 0)
        return -1;
    return df_str_empty(known_hosts) ? df_json_add_bool(to, "acceptsHostKeys", true, err)
                                     : df_json_add_str(to, "knownHosts", known_hosts, err);
}

static int add_password(const char *vcs_type, const char *token, cJSON *to, struct df_err *err)
{
    char *fetched = NULL;
    if (df_streq(vcs_type, "AZURE_SP_MI") && df_azure_token(AZURE_DEVOPS, &fetched, err) < 0)
        return df_err_wrap(err, "the token of the managed identity for Azure DevOps");
    int failed = df_json_add_str(to, "username", user_of(vcs_type), err) < 0 ||
                 df_json_add_str(to, "password", fetched ? fetched : token, err) < 0;
    df_str_wipe(&fetched);
    return failed ? -1 : 0;
}

/* True for dev.azure.com and *.visualstudio.com over https. */
static bool is_azure_devops(const char *url)
{
    static const char old[] = ".visualstudio.com";
    struct df_source_url u = {0};
    if (!df_starts_with(url, "https://") || df_source_url_fault(url, &u))
        return false;
    size_t n = 0, m = strlen(old);
    while (n < u.host_len && u.host[n] != ':')
        n++;
    return (n == strlen("dev.azure.com") && strncasecmp(u.host, "dev.azure.com", n) == 0) ||
           (n > m && strncasecmp(u.host + n - m, old, m) == 0);
}

/* The token is that of the pod's own identity, and opens whatever Azure DevOps gives that. A server
 * on one's own premises takes none of them. */
static int check_identity(const struct df_terrakube_access *a, struct df_err *err)
{
    return is_azure_devops(a->url)
               ? 0
               : df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                                "AZURE_SP_MI sends the token of the managed identity to "
                                "https://dev.azure.com and https://*.visualstudio.com alone, not "
                                "to %.256s: use another kind of VCS connection for it",
                                a->url);
}

/* *ret is NULL if there are no credentials. */
static int make_credentials(const struct df_terrakube_access *a, cJSON **ret, struct df_err *err)
{
    bool fetches = df_streq(a->vcs_type, "AZURE_SP_MI");
    *ret = NULL;
    if (!is_ssh(a->vcs_type) && !user_of(a->vcs_type))
        return 0;
    if (df_str_empty(a->token) && !fetches)
        return is_ssh(a->vcs_type)
                   ? df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                                    "the job has no key for its source over %s: give "
                                    "the workspace an SSH key",
                                    a->vcs_type)
                   : 0;
    if (fetches && check_identity(a, err) < 0)
        return -1;
    DF_SECRET_JSON cJSON *found = cJSON_CreateObject();
    if (df_check_alloc(found, err) < 0 ||
        (is_ssh(a->vcs_type) ? add_ssh(a->token, a->known_hosts, found, err)
                             : add_password(a->vcs_type, a->token, found, err)) < 0)
        return -1;
    *ret = DF_TAKE(found);
    return 0;
}

/* Whoever fetches tells the other faults of a URL; this one's way out is Terrakube's. */
static int check_url(const struct df_terrakube_access *a, struct df_err *err)
{
    struct df_source_url u = {0};
    const char *fault = df_source_open_url_fault(a->url, &u);
    if (!fault || !df_streq(fault, DF_SOURCE_USE_SECRET))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                          "the URL of the source has credentials in it, which everybody can read "
                          "who sees the workspace: take them out, and add the VCS connection or "
                          "SSH key to the workspace");
}

/* Whoever is on the way of http reads the token. */
static int check_way(const struct df_terrakube_access *a, struct df_err *err)
{
    struct df_source_url u = {0};
    if (df_source_open_url_fault(a->url, &u) || !u.is_open || a->http_credentials)
        return 0; /* who fetches tells the fault of a URL */
    return df_fail_reason(
        err, DF_ERR_USER, "SourceRefused",
        "the credentials of %.256s would go over http, where others can read them: "
        "use https. An operator can allow it with " DF_TERRAKUBE_HTTP_CREDENTIALS
        "=true in the environment of the executor",
        a->url);
}

int df_terrakube_source_add_access(const struct df_terrakube_access *a, cJSON *source,
                                   struct df_err *err)
{
    cJSON *found = NULL;
    if (make_credentials(a, &found, err) < 0)
        return -1;
    bool has_password = found && !is_ssh(a->vcs_type);
    if (found && df_json_add(source, "credentials", found, err) < 0)
        return -1;
    if (check_url(a, err) < 0 || (has_password && check_way(a, err) < 0))
        return -1;
    /* Without it submodules and redirects must be https, too. */
    return has_password && !a->http_credentials
               ? 0
               : df_json_add_bool(source, "acceptsHttp", true, err);
}

/* ---- git ---- */

/* The folder without the slashes around it; NULL: the top. The caller frees *ret. */
static int read_folder(const char *folder, char **ret, struct df_err *err)
{
    *ret = NULL;
    const char *begin = folder ? folder + strspn(folder, "/") : "";
    size_t n = strlen(begin);
    while (n && begin[n - 1] == '/')
        n--;
    if (!n)
        return 0;
    return df_check_alloc(*ret = strndup(begin, n), err);
}

static int add_commit(const char *commit, cJSON *step, struct df_err *err)
{
    char id[65] = "";
    if (!commit)
        return 0;
    for (size_t i = 0; commit[i] && i < sizeof id - 1; i++)
        id[i] = (char)(commit[i] >= 'A' && commit[i] <= 'F' ? commit[i] - 'A' + 'a' : commit[i]);
    if (strlen(commit) >= sizeof id || df_source_commit_fault(id))
        return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                              "the job's commitId \"%.80s\" is not a whole commit id", commit);
    cJSON *expected = df_json_object_at(step, "expected");
    return df_json_set_str(expected, "commit", id, err);
}

static int add_git(const struct df_terrakube_source_request *r, cJSON *source, cJSON *step,
                   struct df_err *err)
{
    const struct df_terrakube_payload *p = r->payload;
    const struct df_terrakube_access access = {p->source, p->vcs_type, p->access_token,
                                               r->known_hosts,
                                               r->settings && r->settings->http_credentials};
    if (!p->source || !p->branch)
        return df_fail_reason(err, DF_ERR_USER, "SourceRefused",
                              "the job has no %s: set it in the workspace",
                              p->source ? "branch" : "source");
    if (r->output && is_ssh(p->vcs_type) && !r->known_hosts)
        (void)df_output_note(
            r->output,
            "dayfly: the SSH host key of the server of %s is not checked: " DF_TERRAKUBE_KNOWN_HOSTS
            " names no file of known hosts",
            p->source);
    if (df_json_put(source, err, DF_STR("url", p->source), DF_STR("kind", "git")) < 0 ||
        df_terrakube_source_add_access(&access, source, err) < 0 ||
        df_json_put(source, err, DF_STR("ref", p->branch), DF_BOOL("submodules", true)) < 0)
        return -1;
    return add_commit(p->commit, step, err);
}

/* ---- remote-content ---- */

/* Whoever has the token of the API, which is good for everything, must be the API: who may set the
 * URL of a job may not choose who gets it. */
static int download(const struct df_terrakube_source_request *r, const char *url, const char *path,
                    struct df_err *err)
{
    DF_FREE char *upload = NULL;
    if (df_terrakube_api_upload(r->settings, url, &upload, err) < 0)
        return -1;
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    if (df_terrakube_api_download(r->api, upload ? upload : url, upload != NULL,
                                  DF_LIMIT_ARCHIVE_DOWNLOAD, fd, err) == 0)
        return 0;
    (void)unlink(path);
    return df_err_reason(err, "SourceFailed");
}

/* The API names the archive in the job; the payload's source is the same in versions that send
 * it. */
static const char *find_archive(const struct df_terrakube_source_request *r)
{
    const char *source = r->payload->source;
    if (!df_str_empty(r->override_source))
        return r->override_source;
    if (!source || df_streq(source, "empty"))
        return NULL;
    if (r->output)
        (void)df_output_note(r->output,
                             "dayfly: the job names no uploaded configuration, so the workspace's "
                             "source is taken: %s",
                             source);
    return source;
}

static int add_archive(const struct df_terrakube_source_request *r, cJSON *source,
                       struct df_err *err)
{
    const char *url = find_archive(r);
    if (!url)
        return df_fail_reason(err, DF_ERR_USER, "SourceFailed",
                              "the job has no uploaded configuration: run it again from the "
                              "command line that uploads one");
    DF_FREE char *path = df_fs_join(r->directory, "terraformContent.tar.gz");
    DF_FREE char *file = path ? df_strf("file://%s", path) : NULL;
    if (df_check_alloc(path, err) < 0 || download(r, url, path, err) < 0)
        return -1;
    return df_json_put(source, err, DF_STR_ALLOC("url", file), DF_STR("kind", "archive"),
                       DF_BOOL("keepsTop", true));
}

/* ---- both ---- */

int df_terrakube_source_add(const struct df_terrakube_source_request *r, cJSON *step,
                            struct df_err *err)
{
    DF_FREE char *folder = NULL;
    DF_SECRET_JSON cJSON *source = cJSON_CreateObject();
    if (!source)
        return df_fail_oom(err);
    int failed = df_streq(r->payload->branch, DF_TERRAKUBE_REMOTE_CONTENT)
                     ? add_archive(r, source, err)
                     : add_git(r, source, step, err);
    if (failed || read_folder(r->payload->folder, &folder, err) < 0 ||
        df_json_add_str(source, "folder", folder, err) < 0)
        return -1;
    return df_json_set(step, "source", DF_TAKE(source), err);
}

/* ---- modules over ssh ---- */

/* The key of an ssh source opens its modules, too, unless there is one for modules. */
static const char *module_key(const struct df_terrakube_payload *p)
{
    return p->module_ssh_key ? p->module_ssh_key : is_ssh(p->vcs_type) ? p->access_token : NULL;
}

int df_terrakube_source_add_module_key(const struct df_terrakube_payload *p,
                                       const char *known_hosts, cJSON *step, struct df_err *err)
{
    const char *key = module_key(p);
    cJSON *files = key ? df_json_object_at(step, "files") : NULL;
    cJSON *env = key ? df_json_object_at(step, "environment") : NULL;
    if (!key)
        return 0;
    char *text = df_strf("%s\n", key); /* ssh rejects a key without a line feed at its end */
    DF_FREE char *command =
        df_strf("ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -i '@files/" MODULE_KEY
                "' -o StrictHostKeyChecking=%s -o UserKnownHostsFile='@files/" MODULE_HOSTS "'",
                df_str_empty(known_hosts) ? "accept-new" : "yes");
    int result = df_json_put(files, err, DF_STR_ALLOC(MODULE_KEY, text),
                             DF_STR(MODULE_HOSTS, known_hosts ? known_hosts : ""));
    df_str_wipe(&text);
    return result < 0 ? -1 : df_json_put(env, err, DF_STR_ALLOC("GIT_SSH_COMMAND", command));
}
