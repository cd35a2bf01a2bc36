/*
 * routes.h - the table of routes of the API.
 */
#ifndef DF_API_ROUTES_H
#define DF_API_ROUTES_H

#include "spawner/http/route.h"

extern const struct df_route_table df_routes;

#endif
