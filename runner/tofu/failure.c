/*
 * Reads the first error from the text or the events of the tool, then finds its cause: meanings[]
 * maps words of the tool to reason words; locks and credentials have functions of their own.
 */
#include "runner/tofu/failure.h"

#include <inttypes.h>

#include "common/base/parse.h"
#include "runner/tofu/credentials.h"

/* ---- text ---- */

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* The text after "Error: " in a line, which may be in a frame; NULL: the line has none. terraform's
 * force-unlock prints its error without that word. */
static const char *error_words(const char *line)
{
    static const char mark[] = "Error: ", unmarked[] = "Failed to unlock state: ";
    const char *at = line;
    while (*at == ' ' || (unsigned char)*at >= 0x80)
        at++;
    if (df_starts_with(line, unmarked))
        return line;
    return df_starts_with(at, mark) ? at + strlen(mark) : NULL;
}

/* terraform wraps errors of a module into an error that only announces them. */
static bool is_generic(const char *words)
{
    return df_starts_with(words, "Terraform encountered problems") ||
           df_starts_with(words, "OpenTofu encountered problems");
}

static const char *find_error(const char *text)
{
    const char *vague = NULL;
    for (const char *line = text; *line; line = next_line(line)) {
        const char *words = error_words(line);
        if (words && !is_generic(words))
            return words;
        if (words && !vague)
            vague = words;
    }
    return vague;
}

static void add_words(char *to, size_t size, const char *from, size_t n)
{
    size_t used = strlen(to);
    int room = (int)(size - used - 1);
    (void)snprintf(to + used, size - used, "%s%.*s", used ? " " : "", (int)n < room ? (int)n : room,
                   from);
}

/* "  on main.tf line 1, in resource "x":" */
static bool parse_location(const char *line, struct df_failure *f)
{
    char file[200];
    int64_t number;
    const char *at = strstr(line, " line ");
    if (!at || sscanf(line, "  on %199s", file) != 1)
        return false;
    at += strlen(" line ");
    if (!df_scan_i64(&at, &number))
        return false;
    (void)snprintf(f->place, sizeof f->place, "%s:%" PRId64, file, number);
    return true;
}

/* "   1: resource ..." */
static bool is_snippet(const char *line)
{
    const char *at = line + strspn(line, " ");
    size_t digits = strspn(at, "0123456789");
    return at > line && digits && at[digits] == ':';
}

void df_failure_from_text(const char *text, struct df_failure *ret)
{
    *ret = (struct df_failure){.summary = ""};
    const char *words = find_error(text);
    if (!words)
        return;
    add_words(ret->summary, sizeof ret->summary, words, strcspn(words, "\n"));
    for (const char *line = next_line(words); *line && !error_words(line); line = next_line(line)) {
        size_t blank = strspn(line, " ");
        size_t n = strcspn(line, "\n");
        if (n > blank && !parse_location(line, ret) && !is_snippet(line))
            add_words(ret->detail, sizeof ret->detail, line + blank, n - blank);
    }
}

void df_failure_from_last_line(const char *text, struct df_failure *ret)
{
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n')
        n--;
    const char *newline = memrchr(text, '\n', n);
    const char *line = newline ? newline + 1 : text;
    *ret = (struct df_failure){.summary = ""};
    (void)snprintf(ret->summary, sizeof ret->summary, "%.*s", (int)(n - (size_t)(line - text)),
                   line);
}

/* ---- events ---- */

void df_failure_from_events(const struct df_output_summary *summary, struct df_failure *ret)
{
    *ret = (struct df_failure){.summary = ""};
    (void)snprintf(ret->summary, sizeof ret->summary, "%s", summary->first_error);
    (void)snprintf(ret->place, sizeof ret->place, "%s", summary->first_place);
    for (const char *line = summary->first_detail; *line; line = next_line(line)) {
        size_t blank = strspn(line, " ");
        size_t n = strcspn(line, "\n");
        if (n > blank)
            add_words(ret->detail, sizeof ret->detail, line + blank, n - blank);
    }
}

/* ---- meaning ---- */

/* The first row whose words are all in the message applies; "" is in every message. */
static const struct {
    const char *summary, *detail, *reason;
} meanings[] = {
    {"", "no space left on device", "DiskFull"},
    {"", "disk quota exceeded", "DiskFull"},
    /* 412 is an answer of the service, which shows its words to nobody but its log. */
    {"acquiring the state lock", "HTTP response code 412", "StorageTakenOver"},
    {"save state", "HTTP error: 412", "StorageTakenOver"},
    {"acquiring the state lock", "Lock Info:", "StateLocked"},
    /* A lock without lock info: somebody leased the blob, or wrote the lock, by other means. */
    {"acquiring the state lock", "already locked", "StateLocked"},
    {"acquiring the state lock", "LeaseAlreadyPresent", "StateLocked"},
    {"acquiring the state lock", "ConditionalCheckFailed", "StateLocked"},
    {"acquiring the state lock", "PreconditionFailed", "StateLocked"},
    {"acquiring the state lock", "conditionNotMet", "StateLocked"},
    {"acquiring the state lock", "", "StateUnavailable"},
    {"saved plan is stale", "", "PlanStale"},
    {"saved plan does not match", "", "PlanStale"},
    {"save state", "HTTP error: 4", "StateRefused"},
    {"save state", "", "StateUnavailable"},
    {"persist state", "", "StateUnavailable"},
    {"", "HTTP remote state endpoint", "StateRefused"},
    {"HTTP remote state endpoint", "", "StateRefused"},
    {"load state", "", "StateUnavailable"},
    {"loading state", "", "StateUnavailable"},
    {"refreshing state", "", "StateUnavailable"},
    {"refresh state", "", "StateUnavailable"},
};

static const char *reason_of(const struct df_failure *f, const char *fallback)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(meanings); i++) {
        const char *summary = meanings[i].summary, *detail = meanings[i].detail;
        if (strcasestr(f->summary, summary) &&
            (strcasestr(f->detail, detail) || (!*summary && strcasestr(f->summary, detail))))
            return meanings[i].reason;
    }
    return fallback;
}

bool df_failure_is_broken_read(const struct df_failure *f)
{
    /* Printed by plan, apply and import; by init; by state rm; by state mv. In some versions the
     * cause is part of the summary, in others it is the detail. */
    static const char *const summaries[] = {
        "error loading state: ", "Error refreshing state: ", "Failed to refresh state: ",
        "Failed to refresh source state: "};
    static const char cause[] = "Failed to read remote state: ";
    char words[sizeof f->summary + sizeof f->detail + 2];
    (void)snprintf(words, sizeof words, "%s: %s", f->summary, f->detail);
    for (size_t i = 0; i < DF_ARRAY_SIZE(summaries); i++) {
        size_t n = strlen(summaries[i]);
        if (strncasecmp(words, summaries[i], n) == 0 && df_starts_with(words + n, cause))
            return true;
    }
    return false;
}

/* The words between two keys of the lock info; "" if info is NULL or lacks them. */
static void words_between(const char *info, const char *key, const char *next, char *out,
                          size_t size)
{
    const char *at = info ? strstr(info, key) : NULL;
    at = at ? at + strlen(key) : "";
    at += strspn(at, " ");
    const char *end = strstr(at, next);
    size_t n = end ? (size_t)(end - at) : strlen(at);
    while (n && at[n - 1] == ' ')
        n--;
    (void)snprintf(out, size, "%.*s", (int)n, at);
}

/* terraform shows its own attempt as the holder; only the error has the id of the real lock. tofu
 * does the same if the server's answer does not name the holder. */
void df_failure_holder(const struct df_failure *f, struct df_failure_holder *ret)
{
    static const char mark[] = "already locked: ID=";
    const char *info = strcasestr(f->detail, "Lock Info:"), *real = strstr(f->detail, mark);
    struct df_failure_holder h = {.id = ""};
    if (!strstr(f->detail, "already locked, failed to")) {
        words_between(info, "ID:", "Path:", h.id, sizeof h.id);
        words_between(info, "Operation:", "Who:", h.operation, sizeof h.operation);
        words_between(info, "Who:", "Version:", h.who, sizeof h.who);
        words_between(info, "Created:", "Info:", h.created, sizeof h.created);
    }
    if (real) {
        size_t n = strcspn(real + strlen(mark), " \n");
        if (strncmp(h.id, real + strlen(mark), n) != 0 || h.id[n])
            h = (struct df_failure_holder){.id = ""};
        (void)snprintf(h.id, sizeof h.id, "%.*s", (int)n, real + strlen(mark));
    }
    *ret = h;
}

static void unlock_words(const char *what, const char *id, const struct df_failure_advice *advice,
                         char out[DF_FAILURE_UNLOCK_MAX])
{
    if (advice)
        advice->unlock(what, id, out);
    else
        (void)snprintf(out, DF_FAILURE_UNLOCK_MAX,
                       "wait for its end, or release the lock with `dayfly state unlock` if its "
                       "holder is gone");
}

static int explain_lock(const struct df_failure *f, const char *what,
                        const struct df_failure_advice *advice, struct df_err *err)
{
    char way_out[DF_FAILURE_UNLOCK_MAX];
    struct df_failure_holder h;
    df_failure_holder(f, &h);
    unlock_words(what, h.id, advice, way_out);
    if (!*h.id)
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                              "%s: the state is locked, and the lock names no holder: wait for its "
                              "end, or release it where the state is (break the lease of the blob, "
                              "remove the lock's object or item). The tool said: %.400s",
                              what, f->detail);
    if (!*h.who)
        return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                              "%s: the state is locked (lock %s): %s", what, h.id, way_out);
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                          "%s: the state is locked by %s (%s since %s, lock %s): %s", what, h.who,
                          h.operation, h.created, h.id, way_out);
}

static void credentials_words(const struct df_credentials_case *c,
                              const struct df_failure_advice *advice, char out[512])
{
    if (advice)
        (void)snprintf(out, 512, "%s", advice->credentials);
    else
        (void)snprintf(out, 512,
                       "`dayfly run` without a service passes those of the shell%s%s%s; towards a "
                       "service use --env %s, or keep them with `dayfly secret set` and "
                       "spec.integrations",
                       c->login ? " (get new ones with `" : "", c->login ? c->login : "",
                       c->login ? "`)" : "", c->variable);
}

static int explain_credentials(const struct df_failure *f, const struct df_credentials_case *c,
                               const char *what, const struct df_failure_advice *advice,
                               struct df_err *err)
{
    char way_out[512];
    credentials_words(c, advice, way_out);
    return df_fail_reason(err, DF_ERR_USER, "CredentialsMissing",
                          "%s: the provider has no valid credentials of %s. %s. The provider said: "
                          "%s%s%.600s",
                          what, c->of, way_out, f->summary, *f->detail ? ": " : "", f->detail);
}

int df_failure_explain(const struct df_failure *f, const char *what, const char *fallback,
                       const struct df_failure_advice *advice, struct df_err *err)
{
    const char *reason = reason_of(f, fallback);
    if (df_streq(reason, "StateLocked"))
        return explain_lock(f, what, advice, err);
    const struct df_credentials_case *c = df_credentials_case_of(f);
    if (c && df_streq(reason, fallback))
        return explain_credentials(f, c, what, advice, err);
    if (!*f->summary)
        return df_fail_reason(err, DF_ERR_USER, reason, "%s failed; its log says why", what);
    return df_fail_reason(err, DF_ERR_USER, reason, "%s: %s%s%s%s%s%s", what, f->summary,
                          *f->place ? " (" : "", f->place, *f->place ? ")" : "",
                          *f->detail ? ": " : "", f->detail);
}

int df_failure_explain_unlock(const struct df_failure *f, const char *what, const char *id,
                              const char *fallback, struct df_err *err)
{
    struct df_failure_holder h;
    df_failure_holder(f, &h);
    if (!*h.id || df_streq(h.id, id))
        return df_failure_explain(f, what, fallback, NULL, err);
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                          "%s: the state is locked%s%s%s%s%s%s (lock %s), not with the ID %s: that "
                          "lock stays. If its holder is gone, release it with `dayfly state unlock "
                          "EXECUTOR %s`",
                          what, *h.who ? " by " : "", h.who, *h.who ? ", " : "", h.operation,
                          *h.who ? " since " : "", h.created, h.id, id, h.id);
}
