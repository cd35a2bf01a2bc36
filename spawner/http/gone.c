/* gone.c - whether somebody still waits for a response: handlers that wait ask. */
#include <microhttpd.h>
#include <poll.h>

#include "spawner/http/server.h"

bool df_api_is_stopping(struct df_api *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping;
    (void)pthread_mutex_unlock(&a->lock);
    return stopping;
}

bool df_request_client_left(const struct df_request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd p = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

bool df_request_is_gone(const struct df_request *req)
{
    return df_api_is_stopping(req->api) || df_request_client_left(req);
}
