#include "runner/source/git.h"
#include "runner/source/source.h"

/* Messages of git, ssh and libcurl (LC_ALL=C), and what a person can do. The first needle that is
 * found decides: the more specific ones come first. */
static const struct {
    const char *needle;
    enum df_err_class cls;
    const char *reason;
    const char *advice;
} meanings[] = {
    {"No space left on device", DF_ERR_LIMIT, "DiskFull", "the disk is full"},
    {"Disk quota exceeded", DF_ERR_LIMIT, "DiskFull", "the disk quota is used up"},
    {"signal 25", DF_ERR_LIMIT, "SourceRefused", "the repository is larger than is allowed"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", DF_ERR_DENIED, "SourceRefused",
     "the server's host key is not the pinned one: somebody intercepts the connection, or the key "
     "was changed "
     "(then put the new one as known_hosts into the source's secret)"},
    {"Host key verification failed", DF_ERR_DENIED, "SourceRefused",
     "the server's host key is not among the pinned ones: put its line as known_hosts into the "
     "source's secret"},
    {"Load key", DF_ERR_DENIED, "SourceFailed",
     "the private key cannot be read: ssh-privatekey in the source's secret must be an OpenSSH or "
     "PEM key without a passphrase"},
    {"Permission denied (", DF_ERR_DENIED, "SourceFailed",
     "the server rejects the key: is its public half registered there, and is the user name "
     "in the URL right?"},
    {"Authentication failed", DF_ERR_DENIED, "SourceFailed",
     "the server rejects the user name and password (or token) of the source's secret"},
    {"could not read Username", DF_ERR_DENIED, "SourceFailed",
     "the server requires credentials: name a secret with username and password, or token, in "
     "source.secretRef"},
    {"could not read Password", DF_ERR_DENIED, "SourceFailed",
     "the server requires a password: name a secret with it in source.secretRef"},
    {"The requested URL returned error: 403", DF_ERR_DENIED, "SourceFailed",
     "the server forbids it: do these credentials reach this repository?"},
    {"SSL certificate problem", DF_ERR_DENIED, "SourceRefused",
     "the server's certificate is not trusted: put its CA as ca.crt into the source's secret"},
    {"server certificate verification failed", DF_ERR_DENIED, "SourceRefused",
     "the server's certificate is not trusted: put its CA as ca.crt into the source's secret"},
    {"certificate subject name", DF_ERR_DENIED, "SourceRefused",
     "the server's certificate is for another host"},
    {"' not allowed", DF_ERR_USER, "SourceRefused", "this transport is not allowed here"},
    {"not our ref", DF_ERR_NOT_FOUND, "CommitNotGiven", "the commit is not there"},
    {"unadvertised object", DF_ERR_NOT_FOUND, "CommitNotGiven", "the commit is not there"},
    {"couldn't find remote ref", DF_ERR_NOT_FOUND, "SourceFailed",
     "there is no such branch or tag: names are case-sensitive and written without refs/heads/"},
    {"mismatched algorithms", DF_ERR_USER, DF_GIT_OTHER_FORMAT,
     "the ids of its objects are of another format"},
    {"not support this repository's object format", DF_ERR_USER, DF_GIT_OTHER_FORMAT,
     "the ids of its objects are of another format"},
    {"Repository not found", DF_ERR_NOT_FOUND, "SourceFailed",
     "there is no git repository, or the credentials do not reach it"},
    {"' not found", DF_ERR_NOT_FOUND, "SourceFailed",
     "there is no git repository, or the credentials do not reach it"},
    {"does not appear to be a git repository", DF_ERR_NOT_FOUND, "SourceFailed",
     "there is no git repository, or the credentials do not reach it"},
    {"invalid path", DF_ERR_USER, "SourceRefused", "the tree has a path that git must not make"},
    {"error: object ", DF_ERR_USER, "SourceRefused", "the repository holds a malformed object"},
    {"fsck error", DF_ERR_USER, "SourceRefused", "the repository holds a malformed object"},
    {"Could not resolve host", DF_ERR_RETRY, "SourceFailed", "the host's name is not known"},
    {"Could not read from remote repository", DF_ERR_NOT_FOUND, "SourceFailed",
     "there is no git repository, or the credentials do not reach it"},
    {"unable to access", DF_ERR_RETRY, "SourceFailed", "the server cannot be reached"},
};

static const char *advice_of(size_t meaning, const struct df_source_advice *advice)
{
    for (const struct df_source_words *w = advice ? advice->said : NULL; w && w->needle; w++)
        if (df_streq(w->needle, meanings[meaning].needle))
            return w->advice;
    return meanings[meaning].advice;
}

enum { LINE_MAX_LEN = 300 };

/* Copies the line at text; control characters become blanks. */
static void copy_line(const char *text, char to[LINE_MAX_LEN])
{
    size_t i = 0;
    for (; text[i] && text[i] != '\n' && i < LINE_MAX_LEN - 1; i++)
        to[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    to[i] = '\0';
}

static const char *line_around(const char *text, const char *inside)
{
    while (inside > text && inside[-1] != '\n')
        inside--;
    return inside;
}

/* If no needle is found: the last line that begins with "fatal:" or "error:", else the last
 * line. */
static const char *most_telling_line(const char *tail)
{
    const char *best = "";
    bool sure = false;
    while (*tail) {
        size_t n = strcspn(tail, "\n");
        bool telling = df_starts_with(tail, "fatal:") || df_starts_with(tail, "error:");
        if (n && (telling || !sure)) {
            best = tail;
            sure = telling;
        }
        tail += n + (tail[n] == '\n');
    }
    return best;
}

int df_git_explain(const char *url, int code, const char *stderr_tail,
                   const struct df_source_advice *advice, struct df_err *err)
{
    char line[LINE_MAX_LEN];
    for (size_t i = 0; i < DF_ARRAY_SIZE(meanings); i++) {
        const char *found = strstr(stderr_tail, meanings[i].needle);
        if (!found)
            continue;
        copy_line(line_around(stderr_tail, found), line);
        return df_fail_reason(err, meanings[i].cls, meanings[i].reason, "git %s: %s (%s)", url,
                              advice_of(i, advice), line);
    }
    copy_line(most_telling_line(stderr_tail), line);
    return df_fail_reason(err, DF_ERR_SYSTEM, "SourceFailed", "git %s: exit code %d (%s)", url,
                          code, *line ? line : "no message");
}
