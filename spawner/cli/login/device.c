/*
 * device.c - asks for a code, shows it, and asks for the tokens until they come. Read
 * df_device_sign_in() first.
 */
#include "spawner/cli/login/device.h"

#include <poll.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/cli/cli.h"

/* What RFC 8628 says where the provider says nothing, and what it adds at each slow_down. */
enum { INTERVAL_S = 5, INTERVAL_MAX_S = 60, EXPIRES_MAX_S = 3600 };

static const char usual[] = "openid profile email groups offline_access";

/* ---- what to ask for ---- */

/* Some providers refuse what they do not know. */
static int choose_scope(const struct df_provider *p, struct df_buf *out, struct df_err *err)
{
    const cJSON *listed = cJSON_GetObjectItemCaseSensitive(p->discovery, "scopes_supported");
    for (const char *word = usual; *word; word += strspn(word, " ")) {
        DF_FREE char *name = strndup(word, strcspn(word, " "));
        if (df_check_alloc(name, err) < 0)
            return -1;
        if (word == usual || !listed || df_json_has_string(listed, name))
            (void)df_buf_addf(out, "%s%s", out->len ? " " : "", name);
        word += strlen(name);
    }
    return df_buf_check(out, err);
}

static int ask_for_code(struct df_provider *p, const char *scope, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf chosen = DF_BUF_INIT(sizeof(usual));
    if (!scope && choose_scope(p, &chosen, err) < 0)
        return -1;
    const struct df_http_parameter form[] = {{"scope", scope ? scope : df_buf_str(&chosen)}, {0}};
    if (df_provider_ask(p, "device_authorization_endpoint", form, ret, err) == 0)
        return 0;
    if (df_streq(err->reason, "NoEndpoint"))
        return df_err_wrap(err, "no sign-in with a code (device authorization grant): take an ID "
                                "token from the provider by other means, and give it as "
                                "DAYFLY_TOKEN");
    if (df_streq(err->reason, "unauthorized_client") || df_streq(err->reason, "invalid_client"))
        return df_err_wrap(err,
                           "the client \"%.100s\" must be a public one that has the device "
                           "authorization grant",
                           df_provider_client(p));
    return -1;
}

/* ---- the code ---- */

struct code {
    const char *device, *user, *url, *whole_url; /* borrowed from the answer */
    int64_t interval_ms, expires_s;
};

static int64_t between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A terminal is to show it, and a person to open it. */
static bool is_page(const char *url)
{
    return df_url_is_safe(url) && !df_has_control(url);
}

static int read_code(const struct df_provider *p, const cJSON *answer, struct code *ret,
                     struct df_err *err)
{
    const struct code c = {
        .device = df_json_str(answer, "device_code"),
        .user = df_json_str(answer, "user_code"),
        .url = df_json_str(answer, "verification_uri"),
        .whole_url = df_json_str(answer, "verification_uri_complete"),
        .interval_ms =
            1000 * between(1, df_json_int(answer, "interval", INTERVAL_S), INTERVAL_MAX_S),
        .expires_s = between(1, df_json_int(answer, "expires_in", EXPIRES_MAX_S), EXPIRES_MAX_S)};
    if (!c.device || !c.user || !c.url || df_has_control(c.user) || !is_page(c.url) ||
        (c.whole_url && !is_page(c.whole_url)))
        return df_fail(err, DF_ERR_SYSTEM,
                       "the OpenID provider %.200s gives no code with an https:// page to enter "
                       "it, or control characters in them",
                       df_provider_issuer(p));
    *ret = c;
    return 0;
}

static void show(const struct code *c)
{
    char life[DF_SHORT_TEXT];
    df_cli_note("open %.300s", c->whole_url ? c->whole_url : c->url);
    if (c->whole_url)
        df_cli_note("or, in any browser, %.300s", c->url);
    df_cli_note("code: %.100s (for %s; Ctrl-C ends it)", c->user,
                df_text_duration(c->expires_s * 1000000, life));
}

/* ---- waiting ---- */

static int fail_waiting(struct df_err *err)
{
    if (df_streq(err->reason, "access_denied"))
        return df_err_wrap(err, "the sign-in was declined");
    return df_streq(err->reason, "expired_token") ? df_err_wrap(err, "the code has expired") : -1;
}

/* 1: not yet. What does not arrive is asked for again, more rarely. */
static int ask_once(struct df_provider *p, struct code *c, cJSON **ret, struct df_err *err)
{
    const struct df_http_parameter form[] = {
        {"grant_type", "urn:ietf:params:oauth:grant-type:device_code"},
        {"device_code", c->device},
        {0}};
    struct df_err why = {0};
    if (df_provider_ask(p, "token_endpoint", form, ret, &why) == 0)
        return 0;
    bool is_slow = df_streq(why.reason, "slow_down") || why.cls == DF_ERR_RETRY;
    if (is_slow)
        c->interval_ms += 1000 * INTERVAL_S;
    if (is_slow || df_streq(why.reason, "authorization_pending"))
        return 1;
    (void)df_err_pass(err, &why);
    return fail_waiting(err);
}

static int wait_for_tokens(struct df_provider *p, struct code *c, cJSON **ret, struct df_err *err)
{
    for (int64_t end = df_mono_ms() + c->expires_s * 1000; df_mono_ms() < end;) {
        (void)poll(NULL, 0, (int)c->interval_ms);
        int result = ask_once(p, c, ret, err);
        if (result <= 0)
            return result;
    }
    return df_fail_reason(err, DF_ERR_DENIED, "expired_token",
                          "the code has expired and nobody has signed in");
}

int df_device_sign_in(struct df_provider *p, const char *scope, cJSON *to, struct df_err *err)
{
    DF_SECRET_JSON cJSON *answer = NULL;
    DF_SECRET_JSON cJSON *tokens = NULL;
    struct code c = {0};
    if (ask_for_code(p, scope, &answer, err) < 0 || read_code(p, answer, &c, err) < 0)
        return -1;
    show(&c);
    return wait_for_tokens(p, &c, &tokens, err) < 0 ? -1 : df_provider_take(p, tokens, to, err);
}
