/*
 * bindings.h - authorities that a cluster gives to programs as service bindings: below
 * SERVICE_BINDING_ROOT a directory for each, whose file `type` says "ca-certificates" and whose
 * other files are PEM (servicebinding.io; the image of Terrakube's executor adds them at its
 * start). Thread rule: any thread.
 */
#ifndef DF_TERRAKUBE_BINDINGS_H
#define DF_TERRAKUBE_BINDINGS_H

#include "common/base/buf.h"

/* Adds the certificates to out. None, also if there is no such directory, is success. USER, reason
 * SettingInvalid: a file that has no certificate. */
int df_terrakube_bindings_read(const char *root, struct df_buf *out,
                               struct df_err *err) DF_MUST_CHECK;

#endif
