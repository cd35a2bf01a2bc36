/*
 * providers.c - the mirror of providers that this service is for its pods: the provider network
 * mirror protocol (opentofu internal/getproviders/http_mirror_source.go) over the files of
 * providers.mirror.directory, which `dayfly mirror` makes. It only reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/providers/lockfile.h"
#include "spawner/api/handlers.h"
#include "spawner/steps/step_auth.h"

int df_gate_providers(struct df_request *req, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    if (df_store_get_by_uid(req->s->store, DF_KIND_TASK_ACTION, req->params[0], &task, err) < 0)
        return -1;
    if (df_step_check_token(task, "providers", req->credentials.secret, err) == 0)
        return 0;
    return err->cls == DF_ERR_DENIED ? df_err_reason(err, "Unauthorized") : -1;
}

/* "index.json", "1.0.0.json" or the name of an archive. */
static bool is_file_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+");
    return *name != '.' && !name[n] && (df_ends_with(name, ".json") || df_ends_with(name, ".zip"));
}

static int open_file(const char *path, struct df_response *res, struct df_err *err)
{
    struct stat st;
    /* O_NONBLOCK: nobody can make this thread wait with a fifo. */
    DF_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "providers.mirror.directory: open %s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_NOT_FOUND, "providers.mirror.directory: %s is no file", path);
    res->content_type = df_ends_with(path, ".zip") ? "application/zip" : "application/json";
    res->fd = DF_TAKE_FD(fd);
    res->fd_size = st.st_size;
    return 0;
}

int df_get_provider_file(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const char *const *p = req->params;
    const char *directory = req->s->config->mirror_directory;
    if (!directory)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "this service mirrors no providers: providers.mirror.directory is not set");
    DF_FREE char *source = df_strf("%s/%s/%s", p[2], p[3], p[4]);
    DF_FREE char *path = source ? df_strf("%s/%s/%s", directory, source, p[5]) : NULL;
    if (!path)
        return df_fail_oom(err);
    if (!df_provider_is_source(source) || !is_file_name(p[5]))
        return df_fail(err, DF_ERR_NOT_FOUND, "%s/%s is no file of a mirror", source, p[5]);
    struct df_err why = {0};
    if (open_file(path, res, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_NOT_FOUND)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "the mirror of this service has no %s/%s: add it with `dayfly mirror`",
                       source, p[5]);
    return df_err_pass(err, &why);
}
