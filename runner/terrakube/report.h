/*
 * report.h - the report backend of a step of Terrakube: its API, its Redis and its storage, and the
 * service, if the service handed the step out.
 *
 * Log lines go to the job's stream and to the file that becomes the saved output; the result is
 * what outcome.h tells. Thread rule: as in report.h of the runner.
 */
#ifndef DF_RUNNER_TERRAKUBE_REPORT_H
#define DF_RUNNER_TERRAKUBE_REPORT_H

#include "runner/report/report.h"
#include "runner/terrakube/flow.h"
#include "runner/tofu/workspace.h"

/* t is borrowed. service: a claimed report, taken over on success, which gets everything as well;
 * or NULL. A claim returns the step document (document.h). */
int df_terrakube_report_new(struct df_terrakube *t, const struct df_dirs *dirs,
                            struct df_report *service, struct df_report **ret,
                            struct df_err *err) DF_MUST_CHECK;

/* Adds a text of Terrakube's own, without a secret, as one entry of the stream although it may have
 * newlines. To be called between commands of the tool, after df_output_flush(). */
void df_terrakube_report_entry(struct df_report *r, const char *text);

#endif
