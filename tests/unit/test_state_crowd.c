#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "common/crypto/crypto.h"
#include "tests/unit/killed.h"
#include "tests/unit/state_words.h"

static void put_for_ever(const struct child *c)
{
    struct world w = open_world(c->dir);
    struct df_err err = {0};
    bool released = false;
    DF_FREE char *more = malloc(40001);
    if (df_state_release_dead(w.states, UID, STEP, &released, &err) < 0 || !more)
        _exit(1);
    (void)snprintf(more, 40001, ",\"x\":\"%039990d\"", 0);
    DF_JSON cJSON *list = versions_of(&w);
    for (uint32_t i = (uint32_t)cJSON_GetArraySize(list) + 1;; i++) {
        must_lock(&w, "A", STEP);
        if (put(&w, (int)i, "L", more, "A", &err) < 0)
            _exit(1);
        acknowledge(c, i);
        if (df_state_unlock(w.states, UID, "A", &anybody, NULL, &err) < 0)
            _exit(1);
    }
}

static void a_killed_writer_leaves_the_old_state_or_the_new_one(void **state)
{
    uint32_t seen = 0;
    for (int round = 0; round < 25; round++) {
        uint32_t acknowledged = killed_child(*state, put_for_ever);
        seen = acknowledged > seen ? acknowledged : seen;
        WORLD w = open_world(*state);
        int count = count_versions(&w);
        assert_true(count >= (int)seen && count <= (int)seen + 1);
        if (!count)
            continue;
        assert_current(&w, count);
        DF_JSON cJSON *list = versions_of(&w);
        DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
        char sha256[DF_SHA256_HEX];
        read_version(&w, 0, &got);
        assert_int_equal(df_sha256_hex(got.data, got.len, sha256, NULL), 0);
        assert_string_equal(sha256, df_json_str(cJSON_GetArrayItem(list, 0), "sha256"));
        seen = (uint32_t)count;
    }
}

/* xorshift: what it makes can be repeated from its seed. */
static unsigned dice(unsigned *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* A state that fills its page and does not compress: sealed, it needs one page more. The caller
 * frees. */
static char *random_text(int serial)
{
    char more[4000] = ",\"x\":\"";
    unsigned seed = 1;
    size_t at = strlen(more);
    while (at < sizeof(more) - 2) {
        unsigned char c = (unsigned char)dice(&seed);
        if (c >= ' ' && c != '"' && c != '\\')
            more[at++] = (char)c;
    }
    more[at] = '"';
    return state_text(serial, "L", more);
}

/* In a child with a mount namespace of its own: its exit code says what happened. */
static int work_on_a_small_disk(const char *dir)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", dir, "tmpfs", 0, "size=1m") < 0)
        return 77;
    struct world w = open_world(dir);
    struct df_err err = {0};
    must_put(&w, 1);
    DF_FREE char *text = random_text(2);
    DF_FREE char *path = upload(&w, text, strlen(text));
    DF_FREE char *filler = df_fs_join(dir, "filler");
    DF_CLOSE int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char piece[4096] = {0};
    while (write(fd, piece, sizeof(piece)) > 0)
        continue;
    const struct df_state_writer by = {0};
    if (df_state_put(w.states, UID, path, NULL, &by, &err) == 0 || err.cls != DF_ERR_LIMIT)
        return 1;
    assert_current(&w, 1);
    if (lock(&w, "A", NULL, &err) == 0 || err.cls != DF_ERR_LIMIT)
        return 2;
    assert_lock_id(&w, NULL);
    if (unlink(filler) < 0 || ftruncate(fd, 0) < 0)
        return 3;
    must_put(&w, 2);
    assert_current(&w, 2);
    return 0;
}

static void a_full_disk_is_a_limit_and_the_old_state_stays(void **state)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(work_on_a_small_disk(*state));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* only root may mount */
    assert_int_equal(status, 0);
}

static void a_lock_of_a_step_is_written_under_by_that_step_alone(void **state)
{
    WORLD w = open_world(*state);
    struct df_err err = {0};
    char step[64];
    DF_JSON cJSON *info = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(info, "ID", "A", NULL), 0);
    assert_int_equal(df_state_lock(w.states, UID, info, "step-1", NULL, &err), 0);
    assert_failed(put_as_step(&w, 1, "A", NULL, &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(put_as_step(&w, 1, "A", "step-2", &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_failed(put_as_step(&w, 1, "B", "step-1", &err), &err, DF_ERR_CONFLICT, "StateLocked");
    assert_int_equal(put_as_step(&w, 1, "A", "step-1", &err), 0);
    assert_int_equal(df_state_lock_step(w.states, UID, "A", step, &err), 0);
    assert_string_equal(step, "step-1");
    assert_int_equal(df_state_lock_step(w.states, UID, "B", step, &err), 0);
    assert_string_equal(step, "");
    assert_int_equal(df_state_unlock(w.states, UID, "A", &anybody, NULL, &err), 0);
    assert_int_equal(df_state_lock_step(w.states, UID, "A", step, &err), 0);
    assert_string_equal(step, "");
}

/* ---- many at once --------------------------------------------------------------------------- */

struct crowd {
    struct world *w;
    int inside; /* of the lock: never more than one */
    int stored;
    unsigned seed;
};

static int current_serial(struct world *w)
{
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    DF_JSON cJSON *state = NULL;
    if (get_current(w, UID, &got, NULL) < 0 ||
        df_json_parse(df_buf_str(&got), got.len, &state, NULL) < 0)
        return 0;
    return (int)df_json_int(state, "serial", 0);
}

static bool write_under_lock(struct crowd *c, const char *id, unsigned roll)
{
    DF_JSON cJSON *info = cJSON_CreateObject();
    if (df_json_add_str(info, "ID", id, NULL) < 0)
        return false;
    if (df_state_lock(c->w->states, UID, info, id, NULL, NULL) < 0)
        return true; /* somebody else has it */
    bool good = __atomic_add_fetch(&c->inside, 1, __ATOMIC_SEQ_CST) == 1;
    int serial = current_serial(c->w) + 1;
    if (roll % 4) {
        good = good && put_as_step(c->w, serial, id, id, NULL) == 0;
        (void)__atomic_add_fetch(&c->stored, 1, __ATOMIC_SEQ_CST);
        /* Nobody came in between. */
        good = good && current_serial(c->w) == serial;
    }
    (void)__atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
    bool released = false;
    if (roll % 3 == 0)
        return good && df_state_release_dead(c->w->states, UID, id, &released, NULL) == 0 &&
               released;
    return good && df_state_unlock(c->w->states, UID, id, &anybody, NULL, NULL) == 0;
}

static void *live(void *arg)
{
    struct crowd *c = arg;
    unsigned seed = __atomic_add_fetch(&c->seed, 0x9e3779b9, __ATOMIC_SEQ_CST) | 1;
    char id[16];
    (void)snprintf(id, sizeof(id), "id-%x", seed);
    for (int i = 0; i < 4; i++) {
        unsigned roll = dice(&seed);
        if (roll % 5 == 0) {
            /* With a lock that is not held or not ours: too late or refused, never in between. */
            bool ignored = false;
            if (df_state_release_dead(c->w->states, UID, "nobody", &ignored, NULL) < 0 || ignored)
                return arg;
        }
        if (!write_under_lock(c, id, roll))
            return arg;
    }
    return NULL;
}

static void random_histories_exclude_each_other_and_never_go_back(void **state)
{
    for (unsigned history = 1; history <= 100; history++) {
        WORLD w = open_world(*state);
        struct crowd c = {.w = &w, .seed = history};
        pthread_t threads[4];
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, live, &c), 0);
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
            void *failed = NULL;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            if (failed)
                fail_msg("history %u", history);
        }
        DF_JSON cJSON *list = versions_of(&w);
        int n = cJSON_GetArraySize(list);
        assert_int_equal(n, c.stored);
        for (int i = 0; i < n; i++)
            assert_int_equal(df_json_int(cJSON_GetArrayItem(list, i), "serial", 0), n - i);
        assert_lock_id(&w, NULL);
        assert_int_equal(df_state_purge(w.states, UID, NULL), 0);
    }
}

static void *put_blindly(void *arg)
{
    struct crowd *c = arg;
    for (int serial = 1; serial <= 12; serial++) {
        struct df_err err = {0};
        /* No two states are the same, so that each success is a version. */
        unsigned unique = __atomic_add_fetch(&c->seed, 1, __ATOMIC_SEQ_CST);
        DF_FREE char *more = df_strf(",\"x\":%u", unique);
        if (put(c->w, serial, "L", more, NULL, &err) == 0)
            (void)__atomic_add_fetch(&c->stored, 1, __ATOMIC_SEQ_CST);
        else if (!df_streq(err.reason, "StaleSerial"))
            return arg;
    }
    return NULL;
}

static void writers_without_a_lock_never_lower_the_serial(void **state)
{
    WORLD w = open_world(*state);
    struct crowd c = {.w = &w};
    pthread_t threads[6];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_blindly, &c), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_current(&w, 12);
    DF_JSON cJSON *list = versions_of(&w);
    assert_int_equal(cJSON_GetArraySize(list), c.stored);
    for (int i = 1; i < cJSON_GetArraySize(list); i++)
        assert_true(df_json_int(cJSON_GetArrayItem(list, i - 1), "serial", 0) >
                    df_json_int(cJSON_GetArrayItem(list, i), "serial", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_killed_writer_leaves_the_old_state_or_the_new_one),
        scratch_test(a_full_disk_is_a_limit_and_the_old_state_stays),
        scratch_test(a_lock_of_a_step_is_written_under_by_that_step_alone),
        scratch_test(random_histories_exclude_each_other_and_never_go_back),
        scratch_test(writers_without_a_lock_never_lower_the_serial),
    };
    return cmocka_run_group_tests_name("state_crowd", tests, NULL, NULL);
}
