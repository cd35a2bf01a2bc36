/*
 * personal.c - the text of a token, then its records, then the caller who comes with one, then what
 * its owner does with it. Read df_personal_caller() first.
 */
#include "spawner/identity/personal.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/identity/oidc.h"
#include "spawner/identity/tokens.h"
#include "spawner/store/vault/vault_tokens.h"

#define PREFIX "dft_"
#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)
enum { SEEN = 256 }; /* people whose groups are remembered */

/* Keys of records. Names are DNS labels: no token has the key of another record. */
#define OWNER "owner"
#define TOKEN "token."
#define USED "used."

struct df_personal {
    struct df_vault *vault;
    pthread_mutex_t changes; /* held from reading an entry to changing it */
    pthread_mutex_t lock;    /* guards the rest */
    struct seen {
        char id[DF_VAULT_TOKENS_ID];
        uint64_t groups;
        int64_t due_ms;
    } seen[SEEN]; /* what need not be looked at again before due_ms; by the id */
};

int df_personal_new(struct df_vault *vault, struct df_personal **ret, struct df_err *err)
{
    struct df_personal *p = calloc(1, sizeof(*p));
    if (!p)
        return df_fail_oom(err);
    p->vault = vault;
    (void)pthread_mutex_init(&p->changes, NULL);
    (void)pthread_mutex_init(&p->lock, NULL);
    *ret = p;
    return 0;
}

void df_personal_free(struct df_personal *p)
{
    if (!p)
        return;
    (void)pthread_mutex_destroy(&p->changes);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- the text ---- */

enum { WHOSE = 16, RANDOM = 32, PROOF = 8, SUM = 4, BYTES = WHOSE + RANDOM + PROOF + SUM };
#define TEXT (sizeof(PREFIX) + (size_t)BYTES / 3 * 4) /* with the NUL */

bool df_personal_is(const char *token)
{
    return token && df_starts_with(token, PREFIX);
}

static int refuse(struct df_err *err, const char *why)
{
    return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized", "%s", why);
}

static int sum_of(const unsigned char *bytes, unsigned char out[DF_SHA256_LEN], struct df_err *err)
{
    return df_sha256(bytes, WHOSE + RANDOM + PROOF, out, err);
}

/* Completes a token of which the first two parts are there. */
static int compose(struct df_personal *p, unsigned char bytes[BYTES], char ret[TEXT],
                   struct df_err *err)
{
    unsigned char key[DF_KEY_LEN], digest[DF_SHA256_LEN];
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(TEXT);
    if (df_vault_key(p->vault, "token-proof", key, err) < 0)
        return -1;
    int result = df_hmac_sha256(key, sizeof(key), bytes, WHOSE + RANDOM, digest, err);
    explicit_bzero(key, sizeof(key));
    if (result < 0)
        return -1;
    memcpy(bytes + WHOSE + RANDOM, digest, PROOF);
    if (sum_of(bytes, digest, err) < 0)
        return -1;
    memcpy(bytes + WHOSE + RANDOM + PROOF, digest, SUM);
    if (df_base64_encode(bytes, BYTES, true, &text, err) < 0)
        return -1;
    (void)snprintf(ret, TEXT, PREFIX "%s", df_buf_str(&text));
    return 0;
}

/* False: a character is missing, or another one. */
static bool is_whole(const char *token, struct df_buf *bytes)
{
    unsigned char sum[DF_SHA256_LEN];
    return strlen(token) == TEXT - 1 &&
           df_base64_decode(token + strlen(PREFIX), TEXT - sizeof(PREFIX), true, bytes, NULL) ==
               0 &&
           bytes->len == BYTES && sum_of((unsigned char *)bytes->data, sum, NULL) == 0 &&
           memcmp(bytes->data + BYTES - SUM, sum, SUM) == 0;
}

/* *ret: the entry that may have the token. */
static int take_id(struct df_personal *p, const char *token, char ret[DF_VAULT_TOKENS_ID],
                   struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf bytes = DF_BUF_INIT(BYTES);
    char made[TEXT];
    if (!is_whole(token, &bytes))
        return refuse(err, "the personal token is not whole: a part of it is missing, or a "
                           "character was changed; copy all of it, from dft_ on");
    df_hex(bytes.data, WHOSE, ret);
    int result = compose(p, (unsigned char *)bytes.data, made, err);
    if (result == 0 && !df_secret_equal(made, token))
        result = refuse(err, "the personal token is of another service, or this one has another "
                             "key since then: make one here, with dayfly token create");
    explicit_bzero(made, sizeof(made));
    return result;
}

/* ---- records ---- */

static int id_of(const char *known_by, const char *name, char ret[DF_VAULT_TOKENS_ID],
                 struct df_err *err)
{
    unsigned char digest[DF_SHA256_LEN];
    DF_FREE char *text = df_strf("%s\n%s", known_by, name);
    if (!text)
        return df_fail_oom(err);
    if (df_sha256(text, strlen(text), digest, err) < 0)
        return -1;
    df_hex(digest, WHOSE, ret);
    return 0;
}

static int id_of_caller(const struct df_caller *c, char ret[DF_VAULT_TOKENS_ID], struct df_err *err)
{
    return id_of(df_known_by_name(c->known_by), c->name, ret, err);
}

static int64_t time_at(const cJSON *record, const char *path)
{
    const char *text = df_json_str(record, path);
    int64_t us = 0;
    return text && df_time_parse(text, &us, NULL) == 0 ? us : 0;
}

static bool is_token(const cJSON *record)
{
    return df_starts_with(record->string, TOKEN);
}

static const char *name_of(const cJSON *record)
{
    return record->string + strlen(TOKEN);
}

static const cJSON *record_of(const cJSON *entry, const char *kind, const char *name)
{
    char key[sizeof(TOKEN) + DF_LIMIT_NAME];
    (void)snprintf(key, sizeof(key), "%s%s", kind, name);
    return cJSON_GetObjectItemCaseSensitive(entry, key);
}

/* A token as its owner sees it. */
static int show(const cJSON *entry, const cJSON *record, cJSON **ret, struct df_err *err)
{
    const char *name = name_of(record);
    const cJSON *owner = cJSON_GetObjectItemCaseSensitive(entry, OWNER);
    DF_JSON cJSON *shown = cJSON_Duplicate(record, true);
    if (!shown)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(shown, "digest");
    if (df_json_put(shown, err, DF_STR("name", name), DF_STR("owner", df_json_str(owner, "name")),
                    DF_STR("knownBy", df_json_str(owner, "knownBy")),
                    DF_STR("lastUsedAt", df_json_str(record_of(entry, USED, name), "at"))) < 0)
        return -1;
    free(shown->string);
    shown->string = NULL;
    *ret = DF_TAKE(shown);
    return 0;
}

/* Compares all of them in constant time. *ret: borrowed from the entry; or NULL. */
static int find_token(const cJSON *entry, const char *token, const cJSON **ret, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    const cJSON *record;
    *ret = NULL;
    if (df_sha256_hex(token, strlen(token), digest, err) < 0)
        return -1;
    cJSON_ArrayForEach (record, entry) {
        const char *own = is_token(record) ? df_json_str(record, "digest") : NULL;
        if (own && df_secret_equal(own, digest))
            *ret = record;
    }
    return 0;
}

/* ---- the caller ---- */

static int find_person(const struct df_personal_rules *rules, const cJSON *owner,
                       struct df_caller *caller, struct df_err *err)
{
    if (!rules->has_provider)
        return refuse(err, "the owner of the personal token is a person of an OpenID provider, and "
                           "this service has none any more (auth.oidc)");
    if (df_real_us() > time_at(owner, "seenAt") + DF_PERSONAL_IDLE_DAYS * DAY_US)
        return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized",
                              "%s, whose personal token this is, has not signed in for %d days: "
                              "after `dayfly login` and any command it is good again",
                              caller->name, DF_PERSONAL_IDLE_DAYS);
    caller->groups = cJSON_Duplicate(df_json_at(owner, "groups"), true);
    if (!caller->groups)
        return df_fail_oom(err);
    return df_oidc_grant(rules->grants, caller, err);
}

static int find_holder(const struct df_personal_rules *rules, const cJSON *owner,
                       struct df_caller *caller, struct df_err *err)
{
    bool of_file = df_streq(df_json_str(owner, "knownBy"), df_known_by_name(DF_KNOWN_BY_TOKEN));
    caller->known_by = of_file ? DF_KNOWN_BY_TOKEN : DF_KNOWN_BY_LOCAL;
    if (rules->tokens && df_tokens_are_of_file(rules->tokens) == of_file)
        caller->role = df_tokens_role(rules->tokens, caller->name);
    if (caller->role == DF_ROLE_NONE)
        return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized",
                              "%s, whose personal token this is, is not among the callers of this "
                              "service any more%s",
                              caller->name, of_file ? ": the token file has no such name" : "");
    caller->granted.all = df_role_verbs(caller->role);
    return 0;
}

/* What the owner may do now. */
static int find_owner(const struct df_personal_rules *rules, const cJSON *owner,
                      struct df_caller *caller, struct df_err *err)
{
    df_copy(caller->name, sizeof(caller->name), df_json_str(owner, "name"));
    return df_streq(df_json_str(owner, "knownBy"), df_known_by_name(DF_KNOWN_BY_OPENID))
               ? find_person(rules, owner, caller, err)
               : find_holder(rules, owner, caller, err);
}

static int check_end(const cJSON *owner, const cJSON *record, struct df_err *err)
{
    if (df_real_us() < time_at(record, "expiresAt"))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized",
                          "the personal token %s of %s expired at %s: make another one, with "
                          "dayfly token create",
                          name_of(record), df_json_str(owner, "name"),
                          df_json_str(record, "expiresAt"));
}

static int put_used(struct df_personal *p, const char *id, const cJSON *entry, const char *name,
                    struct df_err *err)
{
    DF_FREE char *key = df_strf(USED "%s", name);
    DF_JSON cJSON *used = df_json_object(DF_TIME("at", df_real_us()));
    if (!key || !used)
        return df_fail_oom(err);
    return record_of(entry, TOKEN, name) ? df_vault_tokens_put(p->vault, id, key, used, err) : 0;
}

/* Best effort, once in an hour. Read again: it may be revoked by now, and must stay so. */
static void note_use(struct df_personal *p, const char *id, const cJSON *shown)
{
    DF_JSON cJSON *entry = NULL;
    if (df_real_us() < time_at(shown, "lastUsedAt") + HOUR_US)
        return;
    (void)pthread_mutex_lock(&p->changes);
    if (df_vault_tokens_get(p->vault, id, &entry, NULL) == 0)
        (void)put_used(p, id, entry, df_json_str(shown, "name"), NULL);
    (void)pthread_mutex_unlock(&p->changes);
}

int df_personal_caller(struct df_personal *p, const struct df_personal_rules *rules,
                       const char *token, struct df_caller *ret, struct df_err *err)
{
    char id[DF_VAULT_TOKENS_ID];
    struct df_caller caller = {.role = DF_ROLE_NONE};
    DF_JSON cJSON *entry = NULL, *shown = NULL;
    const cJSON *record = NULL;
    if (take_id(p, token, id, err) < 0 || df_vault_tokens_get(p->vault, id, &entry, err) < 0 ||
        find_token(entry, token, &record, err) < 0)
        return -1;
    const cJSON *owner = cJSON_GetObjectItemCaseSensitive(entry, OWNER);
    if (!record || !df_json_str(owner, "name"))
        return refuse(err, "the personal token was revoked, or expired long ago, or is older than "
                           "the backup that this service was restored from: make another one, "
                           "with dayfly token create");
    if (check_end(owner, record, err) < 0 || show(entry, record, &shown, err) < 0)
        return -1;
    if (find_owner(rules, owner, &caller, err) < 0) {
        df_caller_free(&caller);
        return -1;
    }
    df_granted_limit(&caller.granted, shown);
    caller.role = df_verbs_role(caller.granted.all);
    if (rules->writes)
        note_use(p, id, shown);
    caller.token = DF_TAKE(shown);
    *ret = caller;
    return 0;
}

/* ---- the owner ---- */

static int put_owner(struct df_personal *p, const char *id, const struct df_caller *c,
                     struct df_err *err)
{
    DF_JSON cJSON *owner =
        df_json_object(DF_STR("name", c->name), DF_STR("knownBy", df_known_by_name(c->known_by)),
                       DF_TIME("issuedAt", c->issued_us), DF_TIME("seenAt", df_real_us()));
    if (!owner ||
        (c->groups && df_json_add(owner, "groups", cJSON_Duplicate(c->groups, true), err) < 0))
        return df_fail_oom(err);
    return df_vault_tokens_put(p->vault, id, OWNER, owner, err);
}

static bool is_older(const struct df_caller *c, const cJSON *entry)
{
    return c->issued_us < time_at(cJSON_GetObjectItemCaseSensitive(entry, OWNER), "issuedAt");
}

static struct seen *seen_of(struct df_personal *p, const char *id)
{
    return &p->seen[strtoul((char[]){id[0], id[1], '\0'}, NULL, 16)];
}

static bool is_seen(struct df_personal *p, const char *id, uint64_t groups)
{
    (void)pthread_mutex_lock(&p->lock);
    const struct seen *s = seen_of(p, id);
    bool is = df_streq(s->id, id) && s->groups == groups && df_mono_ms() < s->due_ms;
    (void)pthread_mutex_unlock(&p->lock);
    return is;
}

static void set_seen(struct df_personal *p, const char *id, uint64_t groups)
{
    (void)pthread_mutex_lock(&p->lock);
    struct seen *s = seen_of(p, id);
    df_copy(s->id, sizeof(s->id), id);
    s->groups = groups;
    s->due_ms = df_mono_ms() + HOUR_US / 1000;
    (void)pthread_mutex_unlock(&p->lock);
}

static int note(struct df_personal *p, const char *id, const struct df_caller *c, uint64_t groups,
                struct df_err *err)
{
    DF_JSON cJSON *entry = NULL;
    if (df_vault_tokens_get(p->vault, id, &entry, err) < 0)
        return -1;
    if (is_older(c, entry))
        return 0;
    if (cJSON_HasObjectItem(entry, OWNER) && put_owner(p, id, c, err) < 0)
        return -1;
    set_seen(p, id, groups);
    return 0;
}

int df_personal_note(struct df_personal *p, const struct df_caller *person, struct df_err *err)
{
    char id[DF_VAULT_TOKENS_ID];
    uint64_t groups = df_json_hash(person->groups, 0);
    if (id_of_caller(person, id, err) < 0)
        return -1;
    if (is_seen(p, id, groups))
        return 0;
    (void)pthread_mutex_lock(&p->changes);
    int result = note(p, id, person, groups, err);
    (void)pthread_mutex_unlock(&p->changes);
    return result;
}

/* ---- create ---- */

static int check_room(const cJSON *entry, const char *name, struct df_err *err)
{
    const cJSON *record;
    size_t live = 0;
    cJSON_ArrayForEach (record, entry) {
        if (!is_token(record) || df_real_us() >= time_at(record, "expiresAt"))
            continue;
        if (df_streq(name_of(record), name))
            return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyExists",
                                  "token %s: you have one of this name, good until %s; `dayfly "
                                  "token revoke %s` ends it",
                                  name, df_json_str(record, "expiresAt"), name);
        live++;
    }
    return live < DF_LIMIT_TOKENS_OF_ONE
               ? 0
               : df_fail_reason(err, DF_ERR_CONFLICT, "TooManyTokens",
                                "you have %zu personal tokens, which is the most: `dayfly token "
                                "list` shows them, and `dayfly token revoke` ends one",
                                live);
}

static int make_text(struct df_personal *p, const char *id, char ret[TEXT], struct df_err *err)
{
    unsigned char bytes[BYTES];
    for (size_t i = 0; i < WHOSE; i++)
        bytes[i] = (unsigned char)strtoul((char[]){id[2 * i], id[2 * i + 1], '\0'}, NULL, 16);
    int result = df_random(bytes + WHOSE, RANDOM, err) < 0 ? -1 : compose(p, bytes, ret, err);
    explicit_bzero(bytes, sizeof(bytes));
    return result;
}

/* Makes the request the record of the token with this text. */
static int make_record(cJSON *record, int64_t lifetime_us, const char *text, struct df_err *err)
{
    char digest[DF_SHA256_HEX];
    int64_t now_us = df_real_us();
    df_verbs verbs = df_grant_verbs(record);
    cJSON_DeleteItemFromObjectCaseSensitive(record, "preset");
    cJSON_DeleteItemFromObjectCaseSensitive(record, "expires");
    cJSON_DeleteItemFromObjectCaseSensitive(record, "name");
    if (df_json_set(record, "verbs", df_verbs_list(verbs), err) < 0 ||
        df_sha256_hex(text, strlen(text), digest, err) < 0)
        return -1;
    return df_json_put(record, err, DF_STR("digest", digest), DF_TIME("createdAt", now_us),
                       DF_TIME("expiresAt", now_us + lifetime_us));
}

/* What the entry has under this name, as its owner sees it. */
static int show_named(struct df_personal *p, const char *id, const char *name, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *entry = NULL;
    if (df_vault_tokens_get(p->vault, id, &entry, err) < 0)
        return -1;
    const cJSON *record = record_of(entry, TOKEN, name);
    return record ? show(entry, record, ret, err)
                  : df_fail(err, DF_ERR_RETRY, "token %s: somebody revoked it meanwhile", name);
}

static int drop_used(struct df_personal *p, const char *id, const cJSON *entry, const char *name,
                     struct df_err *err)
{
    DF_FREE char *key = df_strf(USED "%s", name);
    if (!key)
        return df_fail_oom(err);
    return record_of(entry, USED, name) ? df_vault_tokens_drop(p->vault, id, key, err) : 0;
}

struct making {
    const struct df_caller *owner;
    const char *name;
    cJSON *request;
    int64_t lifetime_us;
};

static int make(struct df_personal *p, const struct making *m, cJSON **ret, struct df_err *err)
{
    char id[DF_VAULT_TOKENS_ID], text[TEXT];
    DF_JSON cJSON *entry = NULL;
    DF_FREE char *key = df_strf(TOKEN "%s", m->name);
    if (!key)
        return df_fail_oom(err);
    if (id_of_caller(m->owner, id, err) < 0 || df_vault_tokens_get(p->vault, id, &entry, err) < 0 ||
        check_room(entry, m->name, err) < 0 || drop_used(p, id, entry, m->name, err) < 0 ||
        (!is_older(m->owner, entry) && put_owner(p, id, m->owner, err) < 0) ||
        make_text(p, id, text, err) < 0)
        return -1;
    int result = make_record(m->request, m->lifetime_us, text, err);
    if (result == 0)
        result = df_vault_tokens_put(p->vault, id, key, m->request, err);
    if (result == 0)
        result = show_named(p, id, m->name, ret, err);
    if (result == 0)
        result = df_json_add_str(*ret, "token", text, err);
    explicit_bzero(text, sizeof(text));
    return result;
}

int df_personal_create(struct df_personal *p, const struct df_caller *owner, cJSON *request,
                       cJSON **ret, struct df_err *err)
{
    struct making m = {.owner = owner, .request = request};
    DF_SECRET_JSON cJSON *made = NULL;
    if (df_token_check(request, &m.lifetime_us, err) < 0)
        return -1;
    DF_FREE char *name = strdup(df_json_str(request, "name"));
    if (!name)
        return df_fail_oom(err);
    m.name = name;
    (void)pthread_mutex_lock(&p->changes);
    int result = make(p, &m, &made, err);
    (void)pthread_mutex_unlock(&p->changes);
    if (result == 0)
        *ret = DF_TAKE(made);
    return result;
}

/* ---- list, revoke ---- */

/* Does something with the entry of this id, which exists. */
typedef int (*entry_fn)(struct df_personal *p, const char *id, const cJSON *entry, void *arg,
                        struct df_err *err);

static int with_entry(struct df_personal *p, const char *id, entry_fn fn, void *arg,
                      struct df_err *err)
{
    DF_JSON cJSON *entry = NULL;
    (void)pthread_mutex_lock(&p->changes);
    int result = df_vault_tokens_get(p->vault, id, &entry, err);
    if (result == 0)
        result = fn(p, id, entry, arg, err);
    (void)pthread_mutex_unlock(&p->changes);
    return result;
}

static int each_entry_of(struct df_personal *p, const struct df_personal_owner *owner, entry_fn fn,
                         void *arg, struct df_err *err)
{
    static const enum df_known_by all[] = {DF_KNOWN_BY_LOCAL, DF_KNOWN_BY_TOKEN,
                                           DF_KNOWN_BY_OPENID};
    for (size_t i = 0; i < DF_ARRAY_SIZE(all); i++) {
        char id[DF_VAULT_TOKENS_ID];
        const char *word = df_known_by_name(all[i]);
        if (owner->known_by && !df_streq(owner->known_by, word))
            continue;
        if (id_of(word, owner->name, id, err) < 0 || with_entry(p, id, fn, arg, err) < 0)
            return -1;
    }
    return 0;
}

static int add_shown(struct df_personal *p, const char *id, const cJSON *entry, void *arg,
                     struct df_err *err)
{
    const cJSON *record;
    (void)p;
    (void)id;
    cJSON_ArrayForEach (record, entry) {
        cJSON *shown = NULL;
        if (is_token(record) &&
            (show(entry, record, &shown, err) < 0 || df_json_append(arg, shown, err) < 0))
            return -1;
    }
    return 0;
}

int df_personal_list(struct df_personal *p, const struct df_personal_owner *owner, cJSON **ret,
                     struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || each_entry_of(p, owner, add_shown, list, err) < 0)
        return -1;
    *ret = DF_TAKE(list);
    return 0;
}

/* Which tokens go. */
struct going {
    const char *name;  /* NULL: any */
    int64_t before_us; /* those that have expired by then */
    size_t count;
};

static bool goes(const struct going *g, const cJSON *record)
{
    return (!g->name || df_streq(name_of(record), g->name)) &&
           time_at(record, "expiresAt") < g->before_us;
}

/* With the last token the whole entry goes, and with it what is known of its owner. */
static int drop(struct df_personal *p, const char *id, const cJSON *entry, void *arg,
                struct df_err *err)
{
    struct going *g = arg;
    const cJSON *record;
    size_t stay = 0;
    cJSON_ArrayForEach (record, entry) {
        stay += is_token(record) && !goes(g, record);
        if (!is_token(record) || !goes(g, record))
            continue;
        if (df_vault_tokens_drop(p->vault, id, record->string, err) < 0 ||
            drop_used(p, id, entry, name_of(record), err) < 0)
            return -1;
        g->count++;
    }
    return stay || !entry->child ? 0 : df_vault_tokens_drop(p->vault, id, NULL, err);
}

int df_personal_revoke(struct df_personal *p, const struct df_personal_owner *owner,
                       const char *name, struct df_err *err)
{
    struct going g = {.name = name, .before_us = INT64_MAX};
    if (each_entry_of(p, owner, drop, &g, err) < 0)
        return -1;
    return g.count ? 0
                   : df_fail(err, DF_ERR_NOT_FOUND, "%s has no personal token%s%s", owner->name,
                             name ? " " : "", name ? name : "");
}

int df_personal_sweep(struct df_personal *p, struct df_err *err)
{
    struct going g = {.before_us = df_real_us() - DF_PERSONAL_SHOWN_DAYS * DAY_US};
    DF_STRS struct df_strs ids = {0};
    if (df_vault_tokens_list(p->vault, &ids, err) < 0)
        return -1;
    for (size_t i = 0; i < ids.len; i++)
        if (with_entry(p, ids.items[i], drop, &g, err) < 0)
            return -1;
    return 0;
}
