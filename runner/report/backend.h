/*
 * backend.h - the functions that a backend of reports implements, one for each call of report.h.
 */
#ifndef DF_REPORT_BACKEND_H
#define DF_REPORT_BACKEND_H

#include "runner/report/report.h"
#include "runner/report/sender.h"

struct df_report_backend {
    void (*free)(struct df_report *r);
    int (*claim)(struct df_report *r, const volatile bool *stop, int64_t pending_ms, cJSON **ret,
                 struct df_err *err);
    int (*append)(struct df_report *r, enum df_stream stream, const char *bytes, size_t n,
                  struct df_err *err);
    void (*progress)(struct df_report *r, const cJSON *body, bool hurries);
    int (*put_artifact)(struct df_report *r, const char *name, const char *path,
                        int64_t deadline_ms, struct df_err *err);
    int (*get_artifact)(struct df_report *r, const char *name, const char *to_path,
                        int64_t deadline_ms, struct df_err *err);
    int (*result)(struct df_report *r, const cJSON *result, struct df_err *err);
};

/* The first member of each backend's own struct. */
struct df_report {
    const struct df_report_backend *backend;
    const volatile bool *over;
    int over_fd;
    const volatile bool *stop; /* df_report_heed(); or NULL */
};

/* The document to deliver: the result and the sizes of both streams. The caller deletes it; NULL:
 * no memory. */
cJSON *df_report_result_document(const cJSON *result, uint64_t log_bytes, uint64_t event_bytes);

#endif
