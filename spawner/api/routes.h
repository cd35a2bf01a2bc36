/*
 * routes.h - the tables of routes: of the API, and of the address for Terrakube (terrakube.c).
 */
#ifndef DF_API_ROUTES_H
#define DF_API_ROUTES_H

#include "spawner/http/route.h"

extern const struct df_route_table df_routes;
extern const struct df_route_table df_terrakube_routes;

#endif
