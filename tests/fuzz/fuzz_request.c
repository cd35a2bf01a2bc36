/*
 * What a stranger says before anyone knows who he is: request target, Authorization, Host, Origin,
 * and the routes that this finds. First byte: which of them the rest is.
 */
#include <stdint.h>

#include "common/base/parse.h"
#include "spawner/api/routes.h"
#include "spawner/http/target.h"
#include "spawner/identity/auth.h"
#include "spawner/identity/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_segment(const char *s)
{
    bool bad = strchr(s, '/') || strcmp(s, "..") == 0 || strcmp(s, ".") == 0;
    if (bad || !df_is_utf8(s, strlen(s)))
        DF_BUG("a segment that can mislead: %s", s);
}

static void try_target(const char *text)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "LOCK", "BREW"};
    struct df_target t;
    if (df_target_parse(text, &t, NULL) < 0)
        return;
    for (size_t i = 0; i < t.segment_count && i < DF_TARGET_SEGMENTS; i++)
        check_segment(t.segments[i]);
    for (size_t i = 0; i < DF_ARRAY_SIZE(methods); i++) {
        const struct df_route *route = NULL;
        const char *params[DF_ROUTE_PARAMS] = {0};
        char allow[64];
        if (df_route_find(&df_routes, methods[i], &t, &route, params, allow, NULL) == 0 &&
            params[0])
            check_segment(params[0]);
    }
    df_target_free(&t);
}

static void try_credentials(const char *text)
{
    struct df_credentials c;
    if (df_credentials_parse(text, &c, NULL) == 0 && !c.secret[0])
        DF_BUG("credentials without a secret");
    df_credentials_wipe(&c);
}

static void try_tokens(const char *text)
{
    struct df_token *list = NULL;
    size_t count = 0;
    if (df_tokens_parse(text, &list, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (list[i].role == DF_ROLE_NONE || !df_is_dns_label(list[i].name))
            DF_BUG("a token without role or name");
    free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = strndup((const char *)data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        try_target(text);
        break;
    case 1:
        try_credentials(text);
        break;
    case 2:
        (void)(df_host_is_loopback(text) && df_origin_is_host(text, text, size % 2));
        break;
    default:
        try_tokens(text);
    }
    free(text);
    return 0;
}
