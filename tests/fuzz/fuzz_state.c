/*
 * The first byte chooses: a state document, scanned and compared with the strict JSON reader and
 * with its own rewritten copy; or the info of a lock, taken and given back.
 */
#include <sys/mman.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/store/tofu_state/scan.h"
#include "spawner/store/tofu_state/state.h"
#include "tests/fuzz/directory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
    if (!holds)
        DF_BUG("%s", what);
}

static int file_with(const void *bytes, size_t n)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && df_fs_write_all(fd, bytes, n, NULL) == 0, "memfd");
    return fd;
}

/* What the strict reader accepts as a state, the scanner must read the same way; what the scanner
 * refuses, the reader must refuse or see as no state. (The other way round the scanner is laxer:
 * UTF-8, deep nesting, numbers and doubled names inside are none of its business.) */
static void compare_with_reader(const char *text, size_t n, const struct df_state_head *head)
{
    DF_JSON cJSON *state = NULL;
    if (df_json_parse(text, n, &state, NULL) < 0)
        return;
    const cJSON *serial = cJSON_GetObjectItemCaseSensitive(state, "serial");
    const char *lineage = df_json_str(state, "lineage");
    if (head) {
        must(cJSON_IsNumber(serial) && (int64_t)serial->valuedouble == head->serial, "serial");
        must(df_streq(lineage, head->lineage), "lineage");
        return;
    }
    double version = df_json_num(state, "version", -1);
    bool whole = cJSON_IsNumber(serial) && serial->valuedouble >= 0 && version >= 0;
    /* Refused for the way in which something is written: 1.0, 1e3, escapes, too long. */
    bool plain = !memchr(text, '\\', n) && !memchr(text, '.', n) && !memchr(text, 'e', n) &&
                 !memchr(text, 'E', n);
    must(!whole || !lineage || strlen(lineage) > 128 || !plain || serial->valuedouble > 1e15 ||
             version > 1e15,
         "a state was refused");
}

static void check_outputs(const char *text, const struct df_state_head *head)
{
    DF_JSON cJSON *outputs = NULL;
    struct df_err err = {0};
    if (head->outputs_length &&
        df_json_parse(text + head->outputs_at, (size_t)head->outputs_length, &outputs, &err) == 0)
        must(outputs, "outputs");
}

static void check_rewrite(int fd, const char *text, size_t n, const struct df_state_head *head)
{
    DF_CLOSE int out = memfd_create("fuzz", MFD_CLOEXEC);
    DF_BUF struct df_buf copy = DF_BUF_INIT(DF_GIB);
    struct df_state_head again = {0};
    must(df_state_rewrite(fd, head, 7777777, out, NULL) == 0, "rewrite");
    must(df_state_scan(out, &again, NULL) == 0, "the copy is not a state");
    must(again.serial == 7777777 && df_streq(again.lineage, head->lineage), "the copy differs");
    must(again.serial_at == head->serial_at, "the serial moved");
    must(lseek(out, 0, SEEK_SET) == 0 && df_fs_read_fd(out, &copy, NULL) == 0, "read back");
    size_t behind = (size_t)(head->serial_at + head->serial_length);
    must(copy.len == n - (size_t)head->serial_length + 7, "length");
    must(memcmp(copy.data, text, (size_t)head->serial_at) == 0, "the beginning changed");
    must(memcmp(copy.data + head->serial_at + 7, text + behind, n - behind) == 0,
         "the end changed");
}

static void fuzz_state(const char *text, size_t n)
{
    struct df_state_head head = {0};
    DF_CLOSE int fd = file_with(text, n);
    bool good = df_state_scan(fd, &head, NULL) == 0;
    compare_with_reader(text, n, good ? &head : NULL);
    if (good) {
        check_outputs(text, &head);
        check_rewrite(fd, text, n, &head);
    }
}

static struct df_states *the_states(void)
{
    static struct df_states *states;
    if (states)
        return states;
    struct df_blob *blobs = NULL; /* a lock is not sealed: no vault */
    must(df_blob_open(fuzz_directory(), &blobs, NULL) == 0 &&
             df_states_open(blobs, NULL, &states, NULL) == 0,
         "open");
    return states;
}

static void fuzz_lock(const char *text, size_t n)
{
    struct df_states *states = the_states();
    DF_JSON cJSON *info = NULL, *held = NULL, *holder = NULL;
    const struct df_state_unlocker person = {0};
    if (df_json_parse(text, n, &info, NULL) < 0 ||
        df_state_lock(states, "fuzz", info, NULL, NULL, NULL) < 0)
        return;
    must(df_state_lock_info(states, "fuzz", &held, NULL) == 0 && df_json_equal(held, info), "info");
    must(df_state_unlock(states, "fuzz", "another", &person, &holder, NULL) < 0 ||
             df_streq(df_json_str(info, "ID"), "another"),
         "unlocked by another");
    must(df_state_unlock(states, "fuzz", df_json_str(info, "ID"), &person, NULL, NULL) == 0,
         "unlock");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'L')
        fuzz_lock((const char *)data + 1, size - 1);
    else if (size)
        fuzz_state((const char *)data + 1, size - 1);
    return 0;
}
