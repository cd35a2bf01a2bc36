/* Any bytes: a bundle is either refused, or every part comes out with the digest its header names.
 */
#include <sys/mman.h>

#include "common/base/fs.h"
#include "common/bundle/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *out_path(void)
{
    static char path[64] = "/tmp/dayfly-fuzz-bundle-XXXXXX";
    static bool made;
    if (!made) {
        int fd = mkstemp(path);
        if (fd < 0)
            abort();
        close(fd);
        (void)unlink(path);
        made = true;
    }
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_CLOSE int fd = memfd_create("bundle", MFD_CLOEXEC);
    if (fd < 0 || df_fs_write_all(fd, data, size, NULL) < 0)
        abort();
    DF_JSON cJSON *header = NULL;
    bool readable = df_bundle_header(fd, &header, NULL) == 0;
    bool intact = df_bundle_verify(fd, NULL) == 0;
    bool plan = df_bundle_extract(fd, "plan", out_path(), NULL) == 0;
    if ((intact || plan) && !readable)
        abort();
    if (plan != df_fs_exists(out_path()))
        abort(); /* a damaged part was left behind */
    (void)unlink(out_path());
    return 0;
}
