/*
 * glue.h - exchange.c as libmicrohttpd calls it. The connection's thread calls them in this order:
 * new (the request line is there), step (the head is there; then once for each piece of the body;
 * then once more), end.
 */
#ifndef DF_API_GLUE_H
#define DF_API_GLUE_H

#include <microhttpd.h>

void *df_exchange_new(void *api, const char *uri, struct MHD_Connection *connection);
enum MHD_Result df_exchange_step(void *api, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *bytes,
                                 size_t *n, void **con_cls);
void df_exchange_end(void *api, struct MHD_Connection *connection, void **con_cls,
                     enum MHD_RequestTerminationCode how);

#endif
