/*
 * Which cluster an action works on. KUBECONFIG_DATA is in memory only: an unnamed file of the
 * kernel, and buffers that are wiped.
 */
#include <errno.h>
#include <sys/mman.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "runner/platform/environment.h"

#define DATA "KUBECONFIG_DATA"
#define PATH "KUBECONFIG_PATH"

/* Decodes base64 that may be folded into lines, as base64(1) does. */
static int decode(const char *data, struct df_buf *ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf digits = DF_BUF_INIT(2 * DF_LIMIT_KUBECONFIG);
    for (size_t n; *data; data += n + (data[n] != '\0')) {
        n = strcspn(data, " \r\n\t");
        if (df_buf_add(&digits, data, n) < 0)
            return df_buf_check(&digits, err);
    }
    return df_base64_decode(df_buf_str(&digits), digits.len, false, ret, err);
}

static int keep_in_memory(const struct df_buf *text, int *ret, struct df_err *err)
{
    DF_CLOSE int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    if (fd < 0)
        return df_fail_errno(err, errno, "memfd_create");
    if (df_fs_write_all(fd, df_buf_str(text), text->len, err) < 0)
        return -1;
    *ret = DF_TAKE_FD(fd);
    return 0;
}

/* Puts `DATA` where the name of the file in memory would be, which says nothing to a person. */
static int name_source(struct df_kube_config *config, struct df_err *err)
{
    const char *context = strstr(config->source, " (context ");
    DF_FREE char *source = df_strf(DATA "%s", context ? context : "");
    return source ? df_str_set(&config->source, source, err) : df_fail_oom(err);
}

static void load_data(const char *data, struct df_kube_config *ret, struct df_faults *faults)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_KUBECONFIG);
    DF_CLOSE int fd = -1;
    struct df_err why = {0};
    if (decode(data, &text, &why) < 0) {
        df_faults_add(faults, DATA, "must be the base64 of a kubeconfig: %s", why.message);
        return;
    }
    char path[64], prefix[96];
    if (keep_in_memory(&text, &fd, &why) < 0) {
        df_faults_add(faults, DATA, "%s", why.message);
        return;
    }
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (void)snprintf(prefix, sizeof(prefix), "kubeconfig %s: ", path);
    const struct df_kube_config_options o = {.kubeconfig = path};
    if (df_kube_config_load(&o, ret, &why) < 0 || name_source(ret, &why) < 0) {
        size_t skipped = df_starts_with(why.message, prefix) ? strlen(prefix) : 0;
        df_faults_add(faults, DATA, "%s", why.message + skipped);
    }
}

static void load_path(const char *path, struct df_kube_config *ret, struct df_faults *faults)
{
    struct df_err why = {0};
    const struct df_kube_config_options o = {.kubeconfig = path};
    if (df_kube_config_load(&o, ret, &why) < 0)
        df_faults_add(faults, PATH, "%s", why.message);
}

/* KUBECONFIG and ~/.kube/config are not looked at: nobody named them for this action. Who has set
 * the first may think that they are. */
static const char *unused_kubeconfig(void)
{
    return df_str_empty(getenv("KUBECONFIG"))
               ? ""
               : "; KUBECONFIG is set, but not looked at: name the file in " PATH;
}

static void load_pod(const char *directory, struct df_kube_config *ret, struct df_faults *faults)
{
    struct df_err why = {0};
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    DF_STRS struct df_strs env = {0};
    if (df_str_empty(host)) {
        df_faults_add(faults, PATH,
                      "is required, as ~/.kube/config, or " DATA
                      ": this is no pod, whose service account would do%s",
                      unused_kubeconfig());
        return;
    }
    (void)df_strs_set_env(&env, "KUBERNETES_SERVICE_HOST", host);
    if (port)
        (void)df_strs_set_env(&env, "KUBERNETES_SERVICE_PORT", port);
    const struct df_kube_config_options o = {.env = (const char *const *)env.items,
                                             .service_account = directory};
    if (df_strs_check(&env, &why) < 0 || df_kube_config_load(&o, ret, &why) < 0)
        df_faults_add(faults, PATH, "is required, or " DATA ": %s%s", why.message,
                      unused_kubeconfig());
    else if (*unused_kubeconfig())
        df_warn("the pod's service account counts%s", unused_kubeconfig());
}

void df_environment_read_cluster(const char *service_account, struct df_kube_config *ret,
                                 struct df_faults *faults)
{
    const char *path = getenv(PATH);
    char *data = getenv(DATA);
    if (!df_str_empty(path)) {
        if (!df_str_empty(data))
            df_warn(PATH " and " DATA " are set: " PATH " counts");
        load_path(path, ret, faults);
    } else if (!df_str_empty(data)) {
        load_data(data, ret, faults);
    } else {
        load_pod(service_account, ret, faults);
    }
    if (data) {
        explicit_bzero(data, strlen(data));
        (void)unsetenv(DATA);
    }
}
