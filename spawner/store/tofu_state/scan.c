/*
 * Scans a state file without building a tree. A small JSON reader finds lineage, serial and a few
 * other members in constant memory.
 */
#include "spawner/store/tofu_state/scan.h"

#include <errno.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

#define PIECE ((size_t)64 * 1024)
#define LARGEST_SERIAL ((int64_t)1 << 53) /* larger integers are not exact in every JSON reader */

struct scanner {
    int fd;
    unsigned char *bytes; /* a piece of the file */
    size_t len, at;       /* filled and read so far */
    int64_t base;         /* offset of the piece in the file */
    int read_errno;       /* of a failed read, or 0 */
    size_t depth;         /* open objects and arrays */
    unsigned char is_object[DF_LIMIT_STATE_DEPTH / 8];
};

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Reads the next piece. False at the end of the file and on a read error. */
static __attribute__((noinline)) bool read_piece(struct scanner *s)
{
    s->base += (int64_t)s->len;
    s->at = s->len = 0;
    ssize_t n;
    do {
        n = pread(s->fd, s->bytes, PIECE, s->base);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        s->read_errno = errno;
    s->len = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Returns the current byte, or -1 at the end. */
static inline int peek_byte(struct scanner *s)
{
    return s->at < s->len || read_piece(s) ? s->bytes[s->at] : -1;
}

/* Returns the current byte and advances; -1 at the end. */
static inline int take_byte(struct scanner *s)
{
    int c = peek_byte(s);
    s->at += c >= 0;
    return c;
}

static int64_t offset_of(const struct scanner *s)
{
    return s->base + (int64_t)s->at;
}

static void skip_space(struct scanner *s)
{
    for (int c = peek_byte(s); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek_byte(s))
        s->at++;
}

static int fail_at(const struct scanner *s, const char *why, struct df_err *err)
{
    if (s->read_errno)
        return df_fail_errno(err, s->read_errno, "read state");
    return df_fail_reason(err, DF_ERR_USER, "StateRefused", "not a state: %s at byte %lld", why,
                          (long long)offset_of(s));
}

static int expect_byte(struct scanner *s, char wanted, struct df_err *err)
{
    if (take_byte(s) == wanted)
        return 0;
    char why[] = "'?' expected";
    why[1] = wanted;
    return fail_at(s, why, err);
}

/* ---- scalars -------------------------------------------------------------------------------- */

/* A short copy of a string or number. used.len is the full length, even if only a part fits. */
struct copy {
    char text[129];
    size_t len;
    bool escaped; /* contains a backslash: text is the source, not the value */
};

static void copy_byte(struct copy *copy, int c)
{
    if (!copy)
        return;
    if (copy->len < sizeof(copy->text) - 1)
        copy->text[copy->len] = (char)c;
    copy->len++;
    copy->escaped = copy->escaped || c == '\\';
}

static bool is_hex(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int skip_escape(struct scanner *s, struct df_err *err)
{
    int c = take_byte(s);
    bool good = c > 0 && strchr("\"\\/bfnrtu", c);
    for (int i = 0; good && c == 'u' && i < 4; i++)
        good = is_hex(take_byte(s));
    return good ? 0 : fail_at(s, "bad escape", err);
}

/* Not 0 if one of the eight bytes ends a string, begins an escape or is a control byte. */
static uint64_t special_bytes(const unsigned char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x;
    memcpy(&x, bytes, sizeof(x));
    uint64_t quotes = x ^ ones * '"', escapes = x ^ ones * '\\';
    return (((quotes - ones) & ~quotes) | ((escapes - ones) & ~escapes) | ((x - ones * ' ') & ~x)) &
           ones * 0x80;
}

/* Skips the bytes of a string that need no check, up to the end of the piece. */
static void skip_plain(struct scanner *s)
{
    while (s->at + 8 <= s->len && !special_bytes(s->bytes + s->at))
        s->at += 8;
    while (s->at < s->len) {
        unsigned char c = s->bytes[s->at];
        if (c == '"' || c == '\\' || c < 0x20)
            break;
        s->at++;
    }
}

/* copy may be NULL. */
static int skip_string(struct scanner *s, struct copy *copy, struct df_err *err)
{
    if (expect_byte(s, '"', err) < 0)
        return -1;
    for (;;) {
        if (!copy)
            skip_plain(s);
        int c = take_byte(s);
        if (c == '"')
            return 0;
        if (c < 0x20)
            return fail_at(s, c < 0 ? "the text ends in a string" : "raw control byte", err);
        copy_byte(copy, c);
        if (c == '\\' && skip_escape(s, err) < 0)
            return -1;
    }
}

static bool skip_digits(struct scanner *s, struct copy *copy)
{
    bool any = false;
    for (int c = peek_byte(s); c >= '0' && c <= '9'; c = peek_byte(s)) {
        copy_byte(copy, take_byte(s));
        any = true;
    }
    return any;
}

static bool take_one_of(struct scanner *s, const char *set, struct copy *copy)
{
    int c = peek_byte(s);
    if (c <= 0 || !strchr(set, c))
        return false;
    copy_byte(copy, take_byte(s));
    return true;
}

static int skip_number(struct scanner *s, struct copy *copy, struct df_err *err)
{
    (void)take_one_of(s, "-", copy);
    bool good = take_one_of(s, "0", copy) || skip_digits(s, copy);
    if (good && take_one_of(s, ".", copy))
        good = skip_digits(s, copy);
    if (good && take_one_of(s, "eE", copy)) {
        (void)take_one_of(s, "+-", copy);
        good = skip_digits(s, copy);
    }
    return good ? 0 : fail_at(s, "bad value", err);
}

static int skip_scalar(struct scanner *s, struct df_err *err)
{
    static const char *const words[] = {"true", "false", "null"};
    int c = peek_byte(s);
    if (c == '"')
        return skip_string(s, NULL, err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (c != words[i][0])
            continue;
        for (const char *w = words[i]; *w; w++) {
            if (take_byte(s) != *w)
                return fail_at(s, "bad word", err);
        }
        return 0;
    }
    return skip_number(s, NULL, err);
}

/* ---- nesting -------------------------------------------------------------------------------- */

static bool inside_object(const struct scanner *s)
{
    size_t top = s->depth - 1;
    return s->is_object[top / 8] >> top % 8 & 1;
}

static int push_level(struct scanner *s, bool object, struct df_err *err)
{
    if (s->depth == DF_LIMIT_STATE_DEPTH)
        return fail_at(s, "nested too deep", err);
    unsigned char bit = (unsigned char)(1 << s->depth % 8);
    unsigned char *byte = &s->is_object[s->depth / 8];
    *byte = (unsigned char)(object ? *byte | bit : *byte & ~bit);
    s->depth++;
    return 0;
}

/* Reads a member's name and the colon, up to its value. copy may be NULL. */
static int skip_name(struct scanner *s, struct copy *copy, struct df_err *err)
{
    skip_space(s);
    if (skip_string(s, copy, err) < 0)
        return -1;
    skip_space(s);
    if (expect_byte(s, ':', err) < 0)
        return -1;
    skip_space(s);
    return 0;
}

/* Enters the object or array at the current bracket. *ret_value: a value follows; false if it is
 * empty. */
static int enter_value(struct scanner *s, bool *ret_value, struct df_err *err)
{
    bool object = take_byte(s) == '{';
    if (push_level(s, object, err) < 0)
        return -1;
    skip_space(s);
    if (peek_byte(s) == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        *ret_value = false;
        return 0;
    }
    *ret_value = true;
    return object ? skip_name(s, NULL, err) : 0;
}

/* After a value: leaves the objects and arrays that end here, until the next value or the given
 * depth. */
static int leave_values(struct scanner *s, size_t depth, struct df_err *err)
{
    while (s->depth > depth) {
        skip_space(s);
        int c = take_byte(s);
        if (c == ',' && inside_object(s))
            return skip_name(s, NULL, err);
        if (c == ',') {
            skip_space(s);
            return 0;
        }
        if (c != (inside_object(s) ? '}' : ']'))
            return fail_at(s, "',' or a closing bracket expected", err);
        s->depth--;
    }
    return 0;
}

/* Skips a value of any size and depth, without recursion. */
static int skip_value(struct scanner *s, struct df_err *err)
{
    size_t depth = s->depth;
    do {
        int c = peek_byte(s);
        bool value = false;
        if (c == '{' || c == '[') {
            if (enter_value(s, &value, err) < 0)
                return -1;
        } else if (skip_scalar(s, err) < 0) {
            return -1;
        }
        if (!value && leave_values(s, depth, err) < 0)
            return -1;
    } while (s->depth > depth);
    return 0;
}

/* ---- the outermost object ------------------------------------------------------------------- */

enum member { VERSION, SERIAL, LINEAGE, OUTPUTS, RESOURCES, ENCRYPTED, OTHER };

static enum member member_of(const struct copy *name)
{
    static const char *const names[] = {"version", "serial",    "lineage",
                                        "outputs", "resources", "encrypted_data"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        if (df_streq(name->text, names[i]))
            return (enum member)i;
    }
    return OTHER;
}

static int read_count(struct scanner *s, const char *name, int64_t *ret, struct df_err *err)
{
    struct copy digits = {.len = 0};
    char why[64];
    (void)snprintf(why, sizeof(why), "\"%s\" is not a whole number", name);
    if (peek_byte(s) == '"' || skip_number(s, &digits, NULL) < 0 ||
        digits.len >= sizeof(digits.text) ||
        df_parse_i64(digits.text, 0, LARGEST_SERIAL, ret, NULL) < 0)
        return fail_at(s, why, err);
    return 0;
}

static int read_lineage(struct scanner *s, char ret[129], struct df_err *err)
{
    struct copy text = {.len = 0};
    if (peek_byte(s) != '"')
        return fail_at(s, "\"lineage\" is not a string", err);
    if (skip_string(s, &text, err) < 0)
        return -1;
    if (text.len >= sizeof(text.text) || text.escaped || !df_is_utf8(text.text, text.len))
        return fail_at(s, "\"lineage\" is too long or not plain text", err);
    memcpy(ret, text.text, sizeof(text.text));
    return 0;
}

/* Skips a value. *ret_filled: it is a non-empty array. */
static int read_list(struct scanner *s, bool *ret_filled, struct df_err *err)
{
    size_t depth = s->depth;
    bool filled = false;
    if (peek_byte(s) != '[')
        return skip_value(s, err);
    if (enter_value(s, &filled, err) < 0)
        return -1;
    while (s->depth > depth) {
        if (skip_value(s, err) < 0 || leave_values(s, depth, err) < 0)
            return -1;
    }
    *ret_filled = filled;
    return 0;
}

static int read_member(struct scanner *s, enum member member, struct df_state_head *head,
                       struct df_err *err)
{
    int64_t start = offset_of(s);
    switch (member) {
    case VERSION:
        return read_count(s, "version", &head->version, err);
    case SERIAL:
        if (read_count(s, "serial", &head->serial, err) < 0)
            return -1;
        head->serial_at = start;
        head->serial_length = offset_of(s) - start;
        return 0;
    case LINEAGE:
        return read_lineage(s, head->lineage, err);
    case OUTPUTS:
        if (skip_value(s, err) < 0)
            return -1;
        head->outputs_at = start;
        head->outputs_length = offset_of(s) - start;
        return 0;
    case RESOURCES:
        return read_list(s, &head->has_resources, err);
    case ENCRYPTED:
        head->is_encrypted = true;
        break;
    case OTHER:
        break;
    }
    return skip_value(s, err);
}

static int read_members(struct scanner *s, struct df_state_head *head, bool seen[OTHER + 1],
                        struct df_err *err)
{
    skip_space(s);
    if (peek_byte(s) == '}') {
        s->at++;
        return 0;
    }
    for (;;) {
        struct copy name = {.len = 0};
        if (skip_name(s, &name, err) < 0)
            return -1;
        enum member member = member_of(&name);
        if (member != OTHER && seen[member])
            return fail_at(s, "a member is duplicated", err);
        seen[member] = true;
        if (read_member(s, member, head, err) < 0)
            return -1;
        skip_space(s);
        int c = take_byte(s);
        if (c == '}')
            return 0;
        if (c != ',')
            return fail_at(s, "',' or '}' expected", err);
    }
}

static int scan_state(struct scanner *s, struct df_state_head *head, struct df_err *err)
{
    bool seen[OTHER + 1] = {false};
    skip_space(s);
    if (expect_byte(s, '{', err) < 0 || read_members(s, head, seen, err) < 0)
        return -1;
    skip_space(s);
    if (peek_byte(s) >= 0)
        return fail_at(s, "data after the end", err);
    if (s->read_errno)
        return fail_at(s, "", err);
    /* OpenTofu writes an encrypted state without the version of what is inside. */
    if ((!seen[VERSION] && !head->is_encrypted) || !seen[SERIAL] || !seen[LINEAGE])
        return df_fail_reason(err, DF_ERR_USER, "StateRefused",
                              "not a state: \"version\", \"serial\" and \"lineage\" are required");
    return 0;
}

/* A state that was written on Windows. */
static int check_text(int fd, struct df_err *err)
{
    char begin[3];
    ssize_t n = pread(fd, begin, sizeof(begin), 0);
    const char *fault = n > 0 ? df_text_fault(begin, (size_t)n) : NULL;
    return fault ? df_fail_reason(err, DF_ERR_USER, "StateRefused", "the state %s", fault) : 0;
}

int df_state_scan(int fd, struct df_state_head *ret, struct df_err *err)
{
    DF_FREE unsigned char *bytes = malloc(PIECE);
    if (!bytes)
        return df_fail_oom(err);
    struct scanner s = {.fd = fd, .bytes = bytes};
    struct df_state_head head = {0};
    if (check_text(fd, err) < 0 || scan_state(&s, &head, err) < 0)
        return -1;
    *ret = head;
    return 0;
}

/* ---- copies --------------------------------------------------------------------------------- */

int df_state_copy(int in_fd, int64_t at, int64_t n, int out_fd, struct df_err *err)
{
    DF_FREE char *bytes = malloc(PIECE);
    if (!bytes)
        return df_fail_oom(err);
    while (n > 0) {
        size_t want = n < (int64_t)PIECE ? (size_t)n : PIECE;
        ssize_t got = pread(in_fd, bytes, want, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return df_fail_errno(err, errno, "read state");
        if (got == 0)
            return df_fail(err, DF_ERR_SYSTEM, "the state ended while it was copied");
        if (df_fs_write_all(out_fd, bytes, (size_t)got, err) < 0)
            return -1;
        at += got;
        n -= got;
    }
    return 0;
}

int df_state_rewrite(int in_fd, const struct df_state_head *head, int64_t serial, int out_fd,
                     struct df_err *err)
{
    off_t size = lseek(in_fd, 0, SEEK_END);
    if (size < 0)
        return df_fail_errno(err, errno, "read state");
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%lld", (long long)serial);
    int64_t behind = head->serial_at + head->serial_length;
    if (df_state_copy(in_fd, 0, head->serial_at, out_fd, err) < 0 ||
        df_fs_write_all(out_fd, digits, (size_t)n, err) < 0)
        return -1;
    return df_state_copy(in_fd, behind, size - behind, out_fd, err);
}
