/*
 * release_finalizers.h - a namespace that is being deleted, with the service in it: finalizers
 * that nobody is left to remove would keep it for ever. Thread rule: one thread, when the control
 * loop has stopped.
 */
#ifndef DF_CONTROL_RELEASE_FINALIZERS_H
#define DF_CONTROL_RELEASE_FINALIZERS_H

#include "spawner/spawner.h"

/* If the namespace is being deleted: logs which resources the states still hold and which applies
 * are under way, because nothing destroys these resources any more; asks every step to end; and
 * removes the finalizers of all documents. Otherwise, and where the namespace cannot be read, does
 * nothing. Failures are logged: the process is about to end. */
void df_release_finalizers(struct df_spawner *s, const char *name_space);

#endif
