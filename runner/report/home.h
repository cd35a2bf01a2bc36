/*
 * home.h - what a home of reports implements; the calls are those of report.h.
 */
#ifndef DF_REPORT_HOME_H
#define DF_REPORT_HOME_H

#include "runner/report/report.h"
#include "runner/report/sender.h"

struct df_report_home {
    void (*free)(struct df_report *r);
    int (*claim)(struct df_report *r, const volatile bool *stop, int64_t pending_ms, cJSON **ret,
                 struct df_err *err);
    int (*greet)(struct df_report *r, const cJSON *document, const volatile bool *stop,
                 int64_t pending_ms, struct df_err *err);
    int (*append)(struct df_report *r, enum df_stream stream, const char *bytes, size_t n,
                  struct df_err *err);
    void (*progress)(struct df_report *r, const cJSON *body);
    int (*put_artifact)(struct df_report *r, const char *name, const char *path,
                        int64_t deadline_ms, struct df_err *err);
    int (*get_plan)(struct df_report *r, const char *to_path, int64_t deadline_ms,
                    struct df_err *err);
    int (*result)(struct df_report *r, const cJSON *result, struct df_err *err);
};

/* The first member of each home's own struct. */
struct df_report {
    const struct df_report_home *home;
    const volatile bool *over;
    int over_fd;
};

/* The document that is sent: result with the sizes of the streams. The caller deletes it; NULL on
 * no memory. */
cJSON *df_report_result_document(const cJSON *result, uint64_t log_bytes, uint64_t event_bytes);

#endif
