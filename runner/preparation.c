/*
 * preparation.c - a thread fetches the source and finds the tool while the runner waits. What the
 * thread writes is read only after it was joined. df_preparation_end() joins it and checks that the
 * step is the expected one; df_preparation_take_source() gives the source away if it is still as it
 * was fetched and the plan's, and empties its directory otherwise.
 */
#include "runner/preparation.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "common/base/fs.h"
#include "common/base/log.h"
#include "runner/tofu/toolchain.h"

struct df_preparation {
    cJSON *doc;
    const struct df_dirs *dirs;
    pthread_t thread;
    bool is_running; /* the thread is to be joined */
    bool stop;       /* atomic: the thread ends soon */
    int done_fd;     /* readable: the thread has done all */
    int log_fd;      /* lines of the fetch */
    /* Of the thread, until it is joined. */
    bool has_source;
    struct df_source_result source;
    char fetched[65]; /* digest of all that was fetched; "": it is not to be used */
};

/* ---- the thread ---- */

static void get_source(struct df_preparation *p)
{
    struct df_err why = {0};
    const struct df_source_request q = {.source = df_json_at(p->doc, "source"),
                                        .expected_commit = df_json_str(p->doc, "expected.commit"),
                                        .checkout = p->dirs->source,
                                        .private_dir = p->dirs->fetch,
                                        .log_fd = p->log_fd,
                                        .stop = &p->stop};
    if (!q.source)
        return;
    p->has_source = df_source_fetch(&q, &p->source, &why) == 0;
    if (p->has_source && df_tree_digest_all(q.checkout, p->fetched, &why) == 0)
        df_info("the source is ready: files %.12s", p->source.tree_digest);
    else
        df_info("the source is not ready: %s", why.message);
}

/* Without a plan it is one of those that are installed, which need not be asked for their version
 * again. */
static void get_tool(const struct df_preparation *p)
{
    struct df_tool tool = {0};
    struct df_err why = {0};
    char version[DF_VERSION_TEXT];
    const struct df_tool_request how = {.stop = &p->stop,
                                        .is_local = !df_json_at(p->doc, "expected")};
    if (df_toolchain_of_step(p->doc, &how, &tool, &why) < 0) {
        df_info("the tool is not ready: %s", why.message);
        return;
    }
    df_info("the tool is ready: %s %s", df_tool_kind_name(tool.kind),
            df_version_format(&tool.version, version));
    df_tool_free(&tool);
}

static void *work(void *arg)
{
    struct df_preparation *p = arg;
    get_source(p);
    if (!df_stopped(&p->stop))
        get_tool(p);
    (void)eventfd_write(p->done_fd, 1);
    return NULL;
}

/* ---- start, end ---- */

static int start(struct df_preparation *p, struct df_err *err)
{
    p->done_fd = eventfd(0, EFD_CLOEXEC);
    p->log_fd = memfd_create("fetch", MFD_CLOEXEC);
    if (p->done_fd < 0 || p->log_fd < 0)
        return df_fail_errno(err, errno, "prepare the step");
    int failed = pthread_create(&p->thread, NULL, work, p);
    p->is_running = !failed;
    return failed ? df_fail_errno(err, failed, "start the thread that prepares the step") : 0;
}

int df_preparation_start(cJSON *doc, const struct df_dirs *dirs, struct df_preparation **ret,
                         struct df_err *err)
{
    struct df_preparation *p = calloc(1, sizeof(*p));
    if (!p) {
        cJSON_Delete(doc);
        return df_fail_oom(err);
    }
    *p = (struct df_preparation){.doc = doc, .dirs = dirs, .done_fd = -1, .log_fd = -1};
    if (start(p, err) < 0) {
        df_preparation_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

static void stop_thread(struct df_preparation *p)
{
    __atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
}

static void join(struct df_preparation *p)
{
    if (p->is_running)
        (void)pthread_join(p->thread, NULL);
    p->is_running = false;
}

void df_preparation_free(struct df_preparation *p)
{
    if (!p)
        return;
    stop_thread(p);
    join(p);
    df_source_result_free(&p->source);
    cJSON_Delete(p->doc);
    if (p->done_fd >= 0)
        (void)close(p->done_fd);
    if (p->log_fd >= 0)
        (void)close(p->log_fd);
    free(p);
}

/* What was not known when the preparation began does not count. */
static bool is_of(const struct df_preparation *p, const cJSON *step)
{
    static const char *const members[] = {"source", "runtime", "tools", "expected.commit",
                                          "expected.treeDigest"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(members); i++) {
        const cJSON *ours = df_json_at(p->doc, members[i]);
        if (ours && !cJSON_Compare(ours, df_json_at(step, members[i]), true))
            return false;
    }
    return true;
}

void df_preparation_end(struct df_preparation *p, const cJSON *step, const struct df_stop *stop)
{
    struct pollfd fds[] = {{.fd = p->done_fd, .events = POLLIN},
                           {.fd = df_stop_fd(stop), .events = POLLIN}};
    bool is_ours = is_of(p, step);
    while (is_ours && poll(fds, DF_ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
        continue;
    stop_thread(p); /* nothing if it has done all */
    join(p);
    if (is_ours)
        return;
    df_info("what is ready is of another step");
    cJSON_DeleteItemFromObjectCaseSensitive(p->doc, "expected"); /* no source is that of a plan */
}

/* Is it the plan's, and as it was fetched? The digest of a plan leaves out `.git` and `.terraform`,
 * and the fetch has removed those of others. */
static bool is_planned(const struct df_preparation *p)
{
    const char *commit = df_json_str(p->doc, "expected.commit");
    char digest[65];
    struct df_err why = {0};
    if (df_tree_digest_all(p->dirs->source, digest, &why) < 0) {
        df_info("the source is fetched again: %s", why.message);
        return false;
    }
    return df_streq(digest, p->fetched) &&
           df_streq(p->source.tree_digest, df_json_str(p->doc, "expected.treeDigest")) &&
           df_streq(p->source.commit, commit ? commit : "");
}

int df_preparation_take_source(struct df_preparation *p, bool *ret_taken,
                               struct df_source_result *ret, int *ret_log_fd, struct df_err *err)
{
    *ret_taken = false;
    if (!p || !p->has_source)
        return 0;
    p->has_source = false;
    if (!is_planned(p)) {
        df_source_result_free(&p->source);
        return df_fs_renew_dir(p->dirs->source, err);
    }
    *ret = p->source;
    p->source = (struct df_source_result){0};
    *ret_log_fd = p->log_fd;
    *ret_taken = true;
    return 0;
}
