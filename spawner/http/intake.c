#include "spawner/http/intake.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/base/limits.h"

static ssize_t pull(gnutls_transport_ptr_t arg, void *to, size_t max)
{
    struct df_intake *i = arg;
    if (i->left == 0) {
        errno = ECONNRESET;
        return -1;
    }
    ssize_t n = recv(i->fd, to, max < i->left ? max : i->left, 0);
    i->left -= n > 0 ? (size_t)n : 0;
    return n;
}

void df_intake_attach(struct df_intake *i, int fd, gnutls_session_t session)
{
    gnutls_transport_ptr_t from = NULL, to = NULL;
    i->fd = fd;
    df_intake_renew(i);
    gnutls_transport_get_ptr2(session, &from, &to);
    gnutls_transport_set_ptr2(session, i, to);
    gnutls_transport_set_pull_function(session, pull);
}

void df_intake_renew(struct df_intake *i)
{
    if (i)
        i->left = DF_LIMIT_HTTP_UNREAD;
}
