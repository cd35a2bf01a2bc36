/*
 * connections.c - a list of all connections; a table of what each share may have; and one thread,
 * reap(), that shuts overdue connections down. After a burst of connections the same thread returns
 * free memory to the system.
 */
#include "spawner/http/connections.h"

#include <netinet/in.h>
#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/metrics/metrics.h"

#define BURST 64        /* open at the same time: a burst, after which memory is trimmed */
#define REAP_MS 1000    /* how late an overdue connection is cut at most */
#define NEVER INT64_MAX /* no limit */

/* What one share may have in all, and one peer of it. All known peers together have at most
 * DF_LIMIT_HTTP_KNOWN; since no share has that many but the admins', some are left for each. */
static const struct {
    size_t all, each;
} shares[DF_SHARES] = {
    [DF_SHARE_CALLERS] = {DF_LIMIT_HTTP_CALLERS, DF_LIMIT_HTTP_CALLER},
    [DF_SHARE_STEPS] = {DF_LIMIT_HTTP_STEPS, DF_LIMIT_HTTP_STEP},
    [DF_SHARE_ADMINS] = {DF_LIMIT_HTTP_KNOWN, DF_LIMIT_HTTP_CALLER},
};

/* A network address that strangers come from. */
struct network {
    uint64_t address;
    size_t strangers; /* with the last of them it goes */
};

struct df_connection {
    struct df_connection *next, *prev; /* next is older */
    int fd;
    enum df_share share;
    char who[DF_LIMIT_CALLER + 1]; /* "" of a stranger */
    struct network *network;       /* of a stranger that is not cut; else NULL */
    struct df_intake intake;       /* its thread's, without the lock */
    bool follows;
    uint64_t body;    /* the number of the body that it sends as a stranger; 0: none */
    bool answers;     /* its thread works on that body, also if it is cut */
    bool cut;         /* it was shut down, and its thread is about to close it: it counts no more */
    int64_t until_ms; /* monotonic */
    void *owner;
};

struct df_connections {
    struct df_metric *cuts;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    struct df_connection *first;
    size_t count;
    size_t open, strangers; /* of these: not cut, and strangers among them */
    size_t peak;            /* since memory was last trimmed */
    uint64_t bodies;        /* of strangers, so far */
    bool stopping;
    pthread_t reaper;
};

/* ---- strangers; the caller holds the lock ---- */

/* NULL: out of memory. */
static struct network *find_network(const struct df_connections *c, uint64_t address)
{
    for (const struct df_connection *one = c->first; one; one = one->next)
        if (one->network && one->network->address == address)
            return one->network;
    struct network *fresh = calloc(1, sizeof(*fresh));
    if (fresh)
        fresh->address = address;
    return fresh;
}

static void join_strangers(struct df_connections *c, struct df_connection *one,
                           struct network *network)
{
    one->network = network;
    network->strangers++;
    c->strangers++;
}

static void leave_strangers(struct df_connections *c, struct df_connection *one)
{
    if (!one->network)
        return;
    if (--one->network->strangers == 0)
        free(one->network);
    one->network = NULL;
    c->strangers--;
}

/* The oldest of the network that has the most. */
static struct df_connection *choose_stranger(const struct df_connections *c)
{
    struct df_connection *chosen = NULL;
    for (struct df_connection *one = c->first; one; one = one->next) /* from young to old */
        if (one->network && (!chosen || one->network->strangers >= chosen->network->strangers))
            chosen = one;
    return chosen;
}

/* ---- cutting; the caller holds the lock, so that no descriptor is closed and reused meanwhile
 * ---- */

static void cut(struct df_connections *c, struct df_connection *one, const char *why)
{
    one->cut = true;
    c->open--;
    leave_strangers(c, one);
    (void)shutdown(one->fd, SHUT_RDWR);
    df_metric_add(c->cuts, why, 1);
}

static void cut_overdue(struct df_connections *c)
{
    int64_t now = df_mono_ms();
    for (struct df_connection *one = c->first; one; one = one->next)
        if (!one->cut && one->until_ms < now)
            cut(c, one, "time");
}

/* A connection is a stranger until it shows a token. So strangers may take every free place: one of
 * them is cut for a new connection, and a caller with a token never waits for them. */
static void make_room(struct df_connections *c)
{
    if (c->strangers && c->open >= DF_LIMIT_HTTP_OPEN)
        cut(c, choose_stranger(c), "room");
}

/* True once after a burst. The allocator keeps the freed buffers of a burst: 30 MiB after a
 * thousand connections. */
static bool is_burst_over(struct df_connections *c)
{
    bool over = c->peak >= BURST && c->count <= c->peak / 4;
    if (over)
        c->peak = c->count;
    return over;
}

/* The caller holds the lock. Without connections there is nothing to reap. */
static void pause_reaper(struct df_connections *c)
{
    int64_t at = df_mono_ms() + REAP_MS;
    struct timespec until = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
    if (c->count)
        (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    else
        (void)pthread_cond_wait(&c->changed, &c->lock);
}

static void *reap(void *arg)
{
    struct df_connections *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stopping) {
        cut_overdue(c);
        if (is_burst_over(c))
            df_memory_trim();
        pause_reaper(c);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- lifecycle ---- */

int df_connections_new(struct df_connections **ret, struct df_err *err)
{
    struct df_connections *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->cuts = df_metric_counter("dayfly_http_connections_cut_total",
                                "Connections that the service ended: for room, or out of time.",
                                "reason");
    (void)pthread_mutex_init(&c->lock, NULL);
    df_cond_init(&c->changed);
    int failed = pthread_create(&c->reaper, NULL, reap, c);
    if (failed) {
        free(c);
        return df_fail_errno(err, failed, "start a thread");
    }
    *ret = c;
    return 0;
}

void df_connections_free(struct df_connections *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->stopping = true;
    (void)pthread_cond_signal(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->reaper, NULL);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* An IPv4 address, also mapped into IPv6; of IPv6 the first 64 bits, which one site has to
 * itself. */
static uint64_t address_of(const struct sockaddr *peer)
{
    uint64_t address = 0;
    if (peer && peer->sa_family == AF_INET) {
        memcpy(&address, &((const struct sockaddr_in *)(const void *)peer)->sin_addr, 4);
    } else if (peer && peer->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(a))
            memcpy(&address, a->s6_addr + 12, 4);
        else
            memcpy(&address, a->s6_addr, 8);
    }
    return address;
}

static int64_t in_seconds(int64_t seconds)
{
    return seconds < 0 ? NEVER : df_mono_ms() + seconds * 1000;
}

static void enlist(struct df_connections *c, struct df_connection *one, struct network *network)
{
    join_strangers(c, one, network);
    one->next = c->first;
    if (c->first)
        c->first->prev = one;
    c->first = one;
    c->open++;
    if (c->count++ == 0)
        (void)pthread_cond_signal(&c->changed);
    c->peak = c->count > c->peak ? c->count : c->peak;
}

struct df_connection *df_connections_add(struct df_connections *c, int fd,
                                         const struct sockaddr *peer, void *owner)
{
    struct df_connection *one = calloc(1, sizeof(*one));
    if (!one)
        return NULL;
    one->fd = fd;
    one->owner = owner;
    one->until_ms = in_seconds(DF_LIMIT_HTTP_HEAD_SECONDS);
    (void)pthread_mutex_lock(&c->lock);
    make_room(c);
    struct network *network = find_network(c, address_of(peer));
    if (network)
        enlist(c, one, network);
    (void)pthread_mutex_unlock(&c->lock);
    if (!network)
        free(one);
    return network ? one : NULL;
}

void *df_connection_owner(const struct df_connection *one)
{
    return one ? one->owner : NULL;
}

struct df_intake *df_connection_intake(struct df_connection *one)
{
    return one ? &one->intake : NULL;
}

void df_connections_remove(struct df_connections *c, struct df_connection *one)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    if (one->prev)
        one->prev->next = one->next;
    else
        c->first = one->next;
    if (one->next)
        one->next->prev = one->prev;
    leave_strangers(c, one);
    c->open -= !one->cut;
    c->count--;
    (void)pthread_mutex_unlock(&c->lock);
    free(one);
}

/* ---- shares ---- */

struct use {
    size_t known, share, peer, streams;
};

/* What others than this connection use. The caller holds the lock. */
static struct use count_use(const struct df_connections *c, const struct df_connection *but,
                            enum df_share share, const char *who)
{
    struct use u = {0};
    for (const struct df_connection *one = c->first; one; one = one->next) {
        if (one == but || one->cut || one->share == DF_SHARE_STRANGERS)
            continue;
        bool same = one->share == share && strcmp(one->who, who) == 0;
        u.known++;
        u.share += one->share == share;
        u.peer += same;
        u.streams += same && one->follows;
    }
    return u;
}

static int fail_many(struct df_err *err, const char *who, const char *what, size_t limit)
{
    return df_fail_reason(err, DF_ERR_LIMIT, "TooManyRequests",
                          "%s: more than %zu %s at the same time: close some, or try again", who,
                          limit, what);
}

/* The caller holds the lock. */
static int check_room(const struct df_connections *c, const struct df_connection *one,
                      enum df_share share, const char *who, struct df_err *err)
{
    struct use u = count_use(c, one, share, who);
    if (u.peer >= shares[share].each)
        return fail_many(err, who, "connections", shares[share].each);
    if (u.share >= shares[share].all)
        return fail_many(err, "all clients of this kind", "connections", shares[share].all);
    if (u.known >= DF_LIMIT_HTTP_KNOWN)
        return fail_many(err, "all clients", "connections", DF_LIMIT_HTTP_KNOWN);
    return 0;
}

int df_connections_admit(struct df_connections *c, struct df_connection *one, enum df_share share,
                         const char *who, struct df_err *err)
{
    int result = 0;
    if (!one)
        return 0;
    (void)pthread_mutex_lock(&c->lock);
    if (one->share != share || strcmp(one->who, who) != 0)
        result = check_room(c, one, share, who, err);
    if (result == 0) {
        leave_strangers(c, one);
        one->share = share;
        (void)snprintf(one->who, sizeof(one->who), "%s", who);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

int df_connections_follow(struct df_connections *c, struct df_connection *one, struct df_err *err)
{
    int result = 0;
    if (!one)
        return 0;
    (void)pthread_mutex_lock(&c->lock);
    struct use u = count_use(c, one, one->share, one->who);
    if (u.streams >= DF_LIMIT_HTTP_FOLLOWERS)
        result = fail_many(err, one->who, "event streams", DF_LIMIT_HTTP_FOLLOWERS);
    else
        one->follows = true;
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

/* ---- bodies of strangers ---- */

/* How many are in memory, and in *ret_first the oldest that may be cut: NULL if there is none. The
 * caller holds the lock. */
static size_t count_bodies(const struct df_connections *c, struct df_connection **ret_first)
{
    size_t n = 0;
    *ret_first = NULL;
    for (struct df_connection *one = c->first; one; one = one->next) {
        if (!one->body || (one->cut && !one->answers))
            continue;
        n++;
        if (!one->answers && (!*ret_first || one->body < (*ret_first)->body))
            *ret_first = one;
    }
    return n;
}

int df_connections_receive(struct df_connections *c, struct df_connection *one, struct df_err *err)
{
    struct df_connection *first = NULL;
    int result = 0;
    if (!one)
        return 0;
    (void)pthread_mutex_lock(&c->lock);
    bool full = count_bodies(c, &first) >= DF_LIMIT_HTTP_FOREIGN;
    if (full && !first)
        result = fail_many(err, "clients without a token", "bodies", DF_LIMIT_HTTP_FOREIGN);
    else
        one->body = ++c->bodies;
    if (full && first)
        cut(c, first, "room");
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

void df_connections_answer(struct df_connections *c, struct df_connection *one, bool answers)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    one->answers = answers;
    (void)pthread_mutex_unlock(&c->lock);
}

/* ---- time ---- */

void df_connections_limit(struct df_connections *c, struct df_connection *one, int64_t seconds)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    one->until_ms = in_seconds(seconds);
    (void)pthread_mutex_unlock(&c->lock);
}

void df_connections_wait(struct df_connections *c, struct df_connection *one)
{
    if (!one)
        return;
    (void)pthread_mutex_lock(&c->lock);
    one->follows = false;
    one->body = 0;
    one->until_ms = in_seconds(one->share == DF_SHARE_STRANGERS ? DF_LIMIT_HTTP_HEAD_SECONDS
                                                                : DF_LIMIT_HTTP_IDLE_SECONDS);
    (void)pthread_mutex_unlock(&c->lock);
}

size_t df_connections_count(struct df_connections *c)
{
    (void)pthread_mutex_lock(&c->lock);
    size_t count = c->count;
    (void)pthread_mutex_unlock(&c->lock);
    return count;
}
