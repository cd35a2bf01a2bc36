#include "spawner/store/store.h"

#define PAGE 1000

/* *cursor: where the page begins (NULL: the first one); becomes the next page's, or NULL. */
static int visit_page(struct df_store *s, enum df_kind kind, const char *label, char **cursor,
                      df_store_visit visit, void *arg, struct df_err *err)
{
    const struct df_store_list_options o = {.label = label, .cursor = *cursor, .limit = PAGE};
    DF_JSON cJSON *list = NULL;
    char *next = NULL;
    if (df_store_list(s, kind, &o, &list, &next, err) < 0)
        return -1;
    free(*cursor);
    *cursor = next;
    const cJSON *doc;
    cJSON_ArrayForEach (doc, list) {
        if (visit(doc, arg, err) < 0)
            return -1;
    }
    return 0;
}

int df_store_each(struct df_store *s, enum df_kind kind, const char *label, df_store_visit visit,
                  void *arg, struct df_err *err)
{
    DF_FREE char *cursor = NULL;
    do {
        if (visit_page(s, kind, label, &cursor, visit, arg, err) < 0)
            return -1;
    } while (cursor);
    return 0;
}
