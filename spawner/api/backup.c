#include "spawner/backup/make.h"

#include "common/base/log.h"
#include "spawner/api/handlers.h"
#include "spawner/http/server.h"

struct backup_stream {
    struct df_stream_source source;
    struct df_api *api;
    struct df_backup *backup;
};

/* A failure cuts the answer off: the client sees an archive without its end. */
static int next_bytes(struct df_stream_source *source, struct df_buf *out)
{
    struct backup_stream *b = (struct backup_stream *)source;
    struct df_err err = {0};
    bool more = false;
    if (df_api_is_stopping(b->api))
        return -1;
    if (df_backup_next(b->backup, out, &more, &err) == 0)
        return more;
    df_warn("the backup that a client reads is not complete: %s", err.message);
    return -1;
}

static void free_stream(struct df_stream_source *source)
{
    struct backup_stream *b = (struct backup_stream *)source;
    df_backup_end(b->backup);
    free(b);
}

int df_get_backup(struct df_request *req, struct df_response *res, struct df_err *err)
{
    bool with_key = true;
    struct df_backup *backup = NULL;
    if (df_request_flag(req, "key", &with_key, err) < 0 ||
        df_backup_begin(req->s, with_key, &backup, err) < 0)
        return -1;
    struct backup_stream *b = calloc(1, sizeof(*b));
    if (!b) {
        df_backup_end(backup);
        return df_fail_oom(err);
    }
    *b = (struct backup_stream){{next_bytes, free_stream}, req->api, backup};
    res->stream = &b->source;
    res->content_type = "application/x-tar";
    return 0;
}
