/*
 * kube_diary.h - a watch that writes down what it is told. Include behind cmocka.h.
 */
#ifndef DF_TEST_KUBE_DIARY_H
#define DF_TEST_KUBE_DIARY_H

#include "common/kube/watch.h"
#include "tests/unit/kube_server.h"

struct diary {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct df_buf text; /* "begin", "+a5" (name, version), "-a7", "listed", "failed", in brackets */
    struct df_err last;
    unsigned failures;
    unsigned refuse; /* so many applies fail */
};

static inline void note(struct diary *d, const char *word, const cJSON *object)
{
    const char *name = df_kube_name(object), *version = df_kube_version(object);
    (void)pthread_mutex_lock(&d->lock);
    (void)df_buf_addf(&d->text, "%s%s%s ", word, name ? name : "", version ? version : "");
    (void)pthread_cond_broadcast(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
}

static inline int on_begin(void *arg, const char *version, struct df_err *err)
{
    (void)version, (void)err;
    note(arg, "begin", NULL);
    return 0;
}

static inline int on_apply(void *arg, cJSON **object, struct df_err *err)
{
    struct diary *d = arg;
    note(d, "+", *object);
    if (!d->refuse)
        return 0;
    d->refuse--;
    return df_fail_oom(err);
}

static inline void on_remove(void *arg, cJSON **object)
{
    note(arg, "-", *object);
}

static inline void on_listed(void *arg)
{
    note(arg, "listed", NULL);
}

static inline void on_failed(void *arg, const struct df_err *err)
{
    struct diary *d = arg;
    (void)pthread_mutex_lock(&d->lock);
    d->last = *err;
    d->failures++;
    (void)pthread_cond_broadcast(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
}

static inline void diary_open(struct diary *d)
{
    *d = (struct diary){.text = DF_BUF_INIT(DF_MIB)};
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->changed, NULL);
}

static inline void diary_close(struct diary *d)
{
    df_buf_free(&d->text);
    (void)pthread_cond_destroy(&d->changed);
    (void)pthread_mutex_destroy(&d->lock);
}

/* Waits until the word was written. */
static inline void await(struct diary *d, const char *word)
{
    (void)pthread_mutex_lock(&d->lock);
    while (!strstr(df_buf_str(&d->text), word))
        (void)pthread_cond_wait(&d->changed, &d->lock);
    (void)pthread_mutex_unlock(&d->lock);
}

static inline void await_failures(struct diary *d, unsigned n)
{
    (void)pthread_mutex_lock(&d->lock);
    while (d->failures < n)
        (void)pthread_cond_wait(&d->changed, &d->lock);
    (void)pthread_mutex_unlock(&d->lock);
}

static inline struct df_kube_watch_options options(struct diary *d)
{
    return (struct df_kube_watch_options){
        .resource = &df_kube_jobs,
        .name_space = "build",
        .to = {on_begin, on_apply, on_remove, on_listed, on_failed, d},
        .backoff_min_ms = 1,
        .backoff_max_ms = 4};
}

static inline struct df_kube_watch *start(struct df_kube *k, const struct df_kube_watch_options *o)
{
    struct df_kube_watch *w = NULL;
    struct df_err err = {0};
    if (df_kube_watch_start(k, o, &w, &err) < 0)
        fail_msg("%s", err.message);
    return w;
}

/* Watches, by these fields (NULL: JSON), until the word was written. */
static inline void watch_until(struct kube_server *s, struct diary *d,
                               const struct df_proto_field *fields, const char *word)
{
    DF_KUBE struct df_kube *k = kube_client(s);
    struct df_kube_watch_options o = options(d);
    o.fields = fields;
    struct df_kube_watch *w = start(k, &o);
    await(d, word);
    df_kube_watch_stop(w);
}

/* Waits for the first request that is counted so. */
static inline void await_requests(struct kube_server *s, const unsigned *counter)
{
    (void)pthread_mutex_lock(&s->lock);
    while (!*counter)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- what servers answer ---- */

#define OBJECT(name, version)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"build\",\"uid\":\"u-" name               \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"

/* Tells what happened since the version that is asked for. */
typedef void (*kube_teller)(const struct kube_request *r, struct kube_reply *a);

/* The first stream ends behind *arg bytes; the others are whole and stay open. */
static inline void cut_first_stream(struct kube_server *s, const struct kube_request *r,
                                    struct kube_reply *a, kube_teller tell)
{
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "", LIST("10", OBJECT("a", "5")));
        return;
    }
    tell(r, a);
    a->hold = true;
    if (s->watches == 1)
        a->cut = *(const size_t *)s->arg;
}

/* handle: that cuts a stream of what tell() tells. */
static inline void cut_at_every_byte(void (*handle)(struct kube_server *,
                                                    const struct kube_request *,
                                                    struct kube_reply *),
                                     kube_teller tell, const struct df_proto_field *fields)
{
    struct kube_reply whole = {.bytes = DF_BUF_INIT(DF_MIB)};
    tell(&(struct kube_request){.target = "?resourceVersion=10"}, &whole);
    size_t len = whole.bytes.len;
    df_buf_free(&whole.bytes);
    for (size_t cut = 0; cut < len; cut++) {
        struct kube_server s;
        struct diary d;
        kube_start(&s, handle, &cut);
        diary_open(&d);
        watch_until(&s, &d, fields, "+c22");
        assert_string_equal(df_buf_str(&d.text), "begin +a5 listed +b11 +a12 -b13 +\xc3\xa9"
                                                 "21 +c22 ");
        kube_stop(&s);
        assert_int_equal(s.lists, 1);
        assert_int_equal(s.watches, cut < len - 2 ? 2 : s.watches);
        diary_close(&d);
    }
}

#endif
