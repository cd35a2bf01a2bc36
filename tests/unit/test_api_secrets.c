/* Who may make, change, delete and use a secret, by REST: roles times actions. */
#include "tests/unit/api_world.h"

struct act {
    const char *token, *method, *path, *body;
    int status;
    const char *words; /* in the answer; or NULL */
};

#define PUT(token, path, ...)                                                                      \
    {                                                                                              \
        token, "PUT", "/v1/secrets/" path, "value", __VA_ARGS__                                    \
    }
#define ALLOW(token, path, ...)                                                                    \
    {                                                                                              \
        token, "PUT", "/v1/secrets/" path, "", __VA_ARGS__                                         \
    }
#define DELETE(token, path, ...)                                                                   \
    {                                                                                              \
        token, "DELETE", "/v1/secrets/" path, "", __VA_ARGS__                                      \
    }
#define MAKE(token, doc, ...)                                                                      \
    {                                                                                              \
        token, "POST", "/v1/executors", doc, __VA_ARGS__                                           \
    }
#define PATCH(token, path, doc, ...)                                                               \
    {                                                                                              \
        token, "PATCH", "/v1/executors/" path, doc, __VA_ARGS__                                    \
    }

/* An executor whose module gets the secret. */
#define NAMES(name, secret)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"source\":{\"url\":\"file:///srv/net\","     \
    "\"kind\":\"directory\"},\"secrets\":[{\"name\":\"" secret "\"}]}}"
#define PLAIN(name)                                                                                \
    "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"source\":{\"url\":\"file:///srv/net\","     \
    "\"kind\":\"directory\"}}}"

static struct reply do_act(const struct world *w, const struct act *a)
{
    const char *type = df_streq(a->method, "PATCH")  ? "application/merge-patch+json"
                       : df_streq(a->method, "POST") ? "application/json"
                                                     : "application/octet-stream";
    DF_FREE char *raw = df_strf("%s %s HTTP/1.1\r\n" HEAD "Content-Type: %s\r\n"
                                "Authorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s",
                                a->method, a->path, type, a->token, strlen(a->body), a->body);
    return ask(w, raw);
}

static void play(struct world *w, const struct act *acts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        REPLY struct reply r = do_act(w, &acts[i]);
        if (r.status != acts[i].status || (acts[i].words && !strstr(r.body, acts[i].words)))
            fail_msg("act %zu, %s %s %s: wanted %d %s, got: %s", i, acts[i].token, acts[i].method,
                     acts[i].path, acts[i].status, acts[i].words ? acts[i].words : "",
                     df_buf_str(&r.all));
    }
}

static void who_makes_a_secret_owns_it_and_only_an_admin_changes_that_of_another(void **state)
{
    static const struct act acts[] = {
        PUT("read", "db/password?executors=net", 403, "Forbidden"),
        PUT("write", "db/password", 400, "name the executors that may use it"),
        PUT("write", "db/password?executors=*", 403, "only an admin allows every executor"),
        PUT("write", "db/password?executors=net,a%20b", 400, "a b"),
        PUT("write", "db/password?executors=", 400, "is not the name of an executor"),
        PUT("write", "db/password?executors=net", 204, NULL),
        PUT("write", "db/password", 204, NULL),
        PUT("write", "db/user", 204, NULL),
        PUT("other", "db/password", 403, "belongs to write-name"),
        PUT("other", "db/new", 403, "belongs to write-name"),
        PUT("other", "db/password?executors=evil", 403, "belongs to write-name"),
        ALLOW("read", "db?executors=net", 403, "Forbidden"),
        ALLOW("other", "db?executors=evil", 403, "belongs to write-name"),
        ALLOW("write", "db?executors=*", 403, "only an admin allows every executor"),
        ALLOW("write", "db", 400, "name the executors"),
        ALLOW("write", "db?executors=net,test", 204, NULL),
        ALLOW("admin", "none?executors=net", 404, "there is no secret"),
        DELETE("read", "db", 403, "Forbidden"),
        DELETE("other", "db", 403, "belongs to write-name"),
        DELETE("other", "db/user", 403, "belongs to write-name"),
        {"read", "GET", "/v1/secrets", "", 200,
         "\"executors\":[\"net\",\"test\"],\"owner\":\"write-name\""},
        DELETE("write", "db/user", 204, NULL),
        ALLOW("admin", "db?executors=*", 204, NULL),
        {"read", "GET", "/v1/secrets", "", 200, "\"owner\":\"write-name\""},
        PUT("admin", "db/password", 204, NULL),
        DELETE("write", "db", 204, NULL),
        /* The next secret of this name begins anew. */
        PUT("admin", "db/password", 204, NULL),
        PUT("write", "db/password", 403, "belongs to admin-name"),
        {"read", "GET", "/v1/secrets", "", 200, "\"executors\":[\"*\"]"},
        {"read", "GET", "/v1/secrets/db/password", "", 405, NULL},
    };
    play(*state, acts, DF_ARRAY_SIZE(acts));
}

static void an_executor_names_no_secret_that_it_may_not_use(void **state)
{
    static const struct act acts[] = {
        PUT("admin", "db/password?executors=net", 204, NULL),
        PUT("admin", "open/key", 204, NULL),
        MAKE("write", NAMES("evil", "db"), 403,
             "executor evil may not use the secret \\\"db\\\", which is for net"),
        MAKE("admin", NAMES("evil", "db"), 403, "SecretNotAllowed"),
        MAKE("write", NAMES("evil", "open"), 201, NULL),
        PATCH("admin", "evil", "{\"spec\":{\"secrets\":[{\"name\":\"db\"}]}}", 403,
              "SecretNotAllowed"),
        PATCH("admin", "evil",
              "{\"spec\":{\"secrets\":null,\"integrations\":[{\"provider\":\"github\","
              "\"secretRef\":{\"name\":\"db\"}}]}}",
              403, "SecretNotAllowed"),
        PATCH("admin", "evil", "{\"spec\":{\"source\":{\"secretRef\":{\"name\":\"db\"}}}}", 403,
              "SecretNotAllowed"),
        /* A secret that does not exist yet is found missing at the step. */
        PATCH("admin", "evil", "{\"spec\":{\"secrets\":[{\"name\":\"later\"}]}}", 200, NULL),
        ALLOW("admin", "db?executors=net,evil", 204, NULL),
        PATCH("admin", "evil", "{\"spec\":{\"secrets\":[{\"name\":\"db\"}]}}", 200, NULL),
    };
    play(*state, acts, DF_ARRAY_SIZE(acts));
}

static void only_an_admin_or_the_owner_makes_the_executor_that_a_secret_is_for(void **state)
{
    static const struct act acts[] = {
        PUT("admin", "db/password?executors=net", 204, NULL),
        PUT("write", "mine/key?executors=own-net", 204, NULL),
        /* Its name would open the secret, whether it names it now or later. */
        MAKE("write", PLAIN("net"), 403,
             "of admin-name is for the executor net: only its owner or an admin makes this "
             "executor, or takes it out of the list"),
        MAKE("write", NAMES("net", "db"), 403, "SecretNotAllowed"),
        MAKE("admin", NAMES("net", "db"), 201, NULL),
        MAKE("other", NAMES("own-net", "mine"), 403, "SecretNotAllowed"),
        MAKE("write", NAMES("own-net", "mine"), 201, NULL),
        /* Others run it; to change what it runs is an admin's right. */
        PATCH("write", "net", "{\"spec\":{\"source\":{\"url\":\"file:///srv/evil\"}}}", 403, NULL),
        {"other", "POST", "/v1/executors/net/runs", "{\"action\":\"provision\"}", 201, NULL},
    };
    play(*state, acts, DF_ARRAY_SIZE(acts));
}

static void a_secret_in_use_is_changed_by_force_alone_and_its_users_are_named(void **state)
{
    static const struct act acts[] = {
        PUT("write", "db/password?executors=net", 204, NULL),
        MAKE("write", NAMES("net", "db"), 201, NULL),
        PUT("write", "db/password", 409, "in use by executor net"),
        PUT("admin", "db/password", 409, "SecretInUse"),
        PUT("write", "db/password?force=true", 204, NULL),
        PUT("write", "db/user", 204, NULL), /* a new key replaces nothing */
        ALLOW("write", "db?executors=net,test", 204, NULL),
        ALLOW("write", "db?executors=test", 409, "in use by executor net"),
        DELETE("write", "db/user", 409, "in use by executor net"),
        PUT("write", "db/spare", 204, NULL),
        PATCH("admin", "net",
              "{\"spec\":{\"secrets\":[{\"name\":\"db\",\"keys\":[\"password\",\"user\"]}]}}", 200,
              NULL),
        DELETE("write", "db/spare", 204, NULL), /* the executor names its keys */
        DELETE("write", "db/user", 409, "in use by executor net"),
        DELETE("admin", "db", 409, "in use by executor net"),
        {"admin", "POST", "/v1/executors/net/runs", "{\"action\":\"provision\"}", 201, NULL},
        DELETE("admin", "db", 409, "in use by executor net, run net-1"),
        DELETE("other", "db?force=true", 403, "belongs to write-name"),
        DELETE("write", "db?force=true", 204, NULL),
    };
    play(*state, acts, DF_ARRAY_SIZE(acts));
}

/* ---- outputs ---- */

#define VALUE "hunter2-hunter2"
#define STATE                                                                                      \
    "{\"version\":4,\"terraform_version\":\"1.12.6\",\"serial\":1,"                                \
    "\"lineage\":\"6fb37ea5-6df5-d6d0-e50f-9ce0e52f1f4a\",\"outputs\":{"                           \
    "\"plain\":{\"value\":\"at " VALUE "!\",\"type\":\"string\"},"                                 \
    "\"base64\":{\"value\":\"aHVudGVyMi1odW50ZXIy\",\"type\":\"string\"},"                         \
    "\"pin\":{\"value\":4815162342,\"type\":\"number\"},"                                          \
    "\"map\":{\"value\":{\"" VALUE "\":1,\"x-" VALUE "\":[\"" VALUE "\"]},"                        \
    "\"type\":[\"object\",{\"" VALUE "\":\"number\",\"x-" VALUE "\":[\"tuple\",[\"string\"]]}]},"  \
    "\"closed\":{\"sensitive\":true,\"value\":{\"" VALUE "\":1},"                                  \
    "\"type\":[\"object\",{\"" VALUE "\":\"number\"}]},"                                           \
    "\"region\":{\"value\":\"eu-west-1\",\"type\":\"string\"}},\"resources\":[]}"

static void no_secret_of_an_executor_is_in_outputs_but_an_admins(void **state)
{
    static const char *const hidden[] = {VALUE, "aHVudGVyMi", "4815162342"};
    struct world *w = *state;
    static const struct act acts[] = {
        {"admin", "PUT", "/v1/secrets/db/password", VALUE, 204, NULL},
        {"admin", "PUT", "/v1/secrets/db/pin", "4815162342", 204, NULL},
        MAKE("admin", NAMES("net", "db"), 201, NULL),
        {"admin", "POST", "/v1/executors/net/state", STATE, 200, NULL},
        {"admin", "GET", "/v1/executors/net/outputs", "", 200, "at " VALUE "!"},
        {"read", "GET", "/v1/executors/net/outputs", "", 200, "\"value\":\"at ***!\""},
        {"read", "GET", "/v1/executors/net/outputs", "", 200, "\"value\":\"eu-west-1\""},
        {"read", "GET", "/v1/executors/net/outputs", "", 200, "{\"***\":1,\"x-*** 2\":[\"***\"]}"},
    };
    play(w, acts, DF_ARRAY_SIZE(acts));
    static const char *const tokens[] = {"read", "write"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(tokens); i++) {
        const struct act look = {tokens[i], "GET", "/v1/executors/net/outputs", "", 200, NULL};
        REPLY struct reply r = do_act(w, &look);
        for (size_t j = 0; j < DF_ARRAY_SIZE(hidden); j++)
            if (strstr(df_buf_str(&r.all), hidden[j]))
                fail_msg("%s sees %s: %s", tokens[i], hidden[j], r.body);
    }
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        GUARDED(who_makes_a_secret_owns_it_and_only_an_admin_changes_that_of_another),
        GUARDED(an_executor_names_no_secret_that_it_may_not_use),
        GUARDED(only_an_admin_or_the_owner_makes_the_executor_that_a_secret_is_for),
        GUARDED(no_secret_of_an_executor_is_in_outputs_but_an_admins),
        GUARDED(a_secret_in_use_is_changed_by_force_alone_and_its_users_are_named),
    };
    return cmocka_run_group_tests_name("secrets by REST", tests, NULL, NULL);
}
