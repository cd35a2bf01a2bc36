#include "common/archive/ustar.h"

#include <inttypes.h>

/* Where the fields of a header are, and how long. */
enum {
    NAME_AT = 0,
    NAME_LEN = 100,
    MODE_AT = 100,
    SIZE_AT = 124,
    SIZE_LEN = 12,
    TIME_AT = 136,
    SUM_AT = 148,
    SUM_LEN = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_LEN = 155
};

#define LARGEST_OCTAL ((INT64_C(1) << 33) - 1) /* 11 digits */

/* The checksum is that of the header with blanks in its place. */
static unsigned sum_of(const char *block)
{
    unsigned sum = 0;
    for (int i = 0; i < DF_USTAR_BLOCK; i++) {
        bool own = i >= SUM_AT && i < SUM_AT + SUM_LEN;
        sum += own ? (unsigned char)' ' : (unsigned char)block[i];
    }
    return sum;
}

static void put_size(char *block, int64_t size)
{
    char *to = block + SIZE_AT;
    if (size <= LARGEST_OCTAL) {
        (void)snprintf(to, SIZE_LEN, "%011" PRIo64, size);
        return;
    }
    to[0] = (char)0x80;
    for (int i = SIZE_LEN - 1; i > 0; i--, size >>= 8)
        to[i] = (char)(size & 0xff);
}

/* A long name is cut at a slash: its end is the name, its beginning the prefix. */
static int put_name(char *block, const char *name, struct df_err *err)
{
    size_t n = strlen(name);
    const char *cut = n > NAME_LEN ? strchr(name + n - NAME_LEN - 1, '/') : NULL;
    if (n > NAME_LEN && (!cut || cut - name > PREFIX_LEN))
        return df_fail(err, DF_ERR_LIMIT, "%s: the name is too long for an archive", name);
    const char *end = cut ? cut + 1 : name;
    memcpy(block + NAME_AT, end, n - (size_t)(end - name)); /* NAME_LEN of them need no NUL */
    if (cut)
        memcpy(block + PREFIX_AT, name, (size_t)(cut - name));
    return 0;
}

int df_ustar_print(const struct df_ustar *h, int64_t mtime_s, char out[DF_USTAR_BLOCK],
                   struct df_err *err)
{
    static const char numbers[] = "0000600\0"
                                  "0000000\0"
                                  "0000000"; /* mode, owner, group */
    static const char magic[] = "ustar\0"
                                "00";
    char block[DF_USTAR_BLOCK] = {0};
    if (put_name(block, h->name, err) < 0)
        return -1;
    memcpy(block + MODE_AT, numbers, sizeof(numbers));
    put_size(block, h->size);
    (void)snprintf(block + TIME_AT, SIZE_LEN, "%011" PRIo64, mtime_s);
    block[TYPE_AT] = '0';
    memcpy(block + MAGIC_AT, magic, sizeof(magic) - 1);
    (void)snprintf(block + SUM_AT, SUM_LEN - 1, "%06o", sum_of(block));
    block[SUM_AT + SUM_LEN - 1] = ' ';
    memcpy(out, block, sizeof(block));
    return 0;
}

/* ---- parsing -------------------------------------------------------------------------------- */

static bool is_zero(const char *block)
{
    for (int i = 0; i < DF_USTAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* Digits up to a NUL or a blank. -1: something else. */
static int64_t octal_at(const char *field, int len)
{
    int64_t n = 0;
    int i = 0;
    for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
        n = n * 8 + (field[i] - '0');
    return i && (i == len || !field[i] || field[i] == ' ') ? n : -1;
}

static int64_t size_at(const char *field)
{
    if ((unsigned char)field[0] != 0x80)
        return octal_at(field, SIZE_LEN);
    uint64_t n = 0;
    for (int i = 1; i < SIZE_LEN; i++) {
        if (n >> 55)
            return -1;
        n = n << 8 | (unsigned char)field[i];
    }
    return (int64_t)n;
}

/* Would lead out of the directory that the archive is unpacked into. */
static bool leads_out(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += part > name; /* behind the slash */
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return true;
    }
    return false;
}

int df_ustar_parse(const char in[DF_USTAR_BLOCK], struct df_ustar *ret, bool *ret_end,
                   struct df_err *err)
{
    struct df_ustar h = {0};
    if (is_zero(in)) {
        *ret_end = true;
        return 0;
    }
    bool prefix = in[PREFIX_AT] != '\0';
    (void)snprintf(h.name, sizeof(h.name), "%.*s%s%.*s", PREFIX_LEN, in + PREFIX_AT,
                   prefix ? "/" : "", NAME_LEN, in + NAME_AT);
    h.size = size_at(in + SIZE_AT);
    if (memcmp(in + MAGIC_AT, "ustar", 5) != 0 || octal_at(in + SUM_AT, SUM_LEN) != sum_of(in) ||
        in[TYPE_AT] != '0' || h.size < 0 || leads_out(h.name))
        return df_fail(err, DF_ERR_USER, "this is no header of a file in a tar archive");
    *ret = h;
    *ret_end = false;
    return 0;
}
