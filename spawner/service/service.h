/*
 * service.h - the whole spawner in one process: store, vault, states, engine, control loop and API.
 * `dayfly serve` runs one; `dayfly run` without a server has one inside.
 */
#ifndef DF_SERVICE_H
#define DF_SERVICE_H

#include "spawner/control/control.h"

struct df_service; /* opaque */

/* Starts everything. One service a data directory: CONFLICT reason Busy when another process holds
 * <data>/lock (its URL stands in <data>/endpoint). USER if the configuration is wrong, or names
 * what does not exist: a file, a bucket. config is borrowed and must live on. */
int df_service_start(const struct df_config *config, struct df_service **ret,
                     struct df_err *err) DF_MUST_CHECK;
const char *df_service_url(const struct df_service *s);
struct df_spawner *df_service_spawner(struct df_service *s);
/* Ends or waits for steps (see df_control_stop), and gives the Lease back. Requests are still
 * answered, as by a replica that does not lead. Calling it again does nothing. */
void df_service_leave(struct df_service *s, bool cancel_steps);
/* Leaves and closes everything. */
void df_service_stop(struct df_service *s, bool cancel_steps);

#endif
