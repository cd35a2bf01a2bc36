/*
 * What storing a managed state costs: versions of 100 kB through the state store over a directory,
 * against bare loops that write the same bytes to new files. One syncs each file only. The other is
 * the least that a version needs: the file appears whole or not at all, and its name is durable. In
 * turns, each turn's ratio by itself.
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

struct place {
    const char *directory, *uploads;
    struct df_states *states;
};

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

static void write_file(const char *path, const char *bytes, size_t n, bool durable)
{
    struct df_err err = {0};
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (df_fs_write_all(fd, bytes, n, &err) < 0 || (durable && fsync(fd) < 0))
        give_up(&err);
}

static void write_bare(struct place *p, int nth, const char *bytes, size_t n)
{
    DF_FREE char *path = df_strf("%s/bare-%d", p->directory, nth);
    write_file(path, bytes, n, true);
}

static void write_whole(struct place *p, int nth, const char *bytes, size_t n)
{
    struct df_err err = {0};
    DF_FREE char *path = df_strf("%s/whole-%d", p->directory, nth);
    DF_FREE char *temporary = df_strf("%s/temporary", p->directory);
    write_file(temporary, bytes, n, true);
    if (rename(temporary, path) < 0 || df_fs_sync_dir(p->directory, &err) < 0)
        give_up(&err);
}

/* The upload is a new file that is not synced, as the server makes it of a request's body. */
static void write_state(struct place *p, int nth, const char *bytes, size_t n)
{
    const struct df_state_writer by = {.run = "bench-1", .actor = "bench"};
    struct df_err err = {0};
    DF_FREE char *path = df_strf("%s/upload-%d", p->uploads, nth);
    write_file(path, bytes, n, false);
    if (df_state_put(p->states, UID, path, NULL, &by, &err) < 0)
        give_up(&err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_of(void (*write_one)(struct place *p, int nth, const char *bytes, size_t n),
                      struct place *p, int turn, char *const *states, const size_t *sizes)
{
    int64_t began = df_mono_us();
    for (int i = 0; i < WRITES; i++)
        write_one(p, turn * WRITES + i, states[i], sizes[i]);
    return (double)(df_mono_us() - began) / 1000 / WRITES;
}

static double median_of(double *values)
{
    qsort(values, TURNS, sizeof(*values), by_value);
    return (values[TURNS / 2 - 1] + values[TURNS / 2]) / 2;
}

static void print_row(const char *peer, double *ratios, double least, double ours, double theirs)
{
    double ratio = median_of(ratios);
    (void)printf("%d states of 100 kB stored, against %s\t%.2f (%.2f ms each, bare: %.2f)\t"
                 ">= %.1f of bare\t%s\n",
                 TURNS * WRITES, peer, ratio, ours / TURNS, theirs / TURNS, least,
                 ratio >= least ? "ok" : "NOT");
}

static void measure(struct place *p)
{
    double of_bare[TURNS], of_whole[TURNS], all_bare = 0, all_whole = 0, all_stored = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        char *states[WRITES];
        size_t sizes[WRITES];
        for (int i = 0; i < WRITES; i++)
            states[i] = make_state(1 + turn * WRITES + i, &sizes[i]);
        double bare = time_of(write_bare, p, turn, states, sizes);
        double whole = time_of(write_whole, p, turn, states, sizes);
        double stored = time_of(write_state, p, turn, states, sizes);
        of_bare[turn] = bare / stored;
        of_whole[turn] = whole / stored;
        all_bare += bare;
        all_whole += whole;
        all_stored += stored;
        for (int i = 0; i < WRITES; i++)
            free(states[i]);
    }
    print_row("bare write and fsync", of_bare, 0.8, all_stored, all_bare);
    print_row("a bare file that appears whole", of_whole, 0.8, all_stored, all_whole);
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
    measure(&(struct place){base, df_blob_tmp_dir(blobs), states});
    df_states_close(states);
    df_blob_close(blobs);
    df_vault_close(vault);
    return df_fs_remove_tree(base, &err) < 0;
}
