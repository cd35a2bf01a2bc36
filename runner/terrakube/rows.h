/*
 * rows.h - the rows of Terrakube's structured output: one a resource, made of the events of the
 * tool, of the plan and of the state. Nothing sensitive is in them. Thread rule: one thread at a
 * time.
 */
#ifndef DF_RUNNER_TERRAKUBE_ROWS_H
#define DF_RUNNER_TERRAKUBE_ROWS_H

#include "common/json/json.h"

struct df_rows {
    cJSON *rows;        /* an array; owned */
    cJSON *diagnostics; /* of no resource: an array; owned */
    cJSON **index;      /* rows by the hash of their address; NULL: a free place */
    size_t size, count;
};
int df_rows_init(struct df_rows *r, struct df_err *err) DF_MUST_CHECK;
void df_rows_free(struct df_rows *r);

/* One event of the tool. True if it changed a row. */
bool df_rows_event(struct df_rows *r, const cJSON *event);
/* `show -json` of a plan: the resources that change, with their values. */
void df_rows_plan(struct df_rows *r, const cJSON *plan);
/* The rows of a plan, which an apply begins with. What an event said before stays. */
void df_rows_seed(struct df_rows *r, const cJSON *rows);
/* `show -json` of the state after an apply: values that the plan did not know. */
void df_rows_state(struct df_rows *r, const cJSON *state);

/* {name, type, sensitive, value} for each of `output -json`, by name; a sensitive value is null.
 * The caller deletes; NULL: no memory. */
cJSON *df_rows_outputs(const cJSON *outputs);

#endif
