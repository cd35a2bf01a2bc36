#include "common/terrakube/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/buf.h"

enum df_terrakube_area df_terrakube_item_area(const struct df_terrakube_item *i)
{
    return i->what == DF_TERRAKUBE_OBJECT_OUTPUT   ? DF_TERRAKUBE_TFOUTPUT
           : i->what == DF_TERRAKUBE_OBJECT_BINARY ? DF_TERRAKUBE_TFBINARY
                                                   : DF_TERRAKUBE_TFSTATE;
}

char *df_terrakube_item_key(const struct df_terrakube_item *i)
{
    switch (i->what) {
    case DF_TERRAKUBE_OBJECT_PLAN:
        return df_strf("%s/%s/%s/%s/terraformLibrary.tfPlan", i->organization, i->workspace, i->job,
                       i->step);
    case DF_TERRAKUBE_OBJECT_STATE_JSON:
        return df_strf("%s/%s/state/%s.json", i->organization, i->workspace, i->name);
    case DF_TERRAKUBE_OBJECT_STATE_RAW:
        return df_strf("%s/%s/state/%s.raw.json", i->organization, i->workspace, i->name);
    case DF_TERRAKUBE_OBJECT_OUTPUT:
        return df_strf("%s/%s/%s.tfoutput", i->organization, i->job, i->step);
    case DF_TERRAKUBE_OBJECT_BINARY:
        return strdup(i->name);
    }
    DF_BUG("object %d", (int)i->what);
}

static int map(int fd, const char *path, struct df_terrakube_bytes *ret, struct df_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return df_fail(err, DF_ERR_USER, "%s is not a regular file", path);
    if (st.st_size > DF_LIMIT_TERRAKUBE_OBJECT)
        return df_fail(err, DF_ERR_LIMIT, "%s has %lld bytes; %lld are allowed", path,
                       (long long)st.st_size, (long long)DF_LIMIT_TERRAKUBE_OBJECT);
    *ret = (struct df_terrakube_bytes){.at = "", .n = (size_t)st.st_size};
    if (!ret->n)
        return 0;
    void *at = mmap(NULL, ret->n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return df_fail_errno(err, errno, "read %s", path);
    ret->at = ret->mapping = at;
    return 0;
}

int df_terrakube_bytes_open(const char *path, struct df_terrakube_bytes *ret, struct df_err *err)
{
    /* Of a pipe in place of the file, open() would wait for the other end. */
    DF_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? df_fail_errno(err, errno, "%s", path) : map(fd, path, ret, err);
}

void df_terrakube_bytes_close(struct df_terrakube_bytes *b)
{
    if (b->mapping)
        (void)munmap(b->mapping, b->n);
    *b = (struct df_terrakube_bytes){0};
}
