/* What is installed, then the release index, the storage and the download: df_terrakube_tool_find()
 * at the end has the order. */
#include "runner/terrakube/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "common/terrakube/storage.h"
#include "runner/tofu/release.h"
#include "runner/tofu/toolchain.h"

#define TERRAFORM_INDEX "https://releases.hashicorp.com/terraform/index.json"

/* A tool can be had elsewhere: it is not worth the patience that a state is worth. */
enum { STORAGE_RETRY_MS = 5000 };

struct search {
    const struct df_terrakube_tool_request *request;
    struct df_tool_request tools; /* what the rooms of the tool take */
    struct df_range range;
    const char *program, *cache;
    struct df_terrakube_storage *storage; /* NULL: it is not used */
};

/* ---- installed ---- */

/* NOT_FOUND, with the places, if none of the range is here. */
static int find_installed(struct search *s, const struct df_range *range, struct df_tool *ret,
                          struct df_err *err)
{
    struct df_tool best = {0};
    for (size_t i = 0; i < range->n; i++) {
        struct df_tool found = {0};
        struct df_err why = {0};
        DF_FREE char *constraint = df_constraint_print(&range->any[i]);
        if (!constraint)
            return df_fail_oom(err);
        s->tools.constraint = constraint;
        int failed = df_toolchain_find(&s->tools, &found, &why);
        s->tools.constraint = NULL;
        if (failed && !df_streq(why.reason, "ToolMissing")) {
            df_tool_free(&best);
            return df_err_pass(err, &why);
        }
        if (failed && !best.path)
            (void)df_err_pass(err, &why);
        if (!failed && (!best.path || df_version_compare(&found.version, &best.version) > 0)) {
            df_tool_free(&best);
            best = found;
        } else {
            df_tool_free(&found);
        }
    }
    *ret = best;
    return best.path ? 0 : -1;
}

/* The version that was just installed, which must be what it is called. */
static int find_exact(struct search *s, const char *version, struct df_tool *ret,
                      struct df_err *err)
{
    struct df_range exact;
    return df_range_parse(version, &exact, err) < 0 ? -1 : find_installed(s, &exact, ret, err);
}

/* ---- the storage ---- */

/* "tofu/1.9.0/tofu" and, with the ending, the note beside it. The caller frees; NULL: no memory. */
static char *object_name(const struct search *s, const char *version, const char *ending)
{
    return df_strf("%s/%s/%s%s", s->program, version, s->program, ending);
}

#define NOTE_LENGTH (2 * (DF_SHA256_HEX - 1) + 2)

/* "<digest> <signature>\n": whoever may write to the storage cannot make one without
 * InternalSecret. */
static int make_note(const struct search *s, const char *name, const char *digest,
                     char ret[NOTE_LENGTH + 1], struct df_err *err)
{
    const char *secret = s->request->settings->internal_secret;
    unsigned char mac[DF_SHA256_LEN];
    DF_FREE char *text = df_strf("dayfly tfbinary\n%s\n%s\n", name, digest);
    if (df_check_alloc(text, err) < 0 ||
        df_hmac_sha256(secret, strlen(secret), text, strlen(text), mac, err) < 0)
        return -1;
    int n = snprintf(ret, NOTE_LENGTH + 1, "%s ", digest);
    for (size_t i = 0; i < sizeof mac; i++)
        n += snprintf(ret + n, (size_t)(NOTE_LENGTH + 1 - n), "%02x", mac[i]);
    (void)snprintf(ret + n, (size_t)(NOTE_LENGTH + 1 - n), "\n");
    return 0;
}

static int digest_of(const char *path, char ret[DF_SHA256_HEX], struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? df_fail_errno(err, errno, "open %s", path)
                  : df_sha256_file_hex(fd, ret, NULL, err);
}

static int get(const struct search *s, const char *name, const char *path, struct df_err *err)
{
    return df_terrakube_storage_get(s->storage, s->request->payload, DF_TERRAKUBE_OBJECT_BINARY,
                                    name, path, err);
}

/* NOT_FOUND: there is no note, DENIED: it is not that of this file. */
static int check_note(const struct search *s, const char *version, const char *path,
                      const char *note_path, char ret_digest[DF_SHA256_HEX], struct df_err *err)
{
    char expected[NOTE_LENGTH + 1];
    DF_BUF struct df_buf note = DF_BUF_INIT(NOTE_LENGTH);
    DF_FREE char *name = object_name(s, version, "");
    if (df_check_alloc(name, err) < 0 || df_fs_read(note_path, &note, err) < 0 ||
        digest_of(path, ret_digest, err) < 0 || make_note(s, name, ret_digest, expected, err) < 0)
        return -1;
    return df_secret_equal(df_buf_str(&note), expected)
               ? 0
               : df_fail_reason(err, DF_ERR_DENIED, "ToolChecksum",
                                "%s in the storage is not the program that dayfly stored", name);
}

static int fetch_stored(const struct search *s, const char *version, const char *tmp,
                        struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    DF_FREE char *name = object_name(s, version, "");
    DF_FREE char *note = object_name(s, version, ".sha256");
    DF_FREE char *path = df_fs_join(tmp, s->program);
    DF_FREE char *note_path = df_fs_join(tmp, "note");
    if (df_check_alloc(name, err) < 0 || df_check_alloc(note, err) < 0 ||
        df_check_alloc(path, err) < 0 || df_check_alloc(note_path, err) < 0 ||
        get(s, note, note_path, err) < 0 || get(s, name, path, err) < 0 ||
        check_note(s, version, path, note_path, digest, err) < 0)
        return -1;
    if (chmod(path, 0755) < 0 || unlink(note_path) < 0)
        return df_fail_errno(err, errno, "%s", path);
    return df_release_publish(s->cache, tmp, s->program, digest, err);
}

static bool uses_storage(const struct search *s)
{
    return s->storage && s->cache;
}

static void note(const struct search *s, const char *what, const struct df_err *why)
{
    if (s->request->output)
        (void)df_output_note(s->request->output, "dayfly: %s: %s", what, why->message);
}

/* One that fails is not asked again. */
static void drop_storage(struct search *s)
{
    df_terrakube_storage_free(s->storage);
    s->storage = NULL;
}

/* True if the storage had it and it is installed now. */
static bool take_stored(struct search *s, const char *version)
{
    struct df_err why = {0};
    DF_FREE char *tmp = s->cache ? df_fs_join(s->cache, ".new-XXXXXX") : NULL;
    if (!uses_storage(s) || !tmp || df_fs_mkdirs(s->cache, 0755, &why) < 0 || !mkdtemp(tmp))
        return false;
    int failed = fetch_stored(s, version, tmp, &why);
    if (df_fs_remove_tree(tmp, NULL) < 0 || !failed)
        return !failed;
    if (why.cls != DF_ERR_NOT_FOUND)
        note(s, "the tool in the storage is not used", &why);
    if (why.cls != DF_ERR_NOT_FOUND && why.cls != DF_ERR_DENIED)
        drop_storage(s);
    return false;
}

static int put_stored(const struct search *s, const char *version, const char *path,
                      struct df_err *err)
{
    char digest[DF_SHA256_HEX], text[NOTE_LENGTH + 1];
    DF_FREE char *name = object_name(s, version, "");
    DF_FREE char *note_name = object_name(s, version, ".sha256");
    DF_FREE char *note_path = df_strf("%s/.note-%d", s->cache, (int)getpid());
    if (df_check_alloc(name, err) < 0 || df_check_alloc(note_name, err) < 0 ||
        df_check_alloc(note_path, err) < 0 || digest_of(path, digest, err) < 0 ||
        make_note(s, name, digest, text, err) < 0 ||
        df_terrakube_storage_put(s->storage, s->request->payload, DF_TERRAKUBE_OBJECT_BINARY, name,
                                 path, err) < 0 ||
        df_fs_write(note_path, text, strlen(text), 0600, err) < 0)
        return -1;
    int failed = df_terrakube_storage_put(s->storage, s->request->payload,
                                          DF_TERRAKUBE_OBJECT_BINARY, note_name, note_path, err);
    (void)unlink(note_path);
    return failed;
}

/* The next pod saves a download; this one needs nothing of it. */
static void store(const struct search *s, const char *version, const char *path)
{
    struct df_err why = {0};
    if (uses_storage(s) && put_stored(s, version, path, &why) < 0)
        note(s, "the tool could not be stored for later steps", &why);
}

/* ---- the index ---- */

/* The caller frees; NULL: no memory, or no URL is known. */
static char *index_url(const struct search *s)
{
    const struct df_terrakube_settings *t = s->request->settings;
    if (s->tools.kind == DF_TOOL_TERRAFORM)
        return strdup(t->terraform_releases_url ? t->terraform_releases_url : TERRAFORM_INDEX);
    if (t->tofu_releases_url)
        return strdup(t->tofu_releases_url);
    return t->api_url
               ? df_strf("%.*s/tofu/index.json",
                         (int)(strlen(t->api_url) - df_ends_with(t->api_url, "/")), t->api_url)
               : NULL;
}

static int install(struct search *s, struct df_http *http, const struct df_release *release,
                   struct df_tool *ret, struct df_err *err)
{
    DF_FREE char *path = NULL;
    if (take_stored(s, release->version) && find_exact(s, release->version, ret, err) == 0)
        return 0;
    if (!release->sums[0] && s->request->output)
        (void)df_output_note(s->request->output,
                             "dayfly: the index names no checksums: %s is not verified",
                             release->url);
    if (df_release_install(http, release, &s->tools, &path, err) < 0 ||
        find_exact(s, release->version, ret, err) < 0)
        return -1;
    store(s, release->version, path);
    return 0;
}

static int from_index(struct search *s, struct df_tool *ret, struct df_err *err)
{
    const struct df_http_options options = {.ca_file = df_json_str(s->tools.tools, "caFile"),
                                            .follow_redirects = true,
                                            .allow_file = true};
    DF_FREE char *url = index_url(s);
    DF_HTTP struct df_http *http = NULL;
    DF_RELEASE struct df_release release = {0};
    if (!url)
        return df_fail(err, DF_ERR_USER,
                       "neither CustomTofuReleasesUrl nor AzBuilderApiUrl is set");
    if (df_http_new(&options, &http, err) < 0)
        return -1;
    return df_release_choose(http, url, &s->tools, &s->range, &release, err) < 0
               ? -1
               : install(s, http, &release, ret, err);
}

/* ---- all of it ---- */

static int fail_missing(const struct search *s, const struct df_err *here, const struct df_err *why,
                        struct df_err *err)
{
    const char *version = s->request->payload->version;
    return df_fail_reason(
        err, DF_ERR_NOT_FOUND, *why->reason ? why->reason : "ToolMissing",
        "the workspace's %s %s cannot be provided. From the index: %s. On this machine: %s",
        s->program, version ? version : "(any version)", why->message, here->message);
}

/* Without asking the index what an exact version is. */
static bool from_storage(struct search *s, struct df_tool *ret)
{
    const struct df_version *exact = df_range_exact(&s->range);
    char version[DF_VERSION_TEXT];
    return exact && take_stored(s, df_version_format(exact, version)) &&
           find_exact(s, version, ret, NULL) == 0;
}

/* From anywhere but here. */
static int fetch(struct search *s, struct df_tool *ret, struct df_err *err)
{
    const struct df_terrakube_tool_request *r = s->request;
    struct df_err why = {0};
    if (r->uses_storage && r->settings->internal_secret &&
        df_terrakube_storage_new(r->settings, STORAGE_RETRY_MS, r->stop, &s->storage, &why) < 0)
        note(s, "the storage cannot be searched for tools", &why);
    int failed = from_storage(s, ret) ? 0 : from_index(s, ret, err);
    drop_storage(s);
    return failed;
}

int df_terrakube_tool_find(const struct df_terrakube_tool_request *r, struct df_tool *ret,
                           struct df_err *err)
{
    struct search s = {.request = r,
                       .tools = {.kind = r->payload->is_tofu ? DF_TOOL_OPENTOFU : DF_TOOL_TERRAFORM,
                                 .tools = r->tools,
                                 .path_env = r->path_env,
                                 .stop = r->stop,
                                 .is_local = true,
                                 .wall = r->wall},
                       .cache = df_json_str(r->tools, "cacheDirectory")};
    struct df_err here = {0}, why = {0};
    s.program = df_tool_kind_program(s.tools.kind);
    if (df_range_parse(r->payload->version, &s.range, err) < 0)
        return df_err_reason(err, "ToolMissing");
    if (find_installed(&s, &s.range, ret, &here) == 0)
        return 0;
    if (!df_streq(here.reason, "ToolMissing"))
        return df_err_pass(err, &here);
    if (!s.cache)
        return df_err_pass(err, &here);
    return fetch(&s, ret, &why) == 0 ? 0 : fail_missing(&s, &here, &why, err);
}
