/* Any bytes: whatever they unpack to lies below the directory, links included, and what is refused
 * leaves nothing. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/archive/archive.h"
#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "tests/fuzz/directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char target[300], canary[300], one[300];
static int canary_fd = -1; /* kept open: a canary that was replaced is a dead one */

static void make_place(void)
{
    const char *top = fuzz_directory();
    (void)snprintf(target, sizeof(target), "%s/target", top);
    (void)snprintf(canary, sizeof(canary), "%s/canary", top);
    (void)snprintf(one, sizeof(one), "%s/one", top);
    if (mkdir(target, 0700) < 0 || df_fs_create(canary, "alive", 5, 0600, NULL) < 0)
        abort();
    canary_fd = open(canary, O_RDONLY | O_CLOEXEC);
}

static size_t count_entries(const char *directory)
{
    size_t n = 0;
    DIR *d = opendir(directory);
    if (!d)
        abort();
    for (struct dirent *e; (e = readdir(d));)
        n += !df_streq(e->d_name, ".") && !df_streq(e->d_name, "..");
    (void)closedir(d);
    return n;
}

static void check_canary(void)
{
    struct stat kept, there;
    char text[8] = "";
    if (fstat(canary_fd, &kept) < 0 || lstat(canary, &there) < 0 || kept.st_ino != there.st_ino ||
        there.st_nlink != 1 || pread(canary_fd, text, sizeof(text), 0) != 5 ||
        !df_streq(text, "alive") || count_entries(fuzz_directory()) != 2)
        abort();
}

/* Nothing but plain files, directories and links that resolve below the target. */
static enum df_tree_visit check_entry(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    (void)arg;
    mode_t m = e->st->st_mode;
    if (!S_ISREG(m) && !S_ISDIR(m) && !S_ISLNK(m))
        abort();
    if ((m & (S_ISUID | S_ISGID)) || (S_ISREG(m) && e->st->st_nlink != 1))
        abort();
    if (S_ISLNK(m)) {
        DF_FREE char *path = df_fs_join(target, e->path);
        DF_FREE char *real = path ? realpath(path, NULL) : NULL;
        size_t n = strlen(target);
        if (real && (strncmp(real, target, n) != 0 || (real[n] && real[n] != '/')))
            abort();
    }
    (void)err;
    return DF_TREE_GO_ON;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct df_archive_limits limits = {1 << 20, 100};
    if (canary_fd < 0)
        make_place();
    DF_CLOSE int fd = memfd_create("archive", MFD_CLOEXEC);
    if (fd < 0 || df_fs_write_all(fd, data, size, NULL) < 0)
        abort();
    bool strip = size && data[size - 1] & 1;
    if (df_archive_unpack(fd, target, strip, &limits, NULL) < 0) {
        if (count_entries(target) != 0)
            abort();
    } else if (df_tree_walk(target, check_entry, NULL, NULL) < 0) {
        abort();
    }
    check_canary();
    if (df_tree_empty(target, NULL) < 0)
        abort();
    bool found = df_archive_unpack_one(fd, "fine.tf", one, 1 << 20, NULL) == 0;
    if (found != df_fs_exists(one))
        abort();
    (void)unlink(one);
    return 0;
}
