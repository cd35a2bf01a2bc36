/*
 * state.h - functions shared by the routes of managed state.
 */
#ifndef DF_API_STATE_H
#define DF_API_STATE_H

#include "spawner/http/request.h"

/* Returns the uid of the executor in the path, and a reference to the executor unless ret is
 * NULL. */
int df_state_owner(const struct df_request *req, char ret_uid[64], const cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* Returns the uid of the executor in the path, under which its state is stored. CONFLICT
 * StateElsewhere if its storage is not managed. */
int df_state_executor(const struct df_request *req, char ret_uid[64],
                      struct df_err *err) DF_MUST_CHECK;

/* Responds with a version's bytes (0: the current one); 204 if it is empty. */
int df_respond_state(const struct df_request *req, struct df_response *res, const char *uid,
                     int64_t version, struct df_err *err) DF_MUST_CHECK;

/* Puts the executor's name in front of StateUnreadable and StateEncrypted, which have only its uid.
 * Returns -1. */
int df_state_failed(const char *executor, struct df_err *err);

/* Records that a person has stored a state: the executor of the request counts as provisioned. */
int df_state_adopted(const struct df_request *req, struct df_err *err) DF_MUST_CHECK;

#endif
