/* dayfly get --watch: polls the same list and prints only changes. */
#include <poll.h>

#include "spawner/cli/get.h"

#define WATCH_POLL_MS 500

struct watch {
    struct df_get *get;
    const struct df_shown *kind;
    size_t count; /* of the names, or 1 for a list */
    cJSON *seen;  /* {name: resourceVersion} */
    struct df_table_shape shape;
    bool shown;   /* the header was printed */
    bool stale;   /* there may be changes since the last service ended: read them once */
    bool waiting; /* it was printed that no service runs */
};

/* Removes the items that were seen with the same resourceVersion, and adds the others to seen. */
static int keep_changed(const struct df_shown *kind, cJSON *items, cJSON *seen, struct df_err *err)
{
    for (cJSON *item = items->child, *next; item; item = next) {
        next = item->next;
        const char *name = df_json_str(item, kind->id);
        const char *version = df_json_str(item, "metadata.resourceVersion");
        if (!name)
            continue;
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(seen, name);
        if (old && df_streq(old->valuestring, version ? version : name))
            cJSON_Delete(cJSON_DetachItemViaPointer(items, item));
        else if (df_json_set_str(seen, name, version ? version : name, err) < 0)
            return -1;
    }
    return 0;
}

static int print_documents(const struct df_cli *cli, const cJSON *items, struct df_err *err)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, items) {
        bool apart = df_streq(df_cli_output(cli), "yaml");
        if ((apart && df_cli_print("---\n", err) < 0) || df_cli_print_json(cli, item, err) < 0)
            return -1;
    }
    return 0;
}

static int look(struct df_cli *cli, struct watch *w, struct df_err *err)
{
    DF_JSON cJSON *items = NULL;
    if (df_get_fetch(cli, w->get, 0, w->count, &items, err) < 0 ||
        keep_changed(w->kind, items, w->seen, err) < 0)
        return -1;
    w->get->quiet = true;
    if (!items->child)
        return 0;
    if (df_get_wants_document(cli))
        return print_documents(cli, items, err);
    bool header = !w->shown;
    w->shown = true;
    return df_get_print(cli, w->kind, items, header, &w->shape, err);
}

/* No service runs: reads the data directory once with an embedded service that does not reconcile,
 * and releases the directory at once. */
static int look_alone(struct df_cli *cli, struct watch *w, struct df_err *err)
{
    w->stale = false;
    if (df_cli_connect_as(cli, DF_CONNECT_LOOK, err) < 0)
        return -1;
    int result = look(cli, w, err);
    df_cli_disconnect(cli);
    return result;
}

static void say_waiting(struct watch *w)
{
    if (!w->waiting)
        df_cli_note("no service runs: waiting for one");
    w->waiting = true;
}

/* One poll. If the service goes away, the next polls search for another one. */
static int round_of(struct df_cli *cli, struct watch *w, struct df_err *err)
{
    if (!cli->client && df_cli_connect_as(cli, DF_CONNECT_RUNNING, err) < 0) {
        if (err->cls != DF_ERR_RETRY)
            return -1;
        if (!w->stale) {
            say_waiting(w);
            return 0;
        }
        return look_alone(cli, w, err);
    }
    if (look(cli, w, err) == 0) {
        w->waiting = false;
        return 0;
    }
    bool lost = err->cls == DF_ERR_RETRY && df_connection_kind(cli->server) == DF_SERVICE_RUNNING;
    if (!lost)
        return -1;
    df_cli_disconnect(cli);
    w->stale = true;
    return 0;
}

int df_get_watch(struct df_cli *cli, struct df_get *get, struct df_err *err)
{
    struct watch w = {.get = get,
                      .kind = get->named[0].kind,
                      .count = df_get_group(get, 0),
                      .shape = df_cli_table_shape(cli),
                      .stale = true};
    if (w.count != get->count)
        return df_fail(err, DF_ERR_USER, "--watch is for one kind at a time");
    DF_JSON cJSON *seen = cJSON_CreateObject();
    if (!seen)
        return df_fail_oom(err);
    w.seen = seen;
    if (cli->server && df_connection_kind(cli->server) == DF_SERVICE_EMBEDDED)
        df_cli_disconnect(cli);
    w.shape.goes_on = true;
    df_shown_room(w.kind, df_streq(df_cli_output(cli), "wide"), &w.shape);
    while (round_of(cli, &w, err) == 0)
        (void)poll(NULL, 0, WATCH_POLL_MS);
    return -1;
}
