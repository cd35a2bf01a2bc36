#include "runner/planned.h"

#include <fcntl.h>

#include "common/archive/archive.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

int df_planned_state(const struct df_context *c, const char *plan, struct df_buf *ret,
                     struct df_err *err)
{
    DF_FREE char *file = df_fs_join(c->dirs->secret, "planned.tfstate");
    DF_CLOSE int fd = -1;
    if (df_fs_open_plain(plan, O_RDONLY, 0, &fd, err) < 0 || df_fs_remove_tree(file, err) < 0 ||
        df_archive_unpack_one(fd, "tfstate", file, DF_LIMIT_STATE_COMPARED, err) < 0 ||
        df_fs_read_plain(file, ret, err) < 0)
        return -1;
    return df_fs_remove_tree(file, err);
}
