/*
 * Counts and names the resources in the current state, for messages of requests that would make
 * dayfly forget or lose it.
 */
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/store/tofu_state/states.h"

/* Wipes the buffer, because states contain secrets. */
static void cleanup_secret_buf(struct df_buf *b)
{
    df_buf_wipe(b);
}

static void add_index(struct df_buf *address, const cJSON *instance)
{
    const cJSON *index = df_json_at(instance, "index_key");
    int64_t number = df_json_int(instance, "index_key", -1);
    if (cJSON_IsString(index))
        (void)df_buf_addf(address, "[\"%s\"]", index->valuestring);
    else if (number >= 0)
        (void)df_buf_addf(address, "[%lld]", (long long)number);
    else if (index && !cJSON_IsNull(index))
        (void)df_buf_adds(address, "[?]"); /* no tool writes such a one */
}

static void add_address(struct df_buf *list, const cJSON *resource, const cJSON *instance)
{
    const char *module = df_json_str(resource, "module");
    const char *type = df_json_str(resource, "type"), *name = df_json_str(resource, "name");
    DF_BUF struct df_buf address = DF_BUF_INIT(DF_STATE_LISTED_BYTES);
    (void)df_buf_addf(&address, "%s%s%s.%s", module ? module : "", module ? "." : "",
                      type ? type : "?", name ? name : "?");
    add_index(&address, instance);
    (void)df_buf_addf(list, "%s%s", list->len ? ", " : "",
                      address.failed ? "(a long address)" : df_buf_str(&address));
}

static void list_resources(const cJSON *state, struct df_state_holdings *h)
{
    DF_BUF struct df_buf list = DF_BUF_INIT(2 * DF_STATE_LISTED_BYTES);
    const cJSON *resource, *instance;
    int64_t listed = 0; /* named in the list; the others are only counted */
    cJSON_ArrayForEach (resource, df_json_at(state, "resources")) {
        if (!df_streq(df_json_str(resource, "mode"), "managed"))
            continue;
        cJSON_ArrayForEach (instance, df_json_at(resource, "instances")) {
            h->count++;
            if (listed == DF_STATE_LISTED || list.len > DF_STATE_LISTED_BYTES)
                continue;
            add_address(&list, resource, instance);
            listed++;
        }
    }
    if (h->count > listed)
        (void)df_buf_addf(&list, " and %lld more", (long long)(h->count - listed));
    (void)snprintf(h->list, sizeof(h->list), "%s", df_buf_str(&list));
}

static int read_state(int fd, struct df_state_holdings *h, struct df_err *err)
{
    static const char *const skipped[] = {
        "attributes", "attributes_flat", "sensitive_attributes", "private",        "identity",
        "outputs",    "dependencies",    "check_results",        "encrypted_data", NULL};
    DF_CLEANUP(cleanup_secret_buf) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_COMPARED);
    DF_SECRET_JSON cJSON *state = NULL;
    if (df_fs_read_fd(fd, &text, err) < 0 ||
        df_json_parse_without(df_buf_str(&text), text.len, skipped, &state, err) < 0)
        return -1;
    if (cJSON_IsArray(df_json_at(state, "resources")))
        list_resources(state, h);
    else
        h->count = -1;
    return 0;
}

int df_state_holdings(struct df_states *s, const char *executor_uid, struct df_state_holdings *ret,
                      struct df_err *err)
{
    DF_CLOSE int fd = -1;
    DF_JSON cJSON *meta = NULL;
    int64_t size = 0;
    struct df_err why = {0};
    struct df_state_holdings h = {0};
    if (df_state_open_current(s, executor_uid, &fd, &size, &meta, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    bool is_small = size <= (int64_t)DF_LIMIT_STATE_COMPARED;
    if (size && (!is_small || read_state(fd, &h, &why) < 0))
        h.count = -1;
    h.by_step = h.count < 0 && df_json_str(meta, "step");
    *ret = h;
    return 0;
}
