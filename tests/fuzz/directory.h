/* The directory of a fuzzer: made when it is first asked for, removed when the program ends. */
#ifndef DF_FUZZ_DIRECTORY_H
#define DF_FUZZ_DIRECTORY_H

#include "common/base/fs.h"

static char fuzz_directory_path[256];

static inline void fuzz_directory_remove(void)
{
    if (df_fs_remove_tree(fuzz_directory_path, NULL) < 0)
        DF_BUG("%s stays", fuzz_directory_path);
}

/* Below TMPDIR, or /tmp. Borrowed. */
static inline const char *fuzz_directory(void)
{
    if (!*fuzz_directory_path) {
        const char *parent = getenv("TMPDIR");
        (void)snprintf(fuzz_directory_path, sizeof(fuzz_directory_path), "%s/dayfly-fuzz-XXXXXX",
                       parent ? parent : "/tmp");
        if (!mkdtemp(fuzz_directory_path) || atexit(fuzz_directory_remove) != 0)
            DF_BUG("no directory %s", fuzz_directory_path);
    }
    return fuzz_directory_path;
}

#endif
