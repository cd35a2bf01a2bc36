/*
 * outputs.h - the outputs of modules whose state dayfly does not store. They are the runner's
 * `output -json`, with a member "shown" for a value that the runner masks, in one blob for each
 * step and one, the newest, for each executor. Each blob is sealed with the vault's key "outputs"
 * and bound to its name. shown.h has the outputs of managed states. Thread rule: any thread.
 */
#ifndef DF_STEPS_OUTPUTS_H
#define DF_STEPS_OUTPUTS_H

#include "spawner/spawner.h"

/* Which values are seen. */
enum df_outputs_view {
    DF_OUTPUTS_MASKED,   /* as the runner showed them in the log */
    DF_OUTPUTS_PLAIN,    /* as they are, without those of sensitive outputs */
    DF_OUTPUTS_SENSITIVE /* all */
};

/* uid: of a step or an executor. *ret: as in df_state_outputs(). NOT_FOUND if none are stored. */
int df_outputs_get(struct df_spawner *s, const char *uid, enum df_outputs_view view, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;
/* Also what shown.h stores. Absent is success. */
int df_outputs_delete(struct df_spawner *s, const char *uid, struct df_err *err) DF_MUST_CHECK;

/* The sealed blob <folder>/<uid>: `outputs` of this header, `shown` of shown.h. */
#define DF_OUTPUTS_STORED "outputs"
#define DF_OUTPUTS_SHOWN "shown"
int df_outputs_seal(struct df_spawner *s, const char *folder, const char *uid, const char *text,
                    struct df_err *err) DF_MUST_CHECK;
/* *ret: delete it with df_json_wipe(). NOT_FOUND. */
int df_outputs_open(struct df_spawner *s, const char *folder, const char *uid, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;
/* Reads what a runner sent: an object of objects. *ret: as above. */
int df_outputs_read(const char *path, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
