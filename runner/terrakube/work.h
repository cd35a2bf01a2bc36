/*
 * work.h - the row of a step of Terrakube, whether a Job of its API started this program or
 * dayfly's service hands it out.
 */
#ifndef DF_RUNNER_TERRAKUBE_WORK_H
#define DF_RUNNER_TERRAKUBE_WORK_H

#include "runner/work.h"

extern const struct df_work df_terrakube_work;

#endif
