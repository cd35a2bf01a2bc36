/*
 * awx_request.h - requests of AWX's REST API and lists of it, for awx_client.c alone. Failures and
 * thread rule are those of awx_client.h.
 */
#ifndef DF_ENGINE_AWX_REQUEST_H
#define DF_ENGINE_AWX_REQUEST_H

#include "common/base/strs.h"
#include "common/http/http.h"
#include "spawner/engine/ansible/awx_client.h"

enum { DF_AWX_PAGE = 200 /* items: the most that AWX gives */ };

struct df_awx {
    struct df_awx_options options;
    int url_length; /* without slashes at the end */
    struct df_http *http;
    char *token;            /* NULL: it is to be read */
    int64_t clock_ahead_us; /* AWX's, by the last answer that told */
    bool is_undone;         /* the last request did nothing in AWX, for certain */
    struct df_strs secrets; /* that were sent since df_awx_forget() */
};

struct df_awx_request {
    const char *what;   /* as upstream's messages name it: "launch" */
    const char *method; /* NULL: GET */
    char *path;         /* behind /api/v2/; taken; NULL: no memory */
    bool has_body;      /* of a POST; false: an empty one */
    cJSON *body;        /* taken; NULL: no memory */
    int ok, also_ok;    /* statuses; ok 0: 200 */
    size_t max;         /* bytes of the answer; 0: the client's own limit */
};

/* The caller frees *ret, also after a failure. */
int df_awx_send(struct df_awx *a, struct df_awx_request c, struct df_http_response *ret,
                struct df_err *err) DF_MUST_CHECK;
/* *ret: the document that AWX answers; the caller owns it. */
int df_awx_ask(struct df_awx *a, struct df_awx_request c, cJSON **ret,
               struct df_err *err) DF_MUST_CHECK;
/* *ret: its id. */
int df_awx_ask_for_id(struct df_awx *a, struct df_awx_request c, int64_t *ret,
                      struct df_err *err) DF_MUST_CHECK;
/* what: as in struct df_awx_request. The caller owns *ret. */
int df_awx_parse(const char *text, size_t n, const char *what, cJSON **ret,
                 struct df_err *err) DF_MUST_CHECK;
int df_awx_read_id(const cJSON *answer, const char *what, int64_t *ret,
                   struct df_err *err) DF_MUST_CHECK;
int df_awx_add_id(cJSON *ids, const cJSON *item, const char *what,
                  struct df_err *err) DF_MUST_CHECK;

struct df_awx_list {
    const char *what;
    char *path;                 /* with its query; taken; NULL: no memory */
    const char *const *members; /* of an item that are kept: AWX's items are large */
    int size;                   /* of a page, less if it is too large; 0: AWX's own */
    int most;                   /* items: the rest is left out; 0: there is no rest */
    const char *vars_have; /* text: of jobs without it in extra_vars nothing is kept; or NULL */
};
/* All pages in one array. The caller owns *ret. */
int df_awx_read_list(struct df_awx *a, struct df_awx_list l, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
/* "job_templates/?name=restart%20pod"; the caller frees it; NULL: no memory. */
char *df_awx_search_path(const char *kind, const char *key, const char *value) DF_MUST_CHECK;

#endif
