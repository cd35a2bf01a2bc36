/*
 * terrakube_storage - one call of common/terrakube/storage.h, with the settings and the job that an
 * executor finds in its environment. tests/integration/test_terrakube_storage.py runs it.
 *
 *   terrakube_storage put|get plan|json|raw|output|binary NAME PATH
 *   terrakube_storage place
 *   terrakube_storage get-plan PLACE PATH
 *
 * A failure is its class, its reason and its message on standard error, and 1.
 */
#include "common/http/http.h"
#include "common/terrakube/storage.h"

extern char **environ;

static int object_of(const char *word)
{
    static const char *const words[] = {"plan", "json", "raw", "output", "binary"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (df_streq(words[i], word))
            return (int)i;
    DF_BUG("no object is called %s", word);
}

static int run(struct df_terrakube_storage *s, const struct df_terrakube_payload *p, int argc,
               char **argv, struct df_err *err)
{
    DF_FREE char *place = NULL;
    if (argc == 4 && df_streq(argv[1], "get-plan"))
        return df_terrakube_storage_get_plan(s, p, argv[2], argv[3], err);
    if (argc == 5) {
        enum df_terrakube_object what = (enum df_terrakube_object)object_of(argv[2]);
        return df_streq(argv[1], "put")
                   ? df_terrakube_storage_put(s, p, what, argv[3], argv[4], err)
                   : df_terrakube_storage_get(s, p, what, argv[3], argv[4], err);
    }
    if (df_terrakube_storage_plan_place(s, p, &place, err) < 0)
        return -1;
    return printf("%s\n", place) < 0;
}

int main(int argc, char **argv)
{
    struct df_err err = {0};
    DF_STRS struct df_strs env = {0};
    struct df_terrakube_settings settings = {0};
    struct df_terrakube_payload payload = {0};
    struct df_terrakube_storage *storage = NULL;
    const char *job = getenv("EphemeralJobData");
    for (char **e = environ; *e; e++)
        (void)df_strs_add(&env, *e);
    int result = df_http_global_init(&err);
    if (result == 0)
        result = df_terrakube_settings_read(&env, &settings, &err);
    if (result == 0)
        result = df_terrakube_payload_decode(job ? job : "", &payload, &err);
    if (result == 0)
        result = df_terrakube_storage_new(&settings, 2000, NULL, &storage, &err);
    if (result == 0)
        result = run(storage, &payload, argc, argv, &err);
    if (result < 0)
        (void)fprintf(stderr, "%s %s %s\n", df_err_class_name(err.cls), err.reason, err.message);
    df_terrakube_storage_free(storage);
    df_terrakube_payload_free(&payload);
    df_terrakube_settings_free(&settings);
    return result < 0;
}
