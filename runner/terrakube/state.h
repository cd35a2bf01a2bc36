/*
 * state.h - where a step of Terrakube keeps its state: the backend that the tool is given, equal in
 * effect to the override file of Terrakube's own executor (contract: section 3.5;
 * ApiTerraformStateImpl of 2.34).
 *
 * The keys of S3 and Azure stand in the backend's block, as Terrakube has them: a saved plan
 * carries its backend, and may be applied by an executor of Terrakube. The token of the http
 * backend is not in the block but in the environment of the tool, because a plan may be applied
 * long after its token expired. Thread rule: pure functions, but df_terrakube_state_write() and
 * _beat().
 */
#ifndef DF_RUNNER_TERRAKUBE_STATE_H
#define DF_RUNNER_TERRAKUBE_STATE_H

#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"
#include "runner/tofu/version.h"

/* Sets `state` of the step document, and the password of the http backend in its
 * `secretEnvironment`. version: of the tool that will run, on which the names of s3's settings
 * depend. USER, reason SettingMissing: the settings lack what the state type needs. */
int df_terrakube_state_add(const struct df_terrakube_settings *s,
                           const struct df_terrakube_payload *p, const struct df_version *version,
                           cJSON *step, struct df_err *err) DF_MUST_CHECK;

/* Makes what the backend reads besides its block: the credentials of gcs beside the module, the
 * directory of the local state. module_dir: absolute; for gcs called before each `init`. */
int df_terrakube_state_write(const struct df_terrakube_settings *s,
                             const struct df_terrakube_payload *p, const char *module_dir,
                             struct df_err *err) DF_MUST_CHECK;

/* The lock of the http backend lives five minutes: to be called about once a minute while a command
 * may hold it (any thread). 0 as well if the state type has no such lock. CONFLICT, reason
 * StateLockLost: nobody holds it (df_terrakube_beats_lost()); other classes: the API cannot be
 * asked. */
int df_terrakube_state_beat(const struct df_terrakube_settings *s,
                            const struct df_terrakube_payload *p, struct df_err *err) DF_MUST_CHECK;

/* What the beats of a step said so far; all 0 at first. */
struct df_terrakube_beats {
    unsigned command; /* to which the rest belongs */
    bool held;        /* one of its beats found the lock */
    int missed;       /* later ones that did not */
};
/* Takes the outcome of a beat during the command of this number; 0: none runs. True: the command
 * has lost its lock. It has if two beats in a row miss a lock that it had before: a command that
 * has not taken its lock yet, waits for it, or is about to end, misses it as well. */
bool df_terrakube_beats_lost(struct df_terrakube_beats *b, unsigned command, bool missed);

#endif
