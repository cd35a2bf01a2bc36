/*
 * audit_chain.h - the chain of the audit trail: each entry has a sequence number and a hash over
 * itself and the hash of the entry before, so that a changed, removed or inserted entry is found.
 *
 *   hash(n) = SHA-256(canonical JSON of entry n without `hash` || hash(n - 1))
 *
 * Canonical JSON: members sorted by the bytes of their names, no white space. The first entry has
 * the sequence 1, and nothing before it. Where the chain begins later, because older entries were
 * removed, or are older than the chain, an entry says so with a `checkpoint`: the sequence and the
 * hash of the last entry that does not belong to it ("" for one without a hash), signed with a key
 * of the vault. The newest checkpoint tells where the chain begins.
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

/* The place of this entry; a member that is missing or wrong leaves its part empty. */
struct df_audit_place df_audit_place_of(const cJSON *entry);

/* The hash that an entry must have behind an entry with the hash `previous` ("": none). */
int df_audit_hash(const cJSON *entry, const char *previous, char out[DF_SHA256_HEX],
                  struct df_err *err) DF_MUST_CHECK;

/* Gives the entry its sequence and hash. *last: the place of the entry before, then of this one. */
int df_audit_link(cJSON *entry, struct df_audit_place *last, struct df_err *err) DF_MUST_CHECK;

/* The entry by the service itself that says that the chain begins behind `cut`. key NULL: it is not
 * signed. count: how many entries of the chain go with it; 0: they are older than the chain. */
int df_audit_cut(const struct df_audit_place *cut, int64_t count,
                 const unsigned char key[DF_KEY_LEN], cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Checks a trail, entry by entry, the newest first. Zero-initialized but for the key. */
struct df_audit_check {
    const unsigned char *key; /* borrowed; NULL: signatures are not checked */
    cJSON *above;             /* the entry before, whose hash needs that of the next one; owned */
    struct df_audit_place begin; /* of the newest checkpoint: the chain begins behind it */
    bool has_older;              /* there was a checkpoint */
    bool is_complete;            /* the begin of the chain was reached */
    int64_t entries, older;      /* in the chain; below its begin */
    struct df_audit_place newest, oldest;
    int64_t broken; /* the sequence of the first link that does not hold; 0: all hold */
    char why[256];  /* what is wrong with it, and what was expected */
};
int df_audit_check_next(struct df_audit_check *c, const cJSON *entry,
                        struct df_err *err) DF_MUST_CHECK;
/* After the last entry. */
void df_audit_check_end(struct df_audit_check *c);
void df_audit_check_free(struct df_audit_check *c);
#define DF_AUDIT_CHECK DF_CLEANUP(df_audit_check_free) struct df_audit_check

/* {verified, entries, older, newest: {sequence, hash}, oldest, broken: {sequence, message}}. */
int df_audit_check_report(const struct df_audit_check *c, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
