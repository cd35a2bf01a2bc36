/*
 * The chain is checked from its newest entry down, as lists are read: the hash of an entry is known
 * to be right when the one below has said its own. What is found last is the lowest, and that is
 * the first broken link.
 */
#include "spawner/model/audit_chain.h"

#include <stdarg.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

/* ---- canonical JSON ------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

static void write_value(struct df_buf *out, const cJSON *value);

static void write_text(struct df_buf *out, char *text)
{
    (void)df_buf_adds(out, text); /* NULL: out of memory */
    free(text);
}

static void write_name(struct df_buf *out, const char *name)
{
    DF_JSON cJSON *text = cJSON_CreateStringReference(name);
    write_text(out, df_json_print(text));
    (void)df_buf_addc(out, ':');
}

static void write_members(struct df_buf *out, const cJSON **members, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            (void)df_buf_addc(out, ',');
        write_name(out, members[i]->string);
        write_value(out, members[i]);
    }
}

static void write_object(struct df_buf *out, const cJSON *object)
{
    DF_FREE const cJSON **members = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof(cJSON *));
    const cJSON *member;
    size_t n = 0;
    if (!members) {
        (void)df_buf_adds(out, NULL);
        return;
    }
    cJSON_ArrayForEach (member, object)
        members[n++] = member;
    if (n)
        qsort(members, n, sizeof(cJSON *), by_name);
    (void)df_buf_addc(out, '{');
    write_members(out, members, n);
    (void)df_buf_addc(out, '}');
}

static void write_array(struct df_buf *out, const cJSON *array)
{
    const cJSON *item;
    (void)df_buf_addc(out, '[');
    cJSON_ArrayForEach (item, array) {
        if (item != array->child)
            (void)df_buf_addc(out, ',');
        write_value(out, item);
    }
    (void)df_buf_addc(out, ']');
}

static void write_value(struct df_buf *out, const cJSON *value)
{
    if (cJSON_IsObject(value))
        write_object(out, value);
    else if (cJSON_IsArray(value))
        write_array(out, value);
    else
        write_text(out, df_json_print(value));
}

/* The entry without its seal, and without its hash unless that is sealed. */
static int write_entry(struct df_buf *out, const cJSON *entry, bool is_for_seal, struct df_err *err)
{
    DF_JSON cJSON *copy = cJSON_Duplicate(entry, true);
    if (df_check_alloc(copy, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "seal");
    if (!is_for_seal)
        cJSON_DeleteItemFromObjectCaseSensitive(copy, "hash");
    write_value(out, copy);
    return 0;
}

int df_audit_hash(const cJSON *entry, const char *previous, char out[DF_SHA256_HEX],
                  struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (write_entry(&text, entry, false, err) < 0)
        return -1;
    (void)df_buf_adds(&text, previous);
    if (df_buf_check(&text, err) < 0)
        return df_err_wrap(err, "an audit entry");
    return df_sha256_hex(text.data, text.len, out, err);
}

/* The seal of an entry that has its hash. */
static int seal(const cJSON *entry, const unsigned char *key, char out[DF_SHA256_HEX],
                struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    unsigned char mac[DF_SHA256_LEN];
    if (write_entry(&text, entry, true, err) < 0)
        return -1;
    if (df_buf_check(&text, err) < 0 ||
        df_hmac_sha256(key, DF_KEY_LEN, text.data, text.len, mac, err) < 0)
        return df_err_wrap(err, "an audit entry");
    df_hex(mac, sizeof(mac), out);
    return 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

struct df_audit_place df_audit_place_of(const cJSON *entry)
{
    return df_audit_place_at(df_json_int(entry, "sequence", 0), df_json_str(entry, "hash"));
}

int df_audit_link(cJSON *entry, struct df_audit_place *last, const unsigned char *key,
                  struct df_err *err)
{
    struct df_audit_place place = {.sequence = last->sequence + 1};
    char text[DF_SHA256_HEX];
    if (df_json_put(entry, err, DF_NUM("sequence", place.sequence)) < 0 ||
        df_audit_hash(entry, last->hash, place.hash, err) < 0 ||
        df_json_put(entry, err, DF_STR("hash", place.hash)) < 0)
        return -1;
    if (key &&
        (seal(entry, key, text, err) < 0 || df_json_put(entry, err, DF_STR("seal", text)) < 0))
        return -1;
    *last = place;
    return 0;
}

static void describe_cut(const struct df_audit_place *cut, int64_t count, char out[160])
{
    if (count)
        (void)snprintf(out, 160, "%lld %s, as retention.audit* says: the chain goes on behind %lld",
                       (long long)count, count == 1 ? "entry" : "entries",
                       (long long)cut->sequence);
    else if (cut->sequence)
        (void)snprintf(out, 160, "the chain begins: the entries up to %lld have no hashes",
                       (long long)cut->sequence);
    else
        (void)snprintf(out, 160, "the chain begins: older entries have no hashes");
}

int df_audit_cut(const struct df_audit_place *cut, int64_t count, cJSON **ret, struct df_err *err)
{
    char detail[160];
    describe_cut(cut, count, detail);
    cJSON *checkpoint =
        df_json_object(DF_NUM("sequence", cut->sequence), DF_STR("hash", cut->hash));
    *ret = df_json_object(DF_TIME("at", df_real_us()), DF_STR("actor", "dayfly"),
                          DF_STR("role", "admin"), DF_STR("action", count ? "remove" : "begin"),
                          DF_STR("kind", "Audit"), DF_STR("name", ""), DF_STR("outcome", "done"),
                          DF_STR("detail", detail), DF_ITEM("checkpoint", checkpoint));
    return df_check_alloc(*ret, err);
}

/* ---- checking ------------------------------------------------------------------------------- */

static void break_at(struct df_audit_check *c, int64_t sequence, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* Lower ones come later, and replace those above. */
static void break_at(struct df_audit_check *c, int64_t sequence, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    c->broken = sequence > 0 ? sequence : 1;
    (void)vsnprintf(c->why, sizeof(c->why), fmt, args);
    va_end(args);
}

/* Is the hash of the entry above right, if the entry below it has this hash? */
static int check_above(struct df_audit_check *c, const char *below, struct df_err *err)
{
    struct df_audit_place place = df_audit_place_of(c->above);
    char wanted[DF_SHA256_HEX];
    if (df_audit_hash(c->above, below, wanted, err) < 0)
        return -1;
    if (!df_streq(place.hash, wanted))
        break_at(c, place.sequence,
                 "entry %lld was changed, or the one before it: its hash should be %s, and is %s",
                 (long long)place.sequence, wanted, place.hash);
    return 0;
}

/* A restore has no key when the archive has none; its entry is held by the sealed one above. */
static bool needs_seal(const struct df_audit_check *c, const cJSON *entry)
{
    return c->key &&
           (df_json_at(entry, "seal") || !df_streq(df_json_str(entry, "action"), "restore") ||
            !df_streq(df_json_str(entry, "kind"), "Backup"));
}

static int check_seal(struct df_audit_check *c, const cJSON *entry, int64_t sequence,
                      struct df_err *err)
{
    char wanted[DF_SHA256_HEX];
    if (!needs_seal(c, entry))
        return 0;
    if (seal(entry, c->key, wanted, err) < 0)
        return -1;
    if (!df_streq(wanted, df_json_str(entry, "seal"))) /* what it should be is nobody's business */
        break_at(c, sequence,
                 "entry %lld does not have the seal of this service: somebody without its key "
                 "wrote it",
                 (long long)sequence);
    return 0;
}

/* The chain begins behind this place. */
static int reach_begin(struct df_audit_check *c, const struct df_audit_place *begin,
                       struct df_err *err)
{
    c->begin = *begin;
    c->is_complete = true;
    c->is_over = !begin->hash[0];
    return check_above(c, begin->hash, err);
}

/* The newest checkpoint is the first that is found. Among what it cut, which is still there after a
 * crash, the chain may begin behind entries without hashes. */
static int look_at_begin(struct df_audit_check *c, const cJSON *entry, int64_t sequence,
                         struct df_err *err)
{
    const cJSON *checkpoint = cJSON_GetObjectItemCaseSensitive(entry, "checkpoint");
    struct df_audit_place begin = df_audit_place_of(checkpoint);
    if (c->is_complete)
        return checkpoint && !begin.hash[0] && sequence == begin.sequence + 1
                   ? reach_begin(c, &begin, err)
                   : 0;
    if (checkpoint && (!c->has_older || begin.sequence > c->begin.sequence)) {
        c->begin = begin;
        c->has_older = true;
    }
    begin = c->begin;
    return sequence == begin.sequence + 1 ? reach_begin(c, &begin, err) : 0;
}

/* Looks whether the entry is the one that should be below the one above. */
static int check_order(struct df_audit_check *c, const struct df_audit_place *place,
                       struct df_err *err)
{
    int64_t above = c->lowest.sequence;
    if (!above || place->sequence == above - 1)
        return c->above ? check_above(c, place->hash, err) : 0;
    break_at(c, above - 1, "entry %lld is missing: before %lld comes %lld", (long long)(above - 1),
             (long long)above, (long long)place->sequence);
    return 0;
}

/* Takes the entry as the lowest so far. */
static int descend(struct df_audit_check *c, const cJSON *entry, const struct df_audit_place *place,
                   struct df_err *err)
{
    cJSON_Delete(c->above);
    c->above = cJSON_Duplicate(entry, true);
    c->lowest = *place;
    if (!c->is_complete)
        c->oldest = *place;
    if (df_check_alloc(c->above, err) < 0 || check_seal(c, entry, place->sequence, err) < 0)
        return -1;
    return look_at_begin(c, entry, place->sequence, err);
}

/* What is below an entry without a hash is not of the chain. */
static void miss_hash(struct df_audit_check *c)
{
    if (c->entries)
        break_at(c, c->lowest.sequence - 1,
                 "entry %lld has no sequence or no hash, and no checkpoint says why",
                 (long long)(c->lowest.sequence - 1));
    else
        break_at(c, 1, "the newest entry has no sequence or no hash");
    c->is_complete = c->is_over = true;
}

/* Below entries without hashes there is only what the checkpoint tells. */
static void look_at_older(struct df_audit_check *c, const struct df_audit_place *place)
{
    bool is_older = place->sequence ? place->sequence <= c->begin.sequence : c->has_older;
    if (!c->broken && !is_older)
        break_at(c, c->oldest.sequence, "below entry %lld, the first of the chain, comes %lld",
                 (long long)c->oldest.sequence, (long long)place->sequence);
}

int df_audit_check_next(struct df_audit_check *c, const cJSON *entry, struct df_err *err)
{
    struct df_audit_place place = df_audit_place_of(entry);
    c->older += c->is_complete;
    if (c->is_over) {
        look_at_older(c, &place);
        return 0;
    }
    if (!place.hash[0] || place.sequence < 1) {
        miss_hash(c);
        return 0;
    }
    if (c->entries && place.sequence >= c->lowest.sequence) {
        break_at(c, c->lowest.sequence, "before entry %lld comes %lld: the order was changed",
                 (long long)c->lowest.sequence, (long long)place.sequence);
        return 0;
    }
    if (!c->entries)
        c->newest = place;
    c->entries += !c->is_complete;
    return check_order(c, &place, err) < 0 ? -1 : descend(c, entry, &place, err);
}

void df_audit_check_end(struct df_audit_check *c)
{
    if (c->is_complete)
        return;
    if (!c->entries)
        break_at(c, 1, "there is no entry");
    else
        break_at(c, c->oldest.sequence - 1,
                 "entry %lld is missing: the trail is cut there, and no checkpoint says so",
                 (long long)(c->oldest.sequence - 1));
}

int df_audit_check_cut(struct df_audit_check *c, const cJSON *checkpoint, struct df_err *err)
{
    DF_AUDIT_CHECK alone = {.key = c->key};
    if (df_audit_check_next(&alone, checkpoint, err) < 0)
        return -1;
    c->begin = alone.begin;
    c->has_older = alone.has_older;
    if (alone.broken)
        break_at(c, alone.broken, "%s", alone.why);
    return 0;
}

int df_audit_fail_cut(const struct df_audit_check *c, struct df_err *err)
{
    return df_fail(err, DF_ERR_SYSTEM,
                   "the audit trail is broken at entry %lld, so the oldest entries stay: %s: keep "
                   "an export (`dayfly get audit -o jsonl`) and see docs/audit.md",
                   (long long)c->broken, c->why);
}

void df_audit_check_free(struct df_audit_check *c)
{
    cJSON_Delete(c->above);
}

static cJSON *place_object(const struct df_audit_place *place)
{
    return df_json_object(DF_NUM("sequence", place->sequence), DF_STR("hash", place->hash));
}

int df_audit_check_report(const struct df_audit_check *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *report = df_json_object(
        DF_BOOL("verified", !c->broken), DF_NUM("entries", c->entries), DF_NUM("older", c->older),
        DF_ITEM("newest", place_object(&c->newest)), DF_ITEM("oldest", place_object(&c->oldest)));
    if (c->broken &&
        df_json_add(report, "broken",
                    df_json_object(DF_NUM("sequence", c->broken), DF_STR("message", c->why)),
                    err) < 0)
        return -1;
    return df_check_alloc(*ret = DF_TAKE(report), err);
}
