/*
 * Completion: parses the typed words (read_words()), then offers words, options, values or names
 * (offer_all()). It prints no errors and starts no service. Read df_complete() at the end first.
 */
#include "spawner/cli/complete.h"

#include <ctype.h>
#include <signal.h>

#include "spawner/cli/kinds.h"
#include "spawner/cli/lookup.h"

#define RETRY_S 2 /* for a service that does not answer */

enum rest { REST_NONE, REST_FILES, REST_DIRS };

struct completion {
    struct df_cli *cli;
    char **words; /* the last one is being typed */
    size_t count;
    const char *typed;  /* of that word: the part that candidates begin with */
    const char *prefix; /* "--output=": printed before each candidate; or "" */
    size_t prefix_len;
    const struct df_command *command;
    char *group;         /* "state", while the second word is missing */
    char *positional[8]; /* arguments of the command that are no options */
    size_t positionals;
    const struct df_option *wants_value; /* the previous word is this option */
    bool options_ended;                  /* after "--" */
    enum rest rest;
};

/* ---- offering ---- */

static void print_line(const char *text)
{
    struct df_err ignored;
    if (df_cli_print(text, &ignored) < 0)
        _exit(0);
}

/* Prints a candidate if it begins with the typed text. before: a typed part of it, or "". */
static void offer(const struct completion *c, const char *before, const char *word,
                  const char *remark)
{
    DF_FREE char *whole = df_strf("%s%s", before, word);
    if (!whole || !df_starts_with(whole, c->typed))
        return;
    DF_FREE char *line = df_strf("%.*s%s%s%s\n", (int)c->prefix_len, c->prefix, whole,
                                 df_str_empty(remark) ? "" : "\t", remark ? remark : "");
    if (line)
        print_line(line);
}

/* Offers each of "a|b|c". */
static void offer_words(const struct completion *c, const char *before, const char *words)
{
    for (const char *w = words; *w; w += *w == '|') {
        size_t n = strcspn(w, "|");
        DF_FREE char *word = strndup(w, n);
        if (word && n)
            offer(c, before, word, NULL);
        w += n;
    }
}

/* ---- names, from the service ---- */

static void give_up(int sig)
{
    (void)sig;
    _exit(0);
}

static bool connect_quietly(const struct completion *c)
{
    struct df_err ignored;
    if (c->cli->client)
        return true;
    (void)signal(SIGALRM, give_up);
    (void)alarm(RETRY_S);
    return df_http_global_init(&ignored) == 0 &&
           df_cli_connect_as(c->cli, DF_CONNECT_RUNNING, &ignored) == 0;
}

static void offer_names(const struct completion *c, const struct df_shown *kind, const char *before)
{
    struct df_err ignored;
    DF_JSON cJSON *page = NULL;
    bool is_object = kind->states;
    if (!df_starts_with(c->typed, before) && !df_starts_with(before, c->typed))
        return;
    const char *typed = strlen(c->typed) > strlen(before) ? c->typed + strlen(before) : "";
    DF_FREE char *escaped = df_url_escape(typed);
    DF_FREE char *path =
        is_object ? df_strf("/v1/%s?limit=1000&namePrefix=%s", kind->plural, escaped ? escaped : "")
                  : df_strf("/v1/%s", kind->plural);
    if (!path || !connect_quietly(c) ||
        df_client_call(c->cli->client, "GET", path, NULL, NULL, &page, &ignored) < 0)
        return;
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, df_json_at(page, "items")) {
        const char *name = df_json_str(item, kind->id);
        const char *state = kind->states ? df_json_str(item, kind->states[0].path) : NULL;
        if (name)
            offer(c, before, name, state);
    }
}

static const struct df_shown *kind_named(const char *word)
{
    const struct df_shown *kind = NULL;
    struct df_err ignored;
    return df_shown_find(word, &kind, &ignored) == 0 ? kind : NULL;
}

/* "run/ne": offers the names after the slash. */
static void offer_pair(const struct completion *c)
{
    const char *slash = strchr(c->typed, '/');
    DF_FREE char *before = strndup(c->typed, (size_t)(slash - c->typed) + 1);
    DF_FREE char *word = strndup(c->typed, (size_t)(slash - c->typed));
    const struct df_shown *kind = word ? kind_named(word) : NULL;
    if (kind && before)
        offer_names(c, kind, before);
}

/* ---- words of a command ---- */

static void offer_kinds(const struct completion *c)
{
    const struct df_shown *kind = NULL;
    for (size_t i = 0; (kind = df_shown_nth(i)); i++)
        offer(c, "", kind->plural, NULL);
    offer(c, "", "all", "executors, runs and taskactions");
}

static void offer_first_words(const struct completion *c)
{
    const char *before = "";
    for (const struct df_command *o = c->cli->commands; o->name; o++) {
        size_t n = strcspn(o->name, " ");
        DF_FREE char *first = strndup(o->name, n);
        if (first && !df_streq(first, before))
            offer(c, "", first, o->name[n] ? NULL : o->summary);
        before = o->name[n] ? strndupa(o->name, n) : "";
    }
}

static void offer_second_words(const struct completion *c, const char *group)
{
    size_t n = strlen(group);
    for (const struct df_command *o = c->cli->commands; o->name; o++)
        if (df_starts_with(o->name, group) && o->name[n] == ' ')
            offer(c, "", o->name + n + 1, o->summary);
}

/* Offers names of the kind that was typed before; without a kind, executors, once a letter is
 * typed. */
static void offer_named(const struct completion *c)
{
    const struct df_shown *kind = c->positionals ? kind_named(c->positional[0]) : NULL;
    if (kind)
        offer_names(c, kind, "");
    else if (!c->positionals && *c->typed)
        offer_names(c, df_shown_of("executors"), "");
}

/* "taskaction/NAME": offers the part up to the slash, unless it was typed. */
static void offer_pair_start(const struct completion *c, const char *token)
{
    DF_FREE char *start = strndup(token, strcspn(token, "/") + 1);
    if (start && islower((unsigned char)*start) && !strchr(c->typed, '/'))
        offer(c, "", start, NULL);
}

/* Offers candidates for one token of the synopsis: "EXECUTOR", "DIR", "bash". */
static void offer_token(struct completion *c, const char *token)
{
    if (df_streq(token, "KIND"))
        offer_kinds(c);
    else if (df_streq(token, "EXECUTOR"))
        offer_names(c, df_shown_of("executors"), "");
    else if (df_streq(token, "RUN"))
        offer_names(c, df_shown_of("runs"), "");
    else if (df_streq(token, "SECRET"))
        offer_names(c, df_shown_of("secrets"), "");
    else if (df_streq(token, "INTEGRATION"))
        offer_names(c, df_shown_of("integrations"), "");
    else if (df_streq(token, "NAME"))
        offer_named(c);
    else if (df_streq(token, "COMMAND"))
        offer_first_words(c);
    else if (df_streq(token, "DIR"))
        c->rest = c->rest == REST_FILES ? REST_FILES : REST_DIRS;
    else if (df_streq(token, "FILE"))
        c->rest = REST_FILES;
    else if (strchr(token, '/'))
        offer_pair_start(c, token);
    else if (islower((unsigned char)*token))
        offer(c, "", token, NULL);
}

/* Offers the alternatives of one argument: "RUN|taskaction/NAME". */
static void offer_place(struct completion *c, const char *place, size_t n)
{
    DF_FREE char *copy = strndup(place, n);
    char *at = copy;
    if (!copy)
        return;
    copy[strcspn(copy, "].")] = '\0'; /* "[NAME...]" */
    at += *at == '[';
    for (char *token; (token = strsep(&at, "|"));)
        offer_token(c, token);
    if (strchr(c->typed, '/'))
        offer_pair(c);
}

/* Finds the argument that is being typed in the synopsis; the last argument may repeat. */
static void offer_positional(struct completion *c)
{
    const char *place = NULL, *s = c->command->synopsis;
    size_t len = 0, index = 0;
    while (*s && *s != '-') {
        size_t n = strcspn(s, " ");
        bool is_options = strncmp(s, "[options", 8) == 0;
        bool repeats = memmem(s, n, "...", 3) != NULL;
        if (!is_options && (index == c->positionals || (repeats && index < c->positionals))) {
            place = s;
            len = n;
        }
        index += !is_options;
        s += n + strspn(s + n, " ");
    }
    if (place)
        offer_place(c, place, len);
}

/* ---- options ---- */

static void offer_option_table(const struct completion *c, const struct df_option *options)
{
    for (const struct df_option *o = options; o && o->name; o++)
        offer(c, "--", o->name, o->help);
}

/* "Failed,Ca": offers states for the part after the last comma. */
static void offer_states(struct completion *c)
{
    const char *comma = strrchr(c->typed, ',');
    DF_FREE char *before = strndup(c->typed, comma ? (size_t)(comma - c->typed) + 1 : 0);
    const struct df_shown *kind = c->positionals ? kind_named(c->positional[0]) : NULL;
    const struct df_state_member *m = kind ? kind->states : NULL;
    for (; before && m && m->path; m++)
        if (m->words)
            offer_words(c, before, m->words);
}

/* Offers titles in a form that is easy to type: "last-run". */
static void offer_columns(const struct completion *c)
{
    const struct df_shown *kind = c->positionals ? kind_named(c->positional[0]) : NULL;
    for (const struct df_column *o = kind ? kind->columns : NULL; o && o->title; o++) {
        DF_FREE char *title = strdup(o->title);
        for (char *t = title; t && *t; t++)
            *t = *t == ' ' ? '-' : (char)tolower((unsigned char)*t);
        if (title)
            offer(c, "", title, NULL);
    }
}

static void offer_value(struct completion *c, const struct df_option *o)
{
    if (o->words)
        offer_words(c, "", o->words);
    else if (df_streq(o->value, "STATE"))
        offer_states(c);
    else if (df_streq(o->value, "COLUMN"))
        offer_columns(c);
    else
        offer_token(c, o->value);
}

static const struct df_option *find_in(const struct df_option *options, const char *word, size_t n)
{
    for (const struct df_option *o = options; o && o->name; o++) {
        bool is_long = n > 2 && word[1] == '-' && strlen(o->name) == n - 2 &&
                       strncmp(o->name, word + 2, n - 2) == 0;
        bool is_short = n == 2 && o->letter && word[1] == o->letter;
        if (is_long || is_short)
            return o;
    }
    return NULL;
}

static const struct df_option *find_option(const struct completion *c, const char *word)
{
    size_t n = strcspn(word, "=");
    const struct df_option *own = c->command ? c->command->options : NULL;
    const struct df_option *found = find_in(own, word, n);
    return found ? found : find_in(df_common_options, word, n);
}

/* ---- reading what was typed ---- */

/* Keeps the option: --server and others are needed to connect. */
static void remember(struct completion *c, const struct df_option *o, const char *value)
{
    struct df_args *args = &c->cli->args;
    struct df_arg *more = reallocarray(args->given, args->given_count + 1, sizeof(*more));
    if (!more)
        return;
    args->given = more;
    args->given[args->given_count++] = (struct df_arg){o, value};
}

static void read_option(struct completion *c, char *word)
{
    const struct df_option *o = find_option(c, word);
    char *equals = strchr(word, '=');
    if (!o || !o->value)
        return;
    if (equals)
        remember(c, o, equals + 1);
    else
        c->wants_value = o;
}

static void read_word(struct completion *c, char *word)
{
    if (c->command) {
        if (c->positionals < DF_ARRAY_SIZE(c->positional))
            c->positional[c->positionals++] = word;
        return;
    }
    char *both[] = {c->group ? c->group : word, word};
    c->command = df_command_find(c->cli->commands, both, c->group ? 2 : 1);
    c->group = c->group || c->command ? NULL : word;
}

static void read_words(struct completion *c)
{
    for (size_t i = 0; i + 1 < c->count; i++) {
        char *word = c->words[i];
        if (c->wants_value) {
            remember(c, c->wants_value, word);
            c->wants_value = NULL;
        } else if (df_streq(word, "--")) {
            c->options_ended = true;
        } else if (*word == '-' && !c->options_ended) {
            read_option(c, word);
        } else {
            read_word(c, word);
        }
    }
}

/* "--output=js": offers values. False: the typed word is no such option. */
static bool offer_joined_value(struct completion *c)
{
    const char *equals = df_starts_with(c->typed, "--") ? strchr(c->typed, '=') : NULL;
    const struct df_option *o = equals ? find_option(c, c->typed) : NULL;
    if (!equals)
        return false;
    c->prefix = c->typed;
    c->prefix_len = (size_t)(equals - c->typed) + 1;
    c->typed = equals + 1;
    if (o && o->value)
        offer_value(c, o);
    return true;
}

static void offer_all(struct completion *c)
{
    if (c->wants_value) {
        offer_value(c, c->wants_value);
    } else if (*c->typed == '-' && !c->options_ended) {
        if (offer_joined_value(c))
            return;
        offer_option_table(c, c->command ? c->command->options : NULL);
        offer_option_table(c, df_common_options);
    } else if (c->command) {
        offer_positional(c);
    } else if (c->group) {
        offer_second_words(c, c->group);
    } else {
        offer_first_words(c);
    }
}

void df_complete(struct df_cli *cli, char **words, size_t count)
{
    static const char *const rests[] = {":none\n", ":files\n", ":dirs\n"};
    struct completion c = {.cli = cli, .words = words, .count = count, .prefix = ""};
    if (!count)
        return;
    c.typed = words[count - 1];
    read_words(&c);
    offer_all(&c);
    print_line(rests[c.rest]);
}
