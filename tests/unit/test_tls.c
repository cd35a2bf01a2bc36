/* Certificates of our own, and the pair that the server shows while its files change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/crypto/certificate.h"
#include "common/crypto/chain.h"
#include "spawner/http/tls.h"
#include "tests/unit/scratch.h"

#define DAY_US ((int64_t)24 * 3600 * 1000000)

struct pem {
    struct df_buf key, cert;
};

static void free_pem(struct pem *p)
{
    df_buf_wipe(&p->key);
    df_buf_free(&p->cert);
}
#define PEM DF_CLEANUP(free_pem) struct pem

static struct pem new_pem(void)
{
    return (struct pem){DF_BUF_INIT(DF_LIMIT_CA), DF_BUF_INIT(DF_LIMIT_CA)};
}

static struct pem authority(const char *name)
{
    struct pem p = new_pem();
    assert_int_equal(df_certificate_authority(name, &p.key, &p.cert, NULL), 0);
    return p;
}

static struct pem issue(const struct pem *by, const char *const *names)
{
    struct pem p = new_pem();
    DF_STRS struct df_strs list = {0};
    struct df_err err = {0};
    for (; *names; names++)
        (void)df_strs_add(&list, *names);
    if (df_certificate_issue(df_buf_str(&by->key), df_buf_str(&by->cert), &list, &p.key, &p.cert,
                             &err) < 0)
        fail_msg("%s", err.message);
    return p;
}

static bool fits(const struct pem *cert, const struct pem *by, const char *name, int64_t in_us)
{
    DF_STRS struct df_strs list = {0};
    (void)df_strs_add(&list, name);
    return df_certificate_fits(df_buf_str(&cert->cert), df_buf_str(&by->cert), &list,
                               df_real_us() + in_us);
}

static const char *const some_names[] = {"dayfly.infra.svc", "10.89.0.1", "::1", NULL};

static void clients_take_a_certificate_for_its_name_its_time_and_its_signer(void **state)
{
    (void)state;
    PEM ca = authority("one"), other = authority("other");
    PEM cert = issue(&ca, some_names);
    int64_t now_us = df_real_us(), until_us = 0;
    const struct {
        const char *authority, *name;
        int64_t at_us;
        const char *refused; /* NULL: taken */
    } cases[] = {
        {df_buf_str(&ca.cert), "dayfly.infra.svc", now_us, NULL},
        {df_buf_str(&ca.cert), "10.89.0.1", now_us, NULL},
        {NULL, "dayfly.infra.svc", now_us, NULL}, /* the signer is not looked at */
        {df_buf_str(&ca.cert), "dayfly.other.svc", now_us, "not for the name dayfly.other.svc"},
        {df_buf_str(&ca.cert), "10.89.0.2", now_us, "not for the name 10.89.0.2"},
        {NULL, "dayfly.other.svc", now_us, "not for the name"},
        {df_buf_str(&ca.cert), "dayfly.infra.svc", now_us + 366 * DAY_US, "expired"},
        {df_buf_str(&ca.cert), "dayfly.infra.svc", now_us - DAY_US, "not yet valid"},
        {df_buf_str(&other.cert), "dayfly.infra.svc", now_us, "issuer"},
        {"no PEM", "dayfly.infra.svc", now_us, "the authority: no PEM certificate"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        int result = df_chain_check(df_buf_str(&cert.cert), cases[i].authority, cases[i].name,
                                    cases[i].at_us, &until_us, &err);
        if (cases[i].refused ? !strstr(err.message, cases[i].refused) : result < 0)
            fail_msg("case %zu: %s", i, err.message);
    }
    assert_true(until_us > now_us + 364 * DAY_US && until_us < now_us + 366 * DAY_US);
}

static void a_certificate_is_for_its_names_and_its_time_alone(void **state)
{
    (void)state;
    PEM ca = authority("one"), other = authority("one");
    PEM cert = issue(&ca, some_names);
    assert_true(fits(&cert, &ca, "dayfly.infra.svc", 0));
    assert_true(fits(&cert, &ca, "10.89.0.1", 0));
    assert_true(fits(&cert, &ca, "0:0::1", 0));
    assert_false(fits(&cert, &ca, "dayfly", 0)); /* the CN is no name of a host */
    assert_false(fits(&cert, &ca, "infra.svc", 0));
    assert_false(fits(&cert, &ca, "10.89.0.2", 0));
    assert_true(fits(&cert, &ca, "dayfly.infra.svc", 364 * DAY_US));
    assert_false(fits(&cert, &ca, "dayfly.infra.svc", 366 * DAY_US));
    assert_false(fits(&cert, &other, "dayfly.infra.svc", 0));
}

static void a_name_with_a_comma_stays_one_name(void **state)
{
    (void)state;
    PEM ca = authority("one");
    static const char *const names[] = {"a,DNS:evil.example", NULL};
    PEM cert = issue(&ca, names);
    assert_false(fits(&cert, &ca, "evil.example", 0));
}

static void a_key_of_another_certificate_is_noticed(void **state)
{
    (void)state;
    PEM ca = authority("one");
    PEM a = issue(&ca, some_names), b = issue(&ca, some_names);
    struct df_err err = {0};
    assert_int_equal(df_certificate_check_pair(df_buf_str(&a.cert), df_buf_str(&a.key), &err), 0);
    assert_int_equal(df_certificate_check_pair(df_buf_str(&a.cert), df_buf_str(&b.key), &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(df_certificate_check_pair("x", df_buf_str(&b.key), &err), -1);
    assert_int_equal(df_certificate_check_pair(df_buf_str(&a.cert), "", &err), -1);
    assert_null(strstr(err.message, "PRIVATE"));
}

static void a_damaged_authority_issues_nothing(void **state)
{
    (void)state;
    PEM ca = authority("one"), other = authority("two"), out = new_pem();
    DF_STRS struct df_strs list = {0};
    struct df_err err = {0};
    (void)df_strs_add(&list, "x");
    assert_int_equal(df_certificate_issue(df_buf_str(&other.key), df_buf_str(&ca.cert), &list,
                                          &out.key, &out.cert, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(out.cert.len, 0);
}

/* ---- the server's pair ---- */

struct place {
    char *dir, *cert, *key, *ca, *published;
    struct df_config config;
};

static struct place place_in(char *dir)
{
    struct place p = {.dir = dir};
    p.cert = df_fs_join(dir, "cert.pem");
    p.key = df_fs_join(dir, "key.pem");
    p.ca = df_fs_join(dir, "their-ca.pem");
    p.published = df_fs_join(dir, "ca.pem");
    p.config.data_directory = dir;
    return p;
}

static void free_place(struct place *p)
{
    free(p->cert);
    free(p->key);
    free(p->ca);
    free(p->published);
    df_strs_free(&p->config.tls_names);
}

static void put(const char *path, const struct df_buf *b)
{
    assert_int_equal(df_fs_replace(path, df_buf_str(b), b->len, 0600, NULL), 0);
}

static struct df_tls *open_tls(const struct place *p)
{
    struct df_tls *t = NULL;
    struct df_err err = {0};
    if (df_tls_open(&p->config, NULL, "https://10.89.0.1:8030", &t, &err) < 0)
        fail_msg("%s", err.message);
    return t;
}

/* The first certificate that is shown, as its DER in a buffer of the caller. */
static void shown(struct df_tls *t, struct df_buf *to)
{
    gnutls_pcert_st *chain = NULL;
    unsigned count = 0;
    gnutls_privkey_t key = NULL;
    struct df_err err = {0};
    if (df_tls_pair(t, &chain, &count, &key, &err) < 0)
        fail_msg("%s", err.message);
    df_buf_clear(to);
    assert_int_equal(df_buf_add(to, chain[0].cert.data, chain[0].cert.size), 0);
    for (unsigned i = 0; i < count; i++)
        gnutls_pcert_deinit(&chain[i]);
    gnutls_free(chain);
    gnutls_privkey_deinit(key);
}

static bool same(const struct df_buf *a, const struct df_buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static void a_changed_pair_is_shown_once_it_is_whole(void **state)
{
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    PEM ca = authority("theirs");
    PEM a = issue(&ca, some_names), b = issue(&ca, some_names);
    DF_BUF struct df_buf first = DF_BUF_INIT(DF_LIMIT_CA);
    DF_BUF struct df_buf now = DF_BUF_INIT(DF_LIMIT_CA);
    struct df_err err = {0};
    put(p.cert, &a.cert);
    put(p.key, &a.key);
    p.config.tls_cert_file = p.cert;
    p.config.tls_key_file = p.key;
    struct df_tls *t = open_tls(&p);
    shown(t, &first);
    put(p.cert, &b.cert);
    shown(t, &now);
    assert_true(same(&first, &now));
    assert_int_equal(df_tls_check(t, &err), -1);
    assert_non_null(strstr(err.message, p.key));
    put(p.key, &b.key);
    shown(t, &now);
    assert_false(same(&first, &now));
    assert_int_equal(df_tls_check(t, &err), 0);
    assert_int_equal(unlink(p.key), 0);
    shown(t, &now); /* still there */
    assert_int_equal(df_tls_check(t, &err), -1);
    df_tls_close(t);
}

static void a_server_does_not_start_with_a_pair_that_is_none(void **state)
{
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    PEM ca = authority("theirs");
    PEM a = issue(&ca, some_names), b = issue(&ca, some_names);
    struct df_tls *t = NULL;
    struct df_err err = {0};
    p.config.tls_cert_file = p.cert;
    p.config.tls_key_file = p.key;
    assert_int_equal(df_tls_open(&p.config, NULL, "https://x", &t, &err), -1);
    put(p.cert, &a.cert);
    put(p.key, &b.key);
    assert_int_equal(df_tls_open(&p.config, NULL, "https://x", &t, &err), -1);
    assert_non_null(strstr(err.message, "the key does not belong to"));
}

static void what_clients_trust_is_published_and_taken_back(void **state)
{
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    PEM ca = authority("theirs");
    PEM a = issue(&ca, some_names);
    DF_BUF struct df_buf published = DF_BUF_INIT(DF_LIMIT_CA);
    put(p.cert, &a.cert);
    put(p.key, &a.key);
    put(p.ca, &ca.cert);
    p.config.tls_cert_file = p.cert;
    p.config.tls_key_file = p.key;
    p.config.tls_ca_file = p.ca;
    struct df_tls *t = open_tls(&p);
    assert_string_equal(df_tls_ca_file(t), p.published);
    assert_int_equal(df_fs_read(p.published, &published, NULL), 0);
    assert_true(same(&published, &ca.cert));
    df_tls_close(t);
    p.config.tls_ca_file = NULL;
    t = open_tls(&p);
    assert_null(df_tls_ca_file(t));
    assert_false(df_fs_exists(p.published));
    df_tls_close(t);
}

static void our_own_certificate_is_kept_until_the_names_change(void **state)
{
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    DF_BUF struct df_buf first = DF_BUF_INIT(DF_LIMIT_CA);
    DF_BUF struct df_buf ca = DF_BUF_INIT(DF_LIMIT_CA);
    DF_BUF struct df_buf now = DF_BUF_INIT(DF_LIMIT_CA);
    DF_BUF struct df_buf ca_now = DF_BUF_INIT(DF_LIMIT_CA);
    (void)df_strs_add(&p.config.tls_names, "dayfly.infra.svc");
    struct df_tls *t = open_tls(&p);
    shown(t, &first);
    assert_int_equal(df_fs_read(p.published, &ca, NULL), 0);
    df_tls_close(t);
    t = open_tls(&p);
    shown(t, &now);
    assert_true(same(&first, &now));
    df_tls_close(t);
    (void)df_strs_add(&p.config.tls_names, "another.name");
    t = open_tls(&p);
    shown(t, &now);
    assert_false(same(&first, &now));
    assert_int_equal(df_fs_read(p.published, &ca_now, NULL), 0);
    assert_true(same(&ca, &ca_now)); /* who trusted us goes on trusting us */
    df_tls_close(t);
}

static int64_t offset_us;
static int64_t shifted_real(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + offset_us;
}
static int64_t shifted_mono(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 + offset_us;
}
static int zeros(void *bytes, size_t n)
{
    memset(bytes, 0, n);
    return 0;
}

static void our_own_certificate_is_made_anew_a_month_before_its_end(void **state)
{
    static const struct df_clock shifted = {shifted_mono, shifted_real, zeros};
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    DF_BUF struct df_buf first = DF_BUF_INIT(DF_LIMIT_CA), now = DF_BUF_INIT(DF_LIMIT_CA);
    (void)df_strs_add(&p.config.tls_names, "dayfly.infra.svc");
    struct df_tls *t = open_tls(&p);
    shown(t, &first);
    df_clock_install(&shifted);
    offset_us = 330 * DAY_US;
    shown(t, &now);
    assert_true(same(&first, &now));
    offset_us = 336 * DAY_US;
    shown(t, &now);
    assert_false(same(&first, &now));
    df_clock_install(NULL);
    df_tls_close(t);
}

static void without_keys_there_is_no_tls(void **state)
{
    DF_CLEANUP(free_place) struct place p = place_in(*state);
    assert_null(open_tls(&p));
    assert_null(df_tls_ca_file(NULL));
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_take_a_certificate_for_its_name_its_time_and_its_signer),
        cmocka_unit_test(a_certificate_is_for_its_names_and_its_time_alone),
        cmocka_unit_test(a_name_with_a_comma_stays_one_name),
        cmocka_unit_test(a_key_of_another_certificate_is_noticed),
        cmocka_unit_test(a_damaged_authority_issues_nothing),
        scratch_test(a_changed_pair_is_shown_once_it_is_whole),
        scratch_test(a_server_does_not_start_with_a_pair_that_is_none),
        scratch_test(what_clients_trust_is_published_and_taken_back),
        scratch_test(our_own_certificate_is_kept_until_the_names_change),
        scratch_test(our_own_certificate_is_made_anew_a_month_before_its_end),
        scratch_test(without_keys_there_is_no_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
