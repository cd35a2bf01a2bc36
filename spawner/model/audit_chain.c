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

static void write_value(struct df_buf *out, const cJSON *value, const char *without);

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
        write_value(out, members[i], NULL);
    }
}

static void write_object(struct df_buf *out, const cJSON *object, const char *without)
{
    DF_FREE const cJSON **members = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof(cJSON *));
    const cJSON *member;
    size_t n = 0;
    if (!members) {
        (void)df_buf_adds(out, NULL);
        return;
    }
    cJSON_ArrayForEach (member, object) {
        if (!df_streq(member->string, without))
            members[n++] = member;
    }
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
        write_value(out, item, NULL);
    }
    (void)df_buf_addc(out, ']');
}

static void write_value(struct df_buf *out, const cJSON *value, const char *without)
{
    if (cJSON_IsObject(value))
        write_object(out, value, without);
    else if (cJSON_IsArray(value))
        write_array(out, value);
    else
        write_text(out, df_json_print(value));
}

int df_audit_hash(const cJSON *entry, const char *previous, char out[DF_SHA256_HEX],
                  struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    write_object(&text, entry, "hash");
    (void)df_buf_adds(&text, previous);
    if (df_buf_check(&text, err) < 0)
        return df_err_wrap(err, "an audit entry");
    return df_sha256_hex(text.data, text.len, out, err);
}

/* ---- entries -------------------------------------------------------------------------------- */

struct df_audit_place df_audit_place_of(const cJSON *entry)
{
    struct df_audit_place place = {.sequence = df_json_int(entry, "sequence", 0)};
    const char *hash = df_json_text(entry, "hash");
    if (strlen(hash) == DF_SHA256_HEX - 1)
        memcpy(place.hash, hash, DF_SHA256_HEX);
    return place;
}

int df_audit_link(cJSON *entry, struct df_audit_place *last, struct df_err *err)
{
    struct df_audit_place place = {.sequence = last->sequence + 1};
    if (df_json_put(entry, err, DF_NUM("sequence", place.sequence)) < 0 ||
        df_audit_hash(entry, last->hash, place.hash, err) < 0 ||
        df_json_put(entry, err, DF_STR("hash", place.hash)) < 0)
        return -1;
    *last = place;
    return 0;
}

/* The signature of a checkpoint, as hexadecimal digits. */
static int sign(const unsigned char *key, const struct df_audit_place *cut, char out[DF_SHA256_HEX],
                struct df_err *err)
{
    unsigned char mac[DF_SHA256_LEN];
    DF_FREE char *text =
        df_strf("dayfly audit checkpoint %lld %s", (long long)cut->sequence, cut->hash);
    if (df_check_alloc(text, err) < 0 ||
        df_hmac_sha256(key, DF_KEY_LEN, text, strlen(text), mac, err) < 0)
        return -1;
    df_hex(mac, sizeof(mac), out);
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

int df_audit_cut(const struct df_audit_place *cut, int64_t count,
                 const unsigned char key[DF_KEY_LEN], cJSON **ret, struct df_err *err)
{
    char signature[DF_SHA256_HEX], detail[160];
    if (key && sign(key, cut, signature, err) < 0)
        return -1;
    describe_cut(cut, count, detail);
    cJSON *checkpoint = df_json_object(DF_NUM("sequence", cut->sequence), DF_STR("hash", cut->hash),
                                       DF_STR("signature", key ? signature : NULL));
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

static int check_checkpoint(struct df_audit_check *c, const cJSON *entry, int64_t sequence,
                            struct df_err *err)
{
    const cJSON *checkpoint = cJSON_GetObjectItemCaseSensitive(entry, "checkpoint");
    struct df_audit_place begin = df_audit_place_of(checkpoint);
    char wanted[DF_SHA256_HEX];
    if (!checkpoint || (c->has_older && begin.sequence <= c->begin.sequence))
        return 0;
    c->begin = begin;
    c->has_older = true;
    if (c->key && sign(c->key, &begin, wanted, err) < 0)
        return -1;
    if (c->key && !df_streq(wanted, df_json_str(checkpoint, "signature")))
        break_at(c, sequence,
                 "entry %lld is a checkpoint that this service has not signed: its signature "
                 "should be %s",
                 (long long)sequence, wanted);
    return 0;
}

/* Looks whether the entry is the one that should be below the one above. */
static int check_order(struct df_audit_check *c, const struct df_audit_place *place,
                       struct df_err *err)
{
    int64_t above = c->oldest.sequence;
    if (!above || place->sequence == above - 1)
        return c->above ? check_above(c, place->hash, err) : 0;
    break_at(c, above - 1, "entry %lld is missing: before %lld comes %lld", (long long)(above - 1),
             (long long)above, (long long)place->sequence);
    return 0;
}

/* Takes the entry as the lowest so far; is it the first of the chain? */
static int descend(struct df_audit_check *c, const cJSON *entry, const struct df_audit_place *place,
                   struct df_err *err)
{
    cJSON_Delete(c->above);
    c->above = cJSON_Duplicate(entry, true);
    c->oldest = *place;
    if (df_check_alloc(c->above, err) < 0 || check_checkpoint(c, entry, place->sequence, err) < 0)
        return -1;
    c->is_complete = place->sequence == c->begin.sequence + 1;
    return c->is_complete ? check_above(c, c->begin.hash, err) : 0;
}

/* What is below an entry without a hash is not of the chain. */
static void miss_hash(struct df_audit_check *c)
{
    if (c->entries)
        break_at(c, c->oldest.sequence - 1,
                 "entry %lld has no sequence or no hash, and no checkpoint says why",
                 (long long)(c->oldest.sequence - 1));
    else
        break_at(c, 1, "the newest entry has no sequence or no hash");
    c->is_complete = true;
}

/* Below the begin of the chain there is only what its checkpoint tells. */
static void look_at_older(struct df_audit_check *c, const struct df_audit_place *place)
{
    bool is_older = place->sequence ? place->sequence <= c->begin.sequence : c->has_older;
    if (c->broken)
        return;
    if (!is_older)
        break_at(c, c->oldest.sequence, "below entry %lld, the first of the chain, comes %lld",
                 (long long)c->oldest.sequence, (long long)place->sequence);
    c->older++;
}

int df_audit_check_next(struct df_audit_check *c, const cJSON *entry, struct df_err *err)
{
    struct df_audit_place place = df_audit_place_of(entry);
    if (c->is_complete) {
        look_at_older(c, &place);
        return 0;
    }
    if (!place.hash[0] || place.sequence < 1) {
        miss_hash(c);
        return 0;
    }
    if (c->entries && place.sequence >= c->oldest.sequence) {
        break_at(c, c->oldest.sequence, "before entry %lld comes %lld: the order was changed",
                 (long long)c->oldest.sequence, (long long)place.sequence);
        return 0;
    }
    if (!c->entries++)
        c->newest = place;
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
