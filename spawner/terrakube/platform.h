/* platform.h - the row of Terrakube, whose executor the service can be: terrakube.listen. */
#ifndef DF_TERRAKUBE_PLATFORM_H
#define DF_TERRAKUBE_PLATFORM_H

#include "spawner/platform.h"

extern const struct df_platform df_terrakube_platform;

#endif
