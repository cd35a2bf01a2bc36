/*
 * task_words.h - TaskActions in the words of who gave them: a step of Terrakube belongs to a job of
 * a workspace, and there is neither a Run nor an Executor; a workflow has no plan and no state.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_TASK_WORDS_H
#define DF_CLI_TASK_WORDS_H

#include "common/base/buf.h"
#include "common/json/json.h"
#include "spawner/cli/reasons.h"
#include "spawner/model/task_kinds.h"

/* Appends whose step a TaskAction's spec is: "acme/net, job 12" of Terrakube, else the name of its
 * Run, or the target of its workflow. Nothing without a spec. */
void df_text_owner(const cJSON *spec, struct df_buf *out);

/* The sentences for TaskActions of this kind: its own, or those of df_reason_find(). NULL for an
 * unknown word. Borrowed. */
const struct df_reason *df_reason_of_kind(enum df_task_kind_id kind, const char *word);

#endif
