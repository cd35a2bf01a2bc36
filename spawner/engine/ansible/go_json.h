/*
 * go_json.h - JSON as Go's encoding/json reads it into values without a type, and prints it again.
 *
 * Playbooks were written against a client in Go, so a parameter must reach them as Go would send
 * it. Thread rule: pure functions, any thread.
 */
#ifndef DF_ENGINE_GO_JSON_H
#define DF_ENGINE_GO_JSON_H

#include "common/json/json.h"

enum { DF_GO_NUMBER = 64 };

/* The shortest text that reads back as the same finite number, with an exponent below 1e-6 and from
 * 1e21 on. Of some powers of two it has one digit more than Go's, and the same value. */
void df_go_number(double d, char out[DF_GO_NUMBER]);

/* Reads one JSON value. Its numbers are doubles, kept as the text of df_go_number() (cJSON_Raw). Of
 * members with the same name the last one stays; half of a surrogate pair becomes U+FFFD; U+0000
 * becomes DF_JSON_NUL. *ret: the caller owns it; NULL: the text is no JSON, or has a number beyond
 * a double. USER: it is nested deeper than DF_LIMIT_JSON_DEPTH. */
int df_go_json(const char *text, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
