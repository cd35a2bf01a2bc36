/*
 * awx_answer.h - what it means that AWX, or what stands before it, did not answer a request with
 * the status of its success. Thread rule: a pure function, any thread.
 */
#ifndef DF_ENGINE_AWX_ANSWER_H
#define DF_ENGINE_AWX_ANSWER_H

#include "common/http/http.h"

/* Returns -1 with the class and the text of awx_client.h. what: as upstream's messages name the
 * request: "launch". secrets: what was sent; masked in the text. */
int df_awx_fail_status(const char *what, const struct df_http_response *res,
                       const struct df_strs *secrets, struct df_err *err) DF_MUST_CHECK;

#endif
