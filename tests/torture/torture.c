/*
 * torture.c - fails the k-th allocation of every scenario, for k = 1, 2, ... until the scenario no
 * longer reaches it.
 *
 * Each time the scenario must end, either with success (the allocation did not matter) or with a
 * failure that says so, and must leak nothing (the program is built with AddressSanitizer). malloc
 * and its kin are wrapped at link time, so every call in common/ and in the statically linked
 * libraries counts; cJSON gets the same through its hooks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "common/archive/names.h"
#include "common/archive/tree.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/blob/blob.h"
#include "common/blob/kube_object.h"
#include "common/crypto/certificate.h"
#include "common/crypto/crypto.h"
#include "common/crypto/jwks.h"
#include "common/hcl/calls.h"
#include "common/hcl/hcl.h"
#include "common/http/http.h"
#include "common/json/json.h"
#include "common/kube/kube.h"
#include "common/kube/objects.h"
#include "common/metrics/metrics.h"
#include "common/process/process.h"
#include "common/redact/redact.h"
#include "common/yaml/yaml.h"
#include "tests/unit/object_dir.h"

static long until_failure = -1; /* allocations left before one fails; -1: none fails */
static bool has_failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t m);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t m);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);

static bool fail_now(void)
{
    if (until_failure < 0)
        return false;
    if (until_failure-- > 0)
        return false;
    has_failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return fail_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
    return fail_now() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fail_now() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t m)
{
    return fail_now() ? NULL : __real_reallocarray(p, n, m);
}

char *__wrap_strdup(const char *s)
{
    return fail_now() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fail_now() ? NULL : __real_strndup(s, n);
}

int __wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
    if (!fail_now())
        return __real_vasprintf(ret, fmt, ap);
    *ret = NULL;
    return -1;
}

/* ---- scenarios: 0 or -1 with err, like everything else
 * -------------------------------------------- */

static char directory[] = "/tmp/dayfly-torture-XXXXXX";

static int json_round_trip(struct df_err *err)
{
    static const char text[] =
        "{\"a\":[1,2.5,true,null,{\"b\":\"\\u00e4\\n\"}],\"c\":{\"d\":\"e\"}}";
    DF_JSON cJSON *j = NULL, *copy = NULL;
    if (df_json_parse(text, sizeof(text) - 1, &j, err) < 0)
        return -1;
    DF_FREE char *made = df_strf("%s", "made");
    if (df_json_put(j, err, DF_STR_ALLOC("made", made)) < 0 ||
        df_json_add_str(j, "f", "g", err) < 0 || df_json_add_time(j, "t", 1, err) < 0 ||
        df_json_set_str(j, "f", "h", err) < 0 ||
        df_json_put(j, err, DF_STR("f", "i"), DF_TIME("t", 2), DF_BOOL("new", true),
                    DF_ITEM("o", df_json_object(DF_NUM("n", 1), DF_ITEM("l", cJSON_CreateArray()))),
                    DF_ITEM("p", cJSON_CreateObject())) < 0)
        return -1;
    DF_FREE char *printed = df_json_print_pretty(j);
    if (!printed)
        return df_fail_oom(err);
    if (df_json_parse(printed, strlen(printed), &copy, err) < 0)
        return -1;
    if (!df_json_equal(j, copy))
        DF_BUG("the copy differs: %s", printed);
    return df_json_merge_patch(&j, copy, err);
}

static int yaml_round_trip(struct df_err *err)
{
    static const char text[] = "a: &x [1, two, {b: c}]\nd: *x\ne: |\n  long\n  text\n";
    DF_JSON cJSON *j = NULL;
    struct df_yaml_lines *lines = NULL;
    if (df_yaml_parse(text, sizeof(text) - 1, &j, &lines, err) < 0)
        return -1;
    df_yaml_lines_free(lines);
    DF_FREE char *printed = df_yaml_print(j);
    return printed ? 0 : df_fail_oom(err);
}

static int crypto_round_trip(struct df_err *err)
{
    static const unsigned char key[DF_KEY_LEN] = {1, 2, 3};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_MIB), opened = DF_BUF_INIT(DF_MIB);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB), bytes = DF_BUF_INIT(DF_MIB);
    if (df_aead_seal(key, "aad", "secret", 6, &sealed, err) < 0 ||
        df_aead_open(key, "aad", sealed.data, sealed.len, &opened, err) < 0)
        return -1;
    if (df_base64_encode(opened.data, opened.len, true, &text, err) < 0 ||
        df_base64_decode(text.data, text.len, true, &bytes, err) < 0)
        return -1;
    if (bytes.len != 6 || memcmp(bytes.data, "secret", 6) != 0)
        DF_BUG("the round trip changed the text");
    return 0;
}

static int crypto_of_files(struct df_err *err)
{
    static const unsigned char key[DF_KEY_LEN] = {1, 2, 3};
    DF_CLOSE int plain = memfd_create("plain", MFD_CLOEXEC);
    DF_CLOSE int sealed = memfd_create("sealed", MFD_CLOEXEC);
    DF_CLOSE int opened = memfd_create("opened", MFD_CLOEXEC);
    DF_FREE char *path = df_fs_join(directory, "key");
    unsigned char loaded[DF_KEY_LEN];
    char hex[DF_SHA256_HEX];
    if (!path)
        return df_fail_oom(err);
    if (df_fs_write_all(plain, "text", 4, err) < 0 ||
        df_seal_file(key, "aad", plain, sealed, err) < 0 ||
        df_open_file(key, "aad", sealed, 0, opened, err) < 0 ||
        df_sha256_file_hex(opened, hex, NULL, err) < 0)
        return -1;
    return df_key_file(path, loaded, err);
}

/* Made once, with a key that was thrown away. */
static const char token_keys[] =
    "{\"keys\":[{\"kty\":\"EC\",\"use\":\"sig\",\"kid\":\"k\",\"crv\":\"P-256\","
    "\"x\":\"aJp51KoylKwmB5DhtERHn1PVN2hE-2omkM0ZIq7DISI\","
    "\"y\":\"Pg9bHy-TdTaO_-eG7oEUO9ktVoBqjTv_9gnY_Tkzoog\"}]}";
static const char token[] =
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ."
    "eyJpc3MiOiJpIiwiYXVkIjoiYSIsImV4cCI6NDAwMDAwMDAwMCwic3ViIjoicyJ9."
    "uFNhugHEtfY8qnSZv8gwHIjIJ6AFQ3jPvID0jIjREb4ou9ThxugbKMyckGiEC3xvYGGEKqW8FRk3P3BBf4rdHA";

static int give_token_keys(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    (void)arg;
    (void)df_buf_adds(ret, df_streq(path, DF_JWKS_PATH) ? token_keys : "{\"issuer\":\"i\"}");
    return df_buf_check(ret, err);
}

/* What is refused for want of memory must not be refused for good. */
static int tokens(struct df_err *err)
{
    const struct df_jwks_options o = {.fetch = give_token_keys};
    struct df_jwks *j = NULL;
    DF_JSON cJSON *claims = NULL;
    if (df_jwks_new(&o, &j, err) < 0)
        return -1;
    int result = df_jwks_verify(j, token, "a", &claims, err);
    df_jwks_free(j);
    if (result < 0 && err->cls == DF_ERR_DENIED)
        DF_BUG("a good token was refused: %s", err->message);
    return result;
}

static int certificates(struct df_err *err)
{
    DF_BUF struct df_buf ca_key = DF_BUF_INIT(DF_MIB), ca = DF_BUF_INIT(DF_MIB);
    DF_BUF struct df_buf key = DF_BUF_INIT(DF_MIB), cert = DF_BUF_INIT(DF_MIB);
    DF_STRS struct df_strs names = {0};
    (void)df_strs_add(&names, "a.example");
    if (df_strs_check(&names, err) < 0 || df_certificate_authority("ca", &ca_key, &ca, err) < 0 ||
        df_certificate_issue(df_buf_str(&ca_key), df_buf_str(&ca), &names, &key, &cert, err) < 0)
        return -1;
    return df_certificate_check_pair(df_buf_str(&cert), df_buf_str(&key), err);
}

static int blob_life(struct df_err *err)
{
    struct df_blob *b = NULL;
    if (df_blob_open(directory, &b, err) < 0)
        return -1;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    DF_STRS struct df_strs keys = {0};
    int64_t size = 0;
    int result = -1;
    if (df_blob_put(b, "a/b", "text", 4, err) == 0 && df_blob_get(b, "a/b", &out, err) == 0 &&
        df_blob_list(b, "a", &keys, err) == 0 && df_blob_append(b, "s", 0, "x", 1, &size, err) == 0)
        result = 0;
    until_failure = -1; /* the next round must find no stream */
    if (df_blob_delete(b, "s", err) < 0)
        result = -1;
    df_blob_close(b);
    return result;
}

static bool agree(void *arg, const struct df_buf *content)
{
    (void)arg;
    return content->len > 0;
}

/* By what the process knows of the blob, and by what it reads. */
static int delete_on_condition(struct df_blob *b, struct df_err *err)
{
    const struct df_blob_condition c = {.max = DF_KIB, .agrees = agree};
    enum df_blob_removal what;
    if (df_blob_create(b, "a/lock", "x", 1, err) < 0 ||
        df_blob_delete_if(b, "a/lock", &c, &what, err) < 0 ||
        df_blob_put(b, "a/lock", "of some chunks", 14, err) < 0)
        return -1;
    return df_blob_delete_if(b, "a/lock", &c, &what, err);
}

/* Each call on a store, with chunks of a few bytes. */
static int chunked_calls(struct df_blob *b, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_KIB);
    DF_STRS struct df_strs keys = {0};
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    if (df_blob_put(b, "a/b", "twenty bytes of text", 20, err) < 0 ||
        df_blob_put(b, "a/b", "some others than that", 21, err) < 0 ||
        df_blob_append(b, "a/b", 21, "more", 4, &size, err) < 0 ||
        df_blob_get(b, "a/b", &out, err) < 0 || df_blob_open_read(b, "a/b", &fd, NULL, err) < 0 ||
        df_blob_list(b, "a", &keys, err) < 0 || delete_on_condition(b, err) < 0)
        return -1;
    return df_blob_delete_all(b, "a", err);
}

static int blob_in_objects(struct df_err *err)
{
    static const struct df_blob_sizes sizes = {
        .chunk = 8, .stream_chunk = 4, .no_chunks = 2, .blob = 100};
    struct df_blob *b = NULL;
    DF_FREE char *objects = df_strf("%s/objects", directory);
    if (!objects)
        return df_fail_oom(err);
    if (object_dir_open(objects, directory, &sizes, &b, err) < 0)
        return -1;
    int result = chunked_calls(b, err);
    until_failure = -1; /* the next round must find no blob, and no chunk of this one */
    df_blob_close(b);
    if (df_fs_remove_tree(objects, err) < 0)
        result = -1;
    return result;
}

/* A head and a chunk of it, as Secret and ConfigMap and back. */
static int blob_in_secrets(struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    DF_BLOB_HEAD back = {0};
    DF_JSON cJSON *secret = NULL, *chunk = NULL;
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_MIB);
    DF_FREE char *selector = df_blob_head_selector("a/b", err);
    const struct df_blob_sizes sizes = {.stream_chunk = 4, .blob = 100};
    if (!selector || df_blob_head_new("a/b/c", &sizes, &h, err) < 0 ||
        df_blob_head_new("a/b/c", &sizes, &back, err) < 0)
        return -1;
    h.size = 7;
    (void)df_strs_add(&h.chunks, "0123456789abcdef");
    (void)df_buf_adds(&h.tail, "end");
    (void)snprintf(h.version, sizeof(h.version), "7");
    if (df_strs_check(&h.chunks, err) < 0 || df_buf_check(&h.tail, err) < 0 ||
        df_blob_chunk_print(&h, h.chunks.items[0], "more", 4, &chunk, err) < 0 ||
        df_blob_head_print(&h, &secret, err) < 0)
        return -1;
    if (df_blob_head_parse(secret, true, &back, err) < 0)
        return -1;
    return df_blob_chunk_parse(chunk, &back, &content, err);
}

static int redaction(struct df_err *err)
{
    DF_STRS struct df_strs secrets = {0};
    struct df_redact_set *set = NULL;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    (void)df_strs_add(&secrets, "hunter2-hunter2");
    (void)df_strs_add(&secrets, "a\"b\nc/d=e f");
    if (df_strs_check(&secrets, err) < 0 || df_redact_set_new(&secrets, &set, err) < 0)
        return -1;
    int result = df_redact_string(set, "say hunter2-hunter2 now", &out, err);
    df_redact_set_free(set);
    if (result == 0 && strstr(df_buf_str(&out), "hunter2"))
        DF_BUG("a secret came through: %s", out.data);
    return result;
}

static int files(struct df_err *err)
{
    DF_FREE char *sub = df_fs_join(directory, "x/y/z");
    DF_FREE char *file = sub ? df_fs_join(sub, "f") : NULL;
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    if (!file)
        return df_fail_oom(err);
    if (df_fs_mkdirs(sub, 0700, err) < 0 || df_fs_replace(file, "text", 4, 0600, err) < 0 ||
        df_fs_read(file, &b, err) < 0)
        return -1;
    DF_FREE char *top = df_fs_join(directory, "x");
    return top ? df_fs_remove_tree(top, err) : df_fail_oom(err);
}

static enum df_tree_visit check_link(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    const int *root = arg;
    bool bad = S_ISLNK(e->st->st_mode) && df_tree_link_stays(*root, e->path, err) < 0;
    return bad ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

/* Of unpacking only what is ours: libarchive itself gives up when there is no memory. */
static int trees(struct df_err *err)
{
    static const char *const names[] = {"a/b/c", "a/b/d", "./e//f"};
    DF_CLOSE int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DF_NAMES struct df_names seen = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        DF_FREE char *clean = NULL;
        if (df_name_clean(names[i], &clean, err) < 0 ||
            df_names_add(&seen, clean, DF_NAME_FILE, err) < 0)
            return -1;
    }
    if (symlinkat("x/../y", root, "link") < 0)
        DF_BUG("symlinkat: errno %d", errno);
    int result = df_tree_walk(directory, check_link, &root, err);
    (void)unlinkat(root, "link", 0);
    return result;
}

static int process(struct df_err *err)
{
    static const char *const argv[] = {"/bin/echo", "hello", NULL}, *const env[] = {NULL};
    struct df_process_options o = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    DF_BUF struct df_buf out = DF_BUF_INIT(1000), tail = DF_BUF_INIT(1000);
    int code = 0;
    return df_process_run(&o, 10000, &out, &tail, &code, err);
}

static int http_refused(struct df_err *err)
{
    struct df_http_options o = {.bearer = "token"};
    DF_HTTP struct df_http *h = NULL;
    DF_HTTP_RESPONSE struct df_http_response r = {0};
    if (df_http_new(&o, &h, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST("GET", "http://127.0.0.1:1/");
    struct df_err refused = {0};
    if (df_http_send(h, &req, &r, &refused) == 0)
        DF_BUG("port 1 answered");
    if (refused.cls == DF_ERR_RETRY)
        return 0;
    *err = refused;
    return -1;
}

static int metrics(struct df_err *err)
{
    static struct df_metric *m;
    if (!m)
        m = df_metric_counter("torture_total", "Allocations that failed.", "kind");
    df_metric_add(m, "one", 1);
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    return df_metrics_write(&out, err);
}

static int kubeconfig(struct df_err *err)
{
    static const char text[] =
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1', tls-server-name: other, "
        "certificate-authority-data: LS0tLS1CRUdJTiBYLS0tLS0=}}]\n"
        "users: [{name: u, user: {token: t, exec: {apiVersion: "
        "client.authentication.k8s.io/v1, command: ./x, args: [a], env: [{name: A, value: "
        "b}]}}}]\n";
    DF_FREE char *path = df_fs_join(directory, "kubeconfig");
    if (!path)
        return df_fail_oom(err);
    if (df_fs_write(path, text, strlen(text), 0600, err) < 0)
        return -1;
    struct df_kube_config_options o = {.kubeconfig = path};
    DF_KUBE_CONFIG struct df_kube_config c = {0};
    return df_kube_config_load(&o, &c, err);
}

static int kube_refused(struct df_err *err)
{
    DF_KUBE_CONFIG struct df_kube_config c = {.source = strdup("torture"),
                                              .server = strdup("https://127.0.0.1:1"),
                                              .name_space = strdup("default"),
                                              .tls_server_name = strdup("other"),
                                              .token = strdup("t0ken")};
    if (!c.source || !c.server || !c.name_space || !c.tls_server_name || !c.token)
        return df_fail_oom(err);
    DF_KUBE struct df_kube *k = NULL;
    if (df_kube_new(&c, &k, err) < 0)
        return -1;
    struct df_kube_at at = {&df_kube_jobs, "a b", "net", "status", NULL};
    struct df_kube_delete_options o = {"u", "1", "Background", 0};
    struct df_err refused = {0};
    if (df_kube_delete(k, &at, &o, &refused) == 0)
        DF_BUG("port 1 answered");
    if (refused.cls == DF_ERR_RETRY)
        return 0;
    *err = refused;
    return -1;
}

static int leave(void *arg, cJSON *object, struct df_err *err)
{
    (void)arg, (void)object, (void)err;
    return 0;
}

/* In each of the three ways. */
static int read_all(struct df_packer *packer, struct df_cached *kept, struct df_err *err)
{
    DF_JSON cJSON *copy = NULL;
    DF_SHARED const cJSON *seen = NULL, *shown = NULL;
    return df_cached_copy(packer, kept, &copy, err) < 0 ||
                   df_cached_read(packer, kept, &seen, err) < 0 ||
                   df_cached_read_shown(packer, kept, leave, NULL, &shown, err) < 0
               ? -1
               : 0;
}

/* An object that cannot be packed stays hot, and is read as before. */
static int cool(struct df_kube_objects *s, struct df_packer *packer, struct df_err *err)
{
    DF_CACHED struct df_cached *hot = df_cached_share(df_kube_objects_coldest(s, 0)), *cold = NULL;
    if (read_all(packer, hot, err) < 0)
        return -1;
    if (df_cached_pack(packer, hot, &cold, NULL) == 0)
        df_kube_objects_cool(s, hot, cold);
    if (!cold != !!df_kube_objects_coldest(s, 0))
        DF_BUG("an object is neither hot nor packed");
    return read_all(packer, df_kube_objects_find(s, "n", "a")->kept, err);
}

static int put_twice_and_cool(struct df_kube_objects *s, struct df_packer *packer,
                              struct df_cached *kept, struct df_err *err)
{
    DF_STRS struct df_strs words = {0};
    (void)df_strs_add(&words, "j");
    (void)df_strs_add(&words, "k");
    struct df_kube_item item = {"n", "a", "u", "1", kept, &words, 1, 0};
    if (df_strs_check(&words, err) < 0 || df_kube_objects_put(s, &item, err) < 0)
        return -1;
    item.version = "2";
    return df_kube_objects_put(s, &item, err) < 0 ? -1 : cool(s, packer, err);
}

static int kube_objects(struct df_err *err)
{
    struct df_kube_objects s;
    struct df_packer *packer = NULL;
    DF_CACHED struct df_cached *kept = NULL;
    if (df_cached_new(cJSON_CreateObject(), &kept, err) < 0 || df_kube_objects_init(&s, err) < 0)
        return -1;
    int result = df_packer_new(&packer, err);
    if (result == 0)
        result = put_twice_and_cool(&s, packer, kept, err);
    df_kube_objects_free(&s);
    df_packer_free(packer);
    return result;
}

/* Packed by no sample and by one, and read back. */
static int packed(struct df_err *err)
{
    static const char text[] = "{\"a\":\"zyxwvutsrqponmlkjihgfedcba9876543210\"}";
    DF_JSON cJSON *object = NULL, *first = NULL, *second = NULL;
    DF_PACKED struct df_packed one = {0}, two = {0};
    struct df_packer *packer = NULL;
    if (df_json_parse(text, sizeof(text) - 1, &object, err) < 0 || df_packer_new(&packer, err) < 0)
        return -1;
    bool failed =
        df_pack(packer, object, &one, err) < 0 || df_pack(packer, object, &two, err) < 0 ||
        df_unpack(packer, &one, &first, err) < 0 || df_unpack(packer, &two, &second, err) < 0;
    df_packer_free(packer);
    return failed ? -1 : 0;
}

/* A module in both syntaxes: what is read without memory must not pass for a module without. */
static int blocks_of_a_module(struct df_err *err)
{
    static const char native[] = "terraform {\n backend \"s3\" {\n bucket = \"b\"\n }\n}\n"
                                 "variable \"v\" {\n sensitive = true\n}\n";
    static const char json[] = "{\"variable\":{\"w\":{\"sensitive\":true,\"n\":1}},"
                               "\"variable\":{\"x\":{}}}";
    DF_FREE char *dir = df_fs_join(directory, "module");
    DF_FREE char *a = df_fs_join(directory, "module/a.tf");
    DF_FREE char *b = df_fs_join(directory, "module/b.tf.json");
    if (!dir || !a || !b)
        return df_fail_oom(err);
    if (df_fs_mkdirs(dir, 0700, err) < 0 ||
        df_fs_write(a, native, sizeof(native) - 1, 0600, err) < 0 ||
        df_fs_write(b, json, sizeof(json) - 1, 0600, err) < 0)
        return -1;
    DF_HCL_MODULE struct df_hcl_module m = {0};
    if (df_hcl_scan(dir, DF_HCL_OPENTOFU, &m, err) < 0)
        return -1;
    if (m.len != 5 || !df_hcl_backend(&m) || !df_hcl_is_sensitive(&m.blocks[2]))
        DF_BUG("%zu blocks", m.len);
    return 0;
}

static int count_call(void *arg, const struct df_hcl_call *call, struct df_err *err)
{
    (void)err;
    *(size_t *)arg += df_ends_with(call->target, "/caller") || df_ends_with(call->target, "/b");
    return 0;
}

/* A module that calls another one, which calls it. */
static int local_modules(struct df_err *err)
{
    static const char up[] = "module \"b\" {\n  source = \"./b\"\n}\n";
    static const char down[] = "module \"a\" {\n  source = \"../\"\n}\n";
    DF_FREE char *b = df_fs_join(directory, "caller/b");
    DF_FREE char *a = df_fs_join(directory, "caller");
    DF_FREE char *of_a = df_fs_join(directory, "caller/c.tf");
    DF_FREE char *of_b = df_fs_join(directory, "caller/b/c.tf");
    size_t count = 0;
    if (!a || !b || !of_a || !of_b)
        return df_fail_oom(err);
    if (df_fs_mkdirs(b, 0700, err) < 0 || df_fs_write(of_a, up, sizeof(up) - 1, 0600, err) < 0 ||
        df_fs_write(of_b, down, sizeof(down) - 1, 0600, err) < 0 ||
        df_hcl_calls(a, DF_HCL_ANY, count_call, &count, err) < 0)
        return -1;
    if (count != 2)
        DF_BUG("%zu calls", count);
    return 0;
}

#include "tests/torture/buckets.h"
#include "tests/torture/terrakube.h"

static const struct {
    const char *name;
    int (*run)(struct df_err *err);
} scenarios[] = {{"json", json_round_trip},
                 {"yaml", yaml_round_trip},
                 {"crypto", crypto_round_trip},
                 {"sealing", crypto_of_files},
                 {"tokens", tokens},
                 {"issuing", certificates},
                 {"blob", blob_life},
                 {"blob in objects", blob_in_objects},
                 {"blob in secrets", blob_in_secrets},
                 {"buckets", buckets_refused},
                 {"kept token", token_kept},
                 {"redact", redaction},
                 {"files", files},
                 {"trees", trees},
                 {"process", process},
                 {"http", http_refused},
                 {"redis", redis_refused},
                 {"settings", terrakube_settings},
                 {"wire", terrakube_wire},
                 {"metrics", metrics},
                 {"kubeconfig", kubeconfig},
                 {"kube", kube_refused},
                 {"packed", packed},
                 {"hcl", blocks_of_a_module},
                 {"calls", local_modules},
                 {"kubestore", kube_objects},
                 {"job of Terrakube", terrakube_job},
                 {"storage of Terrakube", terrakube_storage},
                 {"API of Terrakube", terrakube_refused}};

/* Returns how many allocations were failed, or -1 when the scenario fails without any. */
static long torture(int (*run)(struct df_err *err))
{
    for (long k = 0;; k++) {
        struct df_err err = {0};
        has_failed = false;
        until_failure = k;
        int result = run(&err);
        until_failure = -1;
        if (result < 0 && !err.message[0])
            DF_BUG("allocation %ld failed without a message", k + 1);
        if (has_failed)
            continue;
        if (result < 0)
            (void)fprintf(stderr, "fails by itself: %s\n", err.message);
        return result < 0 ? -1 : k;
    }
}

int main(void)
{
    struct df_err err = {0};
    cJSON_Hooks hooks = {__wrap_malloc, free};
    cJSON_InitHooks(&hooks);
    if (!mkdtemp(directory) || df_http_global_init(&err) < 0)
        return 1;
    int passed = 0, failed = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(scenarios); i++) {
        long n = torture(scenarios[i].run);
        (void)printf("%-8s %ld allocations failed in turn\n", scenarios[i].name, n);
        *(n < 0 ? &failed : &passed) += 1;
    }
    if (df_fs_remove_tree(directory, &err) < 0)
        (void)fprintf(stderr, "%s\n", err.message);
    (void)printf("[  PASSED  ] %d tests\n", passed);
    if (failed)
        (void)printf("[  FAILED  ] %d tests\n", failed);
    return failed != 0;
}
