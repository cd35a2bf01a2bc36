/*
 * rights.h - whether the account may do what the action will do, asked before the first write.
 * Thread rule: main thread.
 */
#ifndef DF_PLATFORM_RIGHTS_H
#define DF_PLATFORM_RIGHTS_H

#include "runner/platform/platform.h"

/* DENIED, reason Forbidden: all that is missing, as "create applications.argoproj.io in argocd".
 * Asks by SelfSubjectAccessReview, which writes nothing. */
int df_rights_check(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

#endif
