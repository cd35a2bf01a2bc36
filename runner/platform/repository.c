#include "runner/platform/repository.h"

#include <errno.h>

#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/platform/credentials.h"
#include "runner/source/source.h"

/* Where a person puts what the source needs. */
static const struct df_source_advice advice = {
    .ssh_key = "mount the key as git/ssh-privatekey in the folder of secrets, and the server's "
               "keys as git/known_hosts",
};

static int make_directory(char **ret, struct df_err *err)
{
    const char *tmp = getenv("TMPDIR");
    DF_FREE char *path = df_strf("%s/dayfly-platform-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (df_check_alloc(path, err) < 0)
        return -1;
    if (!mkdtemp(path))
        return df_fail_errno(err, errno, "make a directory like %s", path);
    *ret = DF_TAKE(path);
    return 0;
}

static int fetch(struct df_platform *p, const char *top, struct df_err *err)
{
    DF_FREE char *checkout = df_fs_join(top, "files"), *secret = df_fs_join(top, "private");
    DF_SECRET_JSON cJSON *source = NULL;
    if (df_fs_mkdirs(checkout, 0700, err) < 0 || df_fs_mkdirs(secret, 0700, err) < 0 ||
        df_credentials_source(p->in, &source, err) < 0)
        return -1;
    const struct df_source_request request = {.source = source,
                                              .checkout = checkout,
                                              .private_dir = secret,
                                              .log_fd = -1,
                                              .stop = df_stop_flag(p->stop),
                                              .is_strict = true,
                                              .advice = &advice};
    struct df_source_result result = {0};
    if (df_source_fetch(&request, &result, err) < 0)
        return -1;
    p->commit = strdup(result.commit);
    p->checkout = strdup(result.module_dir);
    df_source_result_free(&result);
    return p->commit && p->checkout ? 0 : df_fail_oom(err);
}

int df_repository_fetch(struct df_platform *p, struct df_err *err)
{
    df_repository_remove(p); /* of an attempt before */
    if (make_directory(&p->directory, err) < 0)
        return -1;
    if (fetch(p, p->directory, err) == 0)
        return 0;
    err->reason[0] = '\0';
    (void)df_err_wrap(err, "gitRepository %s", p->in->git_repository);
    return df_err_reason(err, "RepositoryUnavailable");
}

void df_repository_remove(struct df_platform *p)
{
    struct df_err err = {0};
    if (p->directory && df_fs_remove_tree(p->directory, &err) < 0)
        df_warn("%s stays: %s", p->directory, err.message);
    free(p->directory);
    p->directory = NULL;
}
