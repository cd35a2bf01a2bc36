/*
 * audit_chain.h - the chain of the audit trail: each entry has a sequence number and a hash over
 * itself and the hash of the entry before, so that a changed, removed or inserted entry is found,
 * and a seal, so that nobody without the key of the service can compute it all anew.
 *
 *   hash(n) = SHA-256(canonical JSON of entry n without `hash` and `seal` || hash(n - 1))
 *   seal(n) = HMAC-SHA-256(key, canonical JSON of entry n without `seal`)
 *
 * Canonical JSON: members sorted by the bytes of their names, no white space. The key comes from
 * that of the vault. The first entry has the sequence 1, and nothing before it. Where the chain
 * begins later, because older entries were removed, or are older than the chain, an entry says so
 * with a `checkpoint`: the sequence and the hash of the last entry that does not belong to it (""
 * for one without a hash). The newest checkpoint tells where the chain begins.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_AUDIT_CHAIN_H
#define DF_MODEL_AUDIT_CHAIN_H

#include "common/crypto/crypto.h"
#include "common/json/json.h"

/* The purpose of the key for df_vault_key(). */
#define DF_AUDIT_KEY_PURPOSE "audit"

/* The place of an entry in the chain. */
struct df_audit_place {
    int64_t sequence;         /* 0: there is none */
    char hash[DF_SHA256_HEX]; /* "": the entry has none */
};

/* hash: 64 lower-case hex digits; of anything else, or NULL, that part is empty. */
static inline struct df_audit_place df_audit_place_at(int64_t sequence, const char *hash)
{
    struct df_audit_place place = {.sequence = sequence};
    if (hash && strlen(hash) == DF_SHA256_HEX - 1 &&
        strspn(hash, "0123456789abcdef") == DF_SHA256_HEX - 1)
        memcpy(place.hash, hash, DF_SHA256_HEX);
    return place;
}

/* The place of this entry; a member that is missing or wrong leaves its part empty. */
struct df_audit_place df_audit_place_of(const cJSON *entry);

/* The hash that an entry must have behind an entry with the hash `previous` ("": none). */
int df_audit_hash(const cJSON *entry, const char *previous, char out[DF_SHA256_HEX],
                  struct df_err *err) DF_MUST_CHECK;

/* Gives the entry its sequence, hash and seal. *last: the place of the entry before, then of this
 * one. key NULL: it gets no seal. */
int df_audit_link(cJSON *entry, struct df_audit_place *last, const unsigned char *key,
                  struct df_err *err) DF_MUST_CHECK;

/* The entry by the service itself that says that the chain begins behind `cut`. count: how many
 * entries of the chain go with it; 0: they are older than the chain. */
int df_audit_cut(const struct df_audit_place *cut, int64_t count, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Checks a trail, entry by entry, the newest first. Zero-initialized but for the key. */
struct df_audit_check {
    const unsigned char *key; /* borrowed; NULL: seals are not checked */
    cJSON *above;             /* the entry before, whose hash needs that of the next one; owned */
    struct df_audit_place begin; /* of the newest checkpoint: the chain begins behind it */
    bool has_older;              /* there was a checkpoint */
    bool is_complete;            /* the begin of the chain was reached */
    bool is_over;                /* and below it there are no hashes */
    int64_t entries, older;      /* in the chain; below its begin */
    struct df_audit_place newest, oldest, lowest; /* of the chain; of what was looked at */
    int64_t broken; /* the sequence of the first link that does not hold; 0: all hold */
    char why[256];  /* what is wrong with it, and what was expected */
};
int df_audit_check_next(struct df_audit_check *c, const cJSON *entry,
                        struct df_err *err) DF_MUST_CHECK;
/* Before the first, of a trail whose newest entries are left out: this entry has the newest
 * checkpoint of the whole. */
int df_audit_check_cut(struct df_audit_check *c, const cJSON *checkpoint,
                       struct df_err *err) DF_MUST_CHECK;
/* After the last entry. */
void df_audit_check_end(struct df_audit_check *c);
/* Of a broken trail, whose oldest entries cannot be removed: returns -1. */
int df_audit_fail_cut(const struct df_audit_check *c, struct df_err *err);
void df_audit_check_free(struct df_audit_check *c);
#define DF_AUDIT_CHECK DF_CLEANUP(df_audit_check_free) struct df_audit_check

/* {verified, entries, older, newest: {sequence, hash}, oldest, broken: {sequence, message}}. */
int df_audit_check_report(const struct df_audit_check *c, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
