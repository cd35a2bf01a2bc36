/*
 * Filters and sorts the documents of `dayfly get`: first --state, then --sort-by. Read df_choose()
 * at the end first.
 */
#include "spawner/cli/choose.h"

#include <strings.h>

#include "common/base/clock.h"
#include "common/changes/changes.h"
#include "spawner/cli/text.h"

/* ---- --state ---- */

/* Where the word of n bytes is in "a|b|c" or "a,b,c", ignoring case; or NULL. */
static const char *listed(const char *words, char separator, const char *word, size_t n)
{
    const char ends[] = {separator, '\0'};
    for (const char *w = words; *w; w += *w == separator) {
        size_t len = strcspn(w, ends);
        if (len == n && strncasecmp(w, word, n) == 0)
            return w;
        w += len;
    }
    return NULL;
}

/* False if one of the members may be any word. words: all that they may be. */
static bool has_words(const struct df_state_member *m, struct df_buf *words)
{
    for (; m->path && m->words; m++)
        (void)df_buf_addf(words, "%s%s", words->len ? "|" : "", m->words);
    return !m->path;
}

static int check_states(const char *states, const struct df_shown *kind, struct df_err *err)
{
    DF_BUF struct df_buf words = DF_BUF_INIT(DF_KIB);
    if (!kind->states)
        return df_fail(err, DF_ERR_USER, "--state is for executors, runs and taskactions");
    bool any = !has_words(kind->states, &words);
    for (const char *s = states; *s && !any; s += *s == ',') {
        size_t n = strcspn(s, ",");
        if (!listed(df_buf_str(&words), '|', s, n))
            return df_fail(err, DF_ERR_USER, "--state \"%.*s\": is not a state of %s: %s", (int)n,
                           s, kind->plural, df_buf_str(&words));
        s += n;
    }
    return 0;
}

static bool has_state(const struct df_shown *kind, const cJSON *item, const char *states)
{
    for (const struct df_state_member *m = kind->states; m->path; m++) {
        const char *value = df_state_of(m, item);
        if (value && listed(states, ',', value, strlen(value)))
            return true;
    }
    return false;
}

bool df_choice_query(const struct df_choice *c, const struct df_shown *kind, const char **ret_name,
                     struct df_buf *ret)
{
    const struct df_state_member *m = c->states ? kind->states : NULL;
    for (; m && m->path; m++) {
        const char *s = m->query ? c->states : "", *word = NULL;
        df_buf_clear(ret);
        for (; *s; s += *s == ',') {
            size_t n = strcspn(s, ",");
            if (!(word = listed(m->words, '|', s, n)))
                break;
            (void)df_buf_addf(ret, "%s%.*s", ret->len ? "," : "", (int)n, word);
            s += n;
        }
        *ret_name = m->query;
        if (word && !*s)
            return true;
    }
    return false;
}

/* ---- --sort-by ---- */

/* Compares titles as typed: ignores case, and accepts - or _ for a blank. */
static bool same_title(const char *title, const char *typed)
{
    for (; *title && *typed; title++, typed++) {
        char c = *typed == '-' || *typed == '_' ? ' ' : *typed;
        if (strncasecmp(title, &c, 1) != 0)
            return false;
    }
    return !*title && !*typed;
}

static const struct df_column *column_of(const struct df_shown *kind, const char *typed)
{
    for (const struct df_column *c = kind->columns; c->title; c++)
        if (same_title(c->title, typed))
            return c;
    return NULL;
}

static bool is_path(const char *sort_by)
{
    return *sort_by == '.' || *sort_by == '{';
}

static int check_column(const char *sort_by, const struct df_shown *kind, struct df_err *err)
{
    DF_BUF struct df_buf known = DF_BUF_INIT(DF_KIB);
    if (is_path(sort_by) || column_of(kind, sort_by))
        return 0;
    for (const struct df_column *c = kind->columns; c->title; c++)
        (void)df_buf_addf(&known, "%s%s", known.len ? ", " : "", c->title);
    return df_fail(
        err, DF_ERR_USER,
        "--sort-by \"%s\": is neither a column of %s (%s) nor a path like .metadata.name", sort_by,
        kind->plural, df_buf_str(&known));
}

/* "{.metadata.name}" as "metadata.name". The caller frees. */
static char *plain_path(const char *sort_by)
{
    const char *from = sort_by + strspn(sort_by, "{.");
    return strndup(from, strcspn(from, "}"));
}

struct key {
    cJSON *item;
    size_t place; /* position in the list: equal items keep their order */
    const char *text;
    double number;
    bool is_number;
};

static double changes(const cJSON *summary)
{
    struct df_changes c;
    (void)df_changes_read(summary, &c, NULL);
    return (double)df_changes_total(&c);
}

static void set_key(struct key *k, const struct df_column *column, const char *path)
{
    const cJSON *value = df_json_at(k->item, path);
    k->text = cJSON_GetStringValue(value);
    k->is_number = cJSON_IsNumber(value);
    k->number = k->is_number ? value->valuedouble : 0;
    if (column && column->cell == DF_CELL_CHANGES && cJSON_IsObject(value)) {
        k->is_number = true;
        k->number = changes(value);
    } else if (column && column->cell == DF_CELL_SPAN) {
        k->number = (double)df_text_span(value, "startedAt", "finishedAt", df_real_us());
        k->is_number = k->number >= 0;
    }
}

/* Numbers sort first, then texts, then items without a value. */
static int rank(const struct key *k)
{
    return k->is_number ? 0 : k->text ? 1 : 2;
}

static int compare(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    int result = rank(a) - rank(b);
    if (!result && a->is_number)
        result = (a->number > b->number) - (a->number < b->number);
    else if (!result && a->text)
        result = strcmp(a->text, b->text);
    return result ? result : (a->place > b->place) - (a->place < b->place);
}

static int sort(const struct df_shown *kind, const char *sort_by, cJSON *items, struct df_err *err)
{
    size_t n = (size_t)cJSON_GetArraySize(items);
    const struct df_column *column = is_path(sort_by) ? NULL : column_of(kind, sort_by);
    DF_FREE struct key *keys = calloc(n + 1, sizeof(*keys));
    DF_FREE char *path = column ? strdup(column->path) : plain_path(sort_by);
    if (!keys || !path)
        return df_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        keys[i] = (struct key){.item = cJSON_DetachItemViaPointer(items, items->child), .place = i};
        set_key(&keys[i], column, path);
    }
    qsort(keys, n, sizeof(*keys), compare);
    for (size_t i = 0; i < n; i++)
        (void)cJSON_AddItemToArray(items, keys[i].item);
    return 0;
}

/* ---- all of it ---- */

int df_choice_check(const struct df_choice *c, const struct df_shown *kind, struct df_err *err)
{
    if (c->states && check_states(c->states, kind, err) < 0)
        return -1;
    if (c->name_space && !kind->states)
        return df_fail(err, DF_ERR_USER, "%s have no namespace: leave --namespace out",
                       kind->plural);
    return c->sort_by ? check_column(c->sort_by, kind, err) : 0;
}

static bool is_in(const cJSON *item, const char *name_space)
{
    const char *own = df_json_str(item, "metadata.namespace");
    return df_streq(own ? own : "default", name_space);
}

int df_choose(const struct df_choice *c, const struct df_shown *kind, cJSON *items,
              struct df_err *err)
{
    for (cJSON *item = items->child, *next; item; item = next) {
        next = item->next;
        if ((c->states && !has_state(kind, item, c->states)) ||
            (c->name_space && !is_in(item, c->name_space)))
            cJSON_Delete(cJSON_DetachItemViaPointer(items, item));
    }
    if (c->sort_by && sort(kind, c->sort_by, items, err) < 0)
        return -1;
    size_t count = (size_t)cJSON_GetArraySize(items);
    for (; c->limit && count > c->limit; count--)
        cJSON_DeleteItemFromArray(items, (int)count - 1);
    return 0;
}
