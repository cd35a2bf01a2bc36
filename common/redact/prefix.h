/*
 * prefix.h - what tofu and terraform write in front of each line that a provisioner prints:
 *
 *   module.m["a b"].aws_instance.x[0] (local-exec): text
 *   module.m["a b"].aws_instance.x[0]: (local-exec): text      a message of -json
 *
 * with colours in front of it. Internal to the redactor: a value that was printed in several lines
 * has it between its parts. Thread rule: pure, any thread.
 */
#ifndef DF_REDACT_PREFIX_H
#define DF_REDACT_PREFIX_H

#include "common/base/err.h"

/* Reads the start of a line. *ret_len: the length of the prefix up to its last colon; 0 if there is
 * none. False if more bytes are needed to tell; never with `last`, the end of the text, nor beyond
 * DF_LIMIT_REDACT_PREFIX bytes. */
bool df_redact_prefix(const char *text, size_t n, bool last, size_t *ret_len);

#endif
