/*
 * What storing a managed state costs: versions of 100 kB through the state store over a directory,
 * against a bare loop that writes the same bytes to files and syncs each. In turns, each turn's
 * ratio by itself.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/store/tofu_state/state.h"
#include "spawner/store/vault/vault.h"

enum { TURNS = 10, WRITES = 100, BYTES = 100000 };
#define UID "6f1c3a52-0000-4000-8000-000000000001"

static _Noreturn void give_up(const struct df_err *err)
{
    (void)fprintf(stderr, "bench_states: %s\n", err->message);
    exit(1);
}

/* A state as tofu prints it: many resources of a few hundred bytes, no two of them alike. */
static char *make_state(int serial, size_t *ret_n)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_addf(&b,
                      "{\"version\":4,\"terraform_version\":\"1.12.6\",\"serial\":%d,"
                      "\"lineage\":\"bench\",\"outputs\":{},\"resources\":[",
                      serial);
    for (int i = 0; b.len < BYTES - 300; i++)
        (void)df_buf_addf(&b,
                          "%s{\"mode\":\"managed\",\"type\":\"aws_instance\",\"name\":\"web_%d\","
                          "\"provider\":\"provider[\\\"registry.opentofu.org/hashicorp/aws\\\"]\","
                          "\"instances\":[{\"attributes\":{\"id\":\"i-%08lx%08lx\"}}]}",
                          i ? "," : "", i, (unsigned long)random(), (unsigned long)random());
    (void)df_buf_adds(&b, "]}");
    *ret_n = b.len;
    return df_buf_take(&b);
}

static double write_bare(const char *directory, int turn, char *const *states, const size_t *sizes)
{
    struct df_err err = {0};
    int64_t began = df_mono_us();
    for (int i = 0; i < WRITES; i++) {
        DF_FREE char *path = df_strf("%s/bare-%d-%d", directory, turn, i);
        DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (df_fs_write_all(fd, states[i], sizes[i], &err) < 0 || fsync(fd) < 0)
            give_up(&err);
    }
    return (double)(df_mono_us() - began);
}

static double write_states(struct df_states *s, const char *directory, char *const *states,
                           const size_t *sizes)
{
    const struct df_state_writer by = {.run = "bench-1", .actor = "bench"};
    struct df_err err = {0};
    int64_t began = df_mono_us();
    for (int i = 0; i < WRITES; i++) {
        DF_FREE char *path = df_strf("%s/upload", directory);
        if (df_fs_write(path, states[i], sizes[i], 0600, &err) < 0 ||
            df_state_put(s, UID, path, NULL, &by, &err) < 0)
            give_up(&err);
    }
    return (double)(df_mono_us() - began);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *directory, struct df_states *s, const char *uploads)
{
    double ratios[TURNS], ours = 0, bare = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        char *states[WRITES];
        size_t sizes[WRITES];
        for (int i = 0; i < WRITES; i++)
            states[i] = make_state(1 + turn * WRITES + i, &sizes[i]);
        double plain = write_bare(directory, turn, states, sizes);
        double stored = write_states(s, uploads, states, sizes);
        ratios[turn] = plain / stored;
        ours += stored;
        bare += plain;
        for (int i = 0; i < WRITES; i++)
            free(states[i]);
    }
    qsort(ratios, TURNS, sizeof(*ratios), by_value);
    double ratio = (ratios[TURNS / 2 - 1] + ratios[TURNS / 2]) / 2;
    (void)printf("%d states of 100 kB stored, against bare write and fsync\t"
                 "%.2f (%.2f ms each, bare: %.2f)\t>= 0.8 of bare\t%s\n",
                 TURNS * WRITES, ratio, ours / 1000 / (TURNS * WRITES),
                 bare / 1000 / (TURNS * WRITES), ratio >= 0.8 ? "ok" : "NOT");
}

int main(void)
{
    struct df_err err = {0};
    char directory[] = "dayfly-states-XXXXXX"; /* where tests/bench/run says: on a disk */
    DF_FREE char *base = mkdtemp(directory) ? realpath(directory, NULL) : NULL;
    DF_FREE char *data = base ? df_fs_join(base, "data") : NULL;
    DF_FREE char *database = base ? df_fs_join(base, "vault.db") : NULL;
    DF_FREE char *key = base ? df_fs_join(base, "vault.key") : NULL;
    struct df_blob *blobs = NULL;
    struct df_vault *vault = NULL;
    struct df_states *states = NULL;
    if (!data || !database || !key || df_blob_open(data, &blobs, &err) < 0 ||
        df_vault_open(database, key, &vault, &err) < 0 ||
        df_states_open(blobs, vault, &states, &err) < 0)
        give_up(&err);
    measure(base, states, df_blob_tmp_dir(blobs));
    df_states_close(states);
    df_blob_close(blobs);
    df_vault_close(vault);
    return df_fs_remove_tree(base, &err) < 0;
}
