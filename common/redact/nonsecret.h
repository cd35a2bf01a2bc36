/*
 * nonsecret.h - members and lines of a structured secret that are no secrets.
 *
 * Internal to the redactor. A key of a service account also has a type, URLs and an address; a
 * kubeconfig has kinds, names and servers. Masking these words everywhere would make a log
 * unreadable and tell nothing less about the secret. The rule: a member is searched unless its name
 * or its form is in the lists of nonsecret.c. Thread rule: any thread.
 */
#ifndef DF_REDACT_NONSECRET_H
#define DF_REDACT_NONSECRET_H

#include "common/base/util.h"

/* True if the value of a member with this name is public. name: "" for none, as of the items of a
 * list: such an item is a secret like a whole value, also if it is a region. */
bool df_redact_is_nonsecret(const char *name, const char *value);

/* True if a line of a longer value is public: a BEGIN or END line of PEM, only punctuation, or
 * "name: value" (as in YAML and indented JSON) without a value or with a public one. */
bool df_redact_is_nonsecret_line(const char *line, size_t n);

#endif
