/*
 * plan_bundle.h - what goes from a plan to its apply: one file (common/bundle/bundle.h) whose
 * header names run, source and tool, with what the plan masked. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PLAN_BUNDLE_H
#define DF_RUNNER_PLAN_BUNDLE_H

#include "common/bundle/bundle.h"
#include "runner/context.h"

#define DF_PLAN_BUNDLE_PARTS 7

/* Hands the bundle over, and adds its digest to the result. header: members besides those of every
 * plan, which are added. parts: at most DF_PLAN_BUNDLE_PARTS; borrowed. */
int df_plan_bundle_store(struct df_context *c, cJSON *header, const struct df_bundle_part *parts,
                         size_t n, struct df_err *err) DF_MUST_CHECK;

/* The approved bundle, if it is the plan of this run, source, tool and lock file; what it masked is
 * masked from here on. *ret_fd and *ret_header are the caller's, also on failure. Reasons
 * PlanOfOtherRun, SourceChanged, ToolVersionChanged, LockFileChanged, PlanCorrupt. */
int df_plan_bundle_fetch(struct df_context *c, int *ret_fd, cJSON **ret_header,
                         struct df_err *err) DF_MUST_CHECK;

#endif
