/*
 * usage.h - how much states, plans, logs, outputs, documents and the audit trail take. Thread rule:
 * any thread.
 */
#ifndef DF_REQUESTS_USAGE_H
#define DF_REQUESTS_USAGE_H

#include "spawner/spawner.h"

/* *ret: {total: {<kind>: {count, bytes}}, executors: [{name, <kind>: {count, bytes}}], orphans:
 * {count, bytes}, providers: {count, bytes, limit}}, the last one with providers.mirror.directory;
 * kinds as of df_stored_name(). executor: only this one, without orphans (NOT_FOUND);
 * NULL: all. Reads documents and lists blobs, and reads none of these. The caller deletes. */
int df_usage(struct df_spawner *s, const char *executor, cJSON **ret,
             struct df_err *err) DF_MUST_CHECK;

/* Sets the metric dayfly_stored_bytes from a list of the blobs. */
int df_usage_measure(struct df_spawner *s, struct df_err *err) DF_MUST_CHECK;

#endif
