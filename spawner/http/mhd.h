/*
 * mhd.h - the libmicrohttpd 1.0 callbacks of request.c. The connection's thread calls them in this
 * order: df_mhd_new() after the request line; df_mhd_step() after the head, once for each piece of
 * the body and once after the body; df_mhd_end().
 */
#ifndef DF_SPAWNER_HTTP_MHD_H
#define DF_SPAWNER_HTTP_MHD_H

#include <microhttpd.h>

void *df_mhd_new(void *api, const char *uri, struct MHD_Connection *connection);
enum MHD_Result df_mhd_step(void *api, struct MHD_Connection *connection, const char *url,
                            const char *method, const char *version, const char *bytes, size_t *n,
                            void **con_cls);
void df_mhd_end(void *api, struct MHD_Connection *connection, void **con_cls,
                enum MHD_RequestTerminationCode how);

#endif
