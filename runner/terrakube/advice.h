/*
 * advice.h - the ways out of a user of Terrakube, who has none of dayfly's secrets and commands.
 */
#ifndef DF_RUNNER_TERRAKUBE_ADVICE_H
#define DF_RUNNER_TERRAKUBE_ADVICE_H

#include "runner/source/source.h"
#include "runner/tofu/failure.h"

extern const struct df_source_advice df_terrakube_source_advice;
extern const struct df_failure_advice df_terrakube_failure_advice;

#endif
