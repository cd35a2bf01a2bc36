/*
 * measure.h - what is measured when /metrics is asked for, because nothing keeps count of it: who
 * leads, and the runs that have not ended. Thread rule: any thread.
 */
#ifndef DF_API_MEASURE_H
#define DF_API_MEASURE_H

#include "spawner/spawner.h"

/* leads: this replica does. Runs that cannot be read leave their figures as they were. */
void df_measure(struct df_spawner *s, bool leads);

#endif
