/*
 * members.h - the secret parts of a value that is a document.
 *
 * Internal to the redactor. Documents are JSON, YAML (a kubeconfig), an expression of HCL (an
 * object in TF_VAR_), and each of them in base64 (a docker config's `auth`, a kubeconfig's
 * client-key-data), one in the other. Thread rule: any thread.
 */
#ifndef DF_REDACT_MEMBERS_H
#define DF_REDACT_MEMBERS_H

#include "common/base/err.h"

enum {
    DF_REDACT_MEMBER_MIN = 8,  /* bytes; shorter members are words and numbers too often */
    DF_REDACT_MEMBER_DEPTH = 4 /* documents within documents */
};

/* Calls emit for each secret part of value: strings of its document that are long enough and not
 * public (nonsecret.h), texts that were in base64, the password of a docker `auth`. Names of
 * members are never parts. member is borrowed for the call. emit returns 0, or -1 with err to end
 * the enumeration. */
int df_redact_members(const char *value,
                      int (*emit)(void *arg, const char *member, struct df_err *err), void *arg,
                      struct df_err *err) DF_MUST_CHECK;

#endif
