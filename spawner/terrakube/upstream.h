/* upstream.h - the row of Terrakube, whose executor the service can be: terrakube.listen. */
#ifndef DF_TERRAKUBE_UPSTREAM_H
#define DF_TERRAKUBE_UPSTREAM_H

#include "spawner/upstream.h"

extern const struct df_upstream df_terrakube_upstream;

#endif
