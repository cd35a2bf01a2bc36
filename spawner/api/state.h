/*
 * state.h - what the routes of managed state share.
 */
#ifndef DF_API_STATE_H
#define DF_API_STATE_H

#include "spawner/http/request.h"

/* The uid of the executor that the path names, under which its state is kept. CONFLICT
 * StateElsewhere when its storage is not managed. */
int df_state_executor(const struct df_request *req, char ret_uid[64],
                      struct df_err *err) DF_MUST_CHECK;

/* Answers with a version's bytes (0: the current one); 204 when it is empty. */
int df_respond_state(const struct df_request *req, struct df_response *res, const char *uid,
                     int64_t version, struct df_err *err) DF_MUST_CHECK;

/* A person stored a state for the executor of the request: it counts as provisioned from now on. */
int df_state_adopted(const struct df_request *req, struct df_err *err) DF_MUST_CHECK;

#endif
