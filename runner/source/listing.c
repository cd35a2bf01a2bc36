/*
 * Compares two listings as two sorted lists: the order of a walk is that of the paths with '/'
 * before all other bytes. Read df_listing_differences() at the end first.
 */
#include "runner/source/listing.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

enum { HASH_DIGITS = 16, HEAD = HASH_DIGITS + 1, NAMED_MAX = 5, NAME_MAX_BYTES = 64 };

void df_listing_free(struct df_listing *l)
{
    df_strs_free(&l->entries);
    *l = (struct df_listing){0};
}

static void drop(struct df_listing *l)
{
    df_listing_free(l);
    l->is_dropped = true;
}

static void add(struct df_listing *l, char *entry)
{
    l->bytes += entry ? strlen(entry) + 1 : 0;
    if (df_strs_take(&l->entries, entry) < 0 || l->bytes > DF_LIMIT_SOURCE_LISTING)
        drop(l);
}

void df_listing_add(struct df_listing *l, uint64_t hash, const char *path)
{
    if (!l->is_dropped)
        add(l, df_strf("%016llx %s", (unsigned long long)hash, path));
}

int df_listing_write(const struct df_listing *l, int fd, struct df_err *err)
{
    for (size_t i = 0; i < l->entries.len; i++) {
        const char *entry = l->entries.items[i];
        if (df_fs_write_all(fd, entry, strlen(entry) + 1, err) < 0)
            return -1;
    }
    return 0;
}

void df_listing_read(struct df_listing *l, const char *bytes, size_t n)
{
    while (n && !l->is_dropped) {
        size_t length = strnlen(bytes, n);
        if (length <= HEAD || length == n || bytes[HASH_DIGITS] != ' ')
            return;
        add(l, strndup(bytes, length));
        bytes += length + 1;
        n -= length + 1;
    }
}

/* ---- differences ---- */

struct words {
    char *out;
    size_t count; /* of differences */
};

static unsigned int rank(char c)
{
    return c == '/' ? 1 : c ? (unsigned char)c + 1U : 0;
}

static int compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (int)rank(*a) - (int)rank(*b);
}

/* The names of a source are foreign: no control character, and nothing but UTF-8. */
static void clean_name(const char *path, char out[NAME_MAX_BYTES + 1])
{
    size_t n = strlen(path);
    bool is_whole = n <= NAME_MAX_BYTES && df_is_utf8(path, n);
    (void)snprintf(out, NAME_MAX_BYTES + 1, "%s", path);
    for (char *c = out; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_whole))
            *c = '?';
    }
}

static void say(struct words *w, const char *entry, const char *how)
{
    char name[NAME_MAX_BYTES + 1];
    size_t used = strlen(w->out);
    if (w->count++ >= NAMED_MAX)
        return;
    clean_name(entry + HEAD, name);
    (void)snprintf(w->out + used, DF_LISTING_WORDS - used, "%s%s (%s)", used ? ", " : "", name,
                   how);
}

static void compare_all(struct words *w, const struct df_strs *before, const struct df_strs *now)
{
    size_t i = 0, k = 0;
    while (i < before->len || k < now->len) {
        int order = i == before->len ? 1
                    : k == now->len  ? -1
                                     : compare(before->items[i] + HEAD, now->items[k] + HEAD);
        if (order < 0)
            say(w, before->items[i], "removed");
        else if (order > 0)
            say(w, now->items[k], "added");
        else if (strncmp(before->items[i], now->items[k], HASH_DIGITS) != 0)
            say(w, now->items[k], "changed");
        i += order <= 0;
        k += order >= 0;
    }
}

const char *df_listing_differences(const struct df_listing *before, const struct df_listing *now,
                                   char out[DF_LISTING_WORDS])
{
    struct words w = {.out = out};
    out[0] = '\0';
    if (before->entries.len && now->entries.len)
        compare_all(&w, &before->entries, &now->entries);
    size_t used = strlen(out), more = w.count > NAMED_MAX ? w.count - NAMED_MAX : 0;
    if (more)
        (void)snprintf(out + used, DF_LISTING_WORDS - used, " and %zu other%s", more,
                       more > 1 ? "s" : "");
    return out;
}
