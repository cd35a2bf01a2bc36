/*
 * scratch.h - a fresh directory for each test, gone afterwards: cmocka set-up and tear-down whose
 * *state is the directory's path. Include behind cmocka.h.
 *
 * In TMPDIR; without one in memory, where there is room: thousands of syncs cost nothing there, and
 * a killed process loses no more than on a disk.
 */
#ifndef DF_TEST_SCRATCH_H
#define DF_TEST_SCRATCH_H

#include <sys/statvfs.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

static const char *scratch_parent(void)
{
    struct statvfs st;
    const char *chosen = getenv("TMPDIR");
    if (chosen)
        return chosen;
    if (access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &st) == 0 &&
        st.f_bavail * st.f_frsize > 512 * DF_MIB)
        return "/dev/shm";
    return "/tmp";
}

static int enter_scratch(void **state)
{
    char *dir = df_strf("%s/dayfly-unit-XXXXXX", scratch_parent());
    *state = dir && mkdtemp(dir) ? dir : NULL;
    return *state ? 0 : -1;
}

static int leave_scratch(void **state)
{
    struct df_err err = {0};
    int result = df_fs_remove_tree(*state, &err);
    if (result < 0)
        print_error("%s\n", err.message);
    free(*state);
    return result;
}

#define scratch_test(f) cmocka_unit_test_setup_teardown(f, enter_scratch, leave_scratch)

#endif
