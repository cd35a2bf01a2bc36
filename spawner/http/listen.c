/*
 * listen.c - parses "host:port", resolves it, binds (if the configured port is 0, to the previous
 * port first), and derives the URL from the bound address. Read df_listen() at the end first.
 */
#include "spawner/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>

#include "common/base/fs.h"
#include "common/base/parse.h"

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t len;
};

static bool is_v6(const struct address *a)
{
    return a->any.sa_family == AF_INET6;
}

static uint16_t port_of(const struct address *a)
{
    return ntohs(is_v6(a) ? a->v6.sin6_port : a->v4.sin_port);
}

static void set_port(struct address *a, uint16_t port)
{
    if (is_v6(a))
        a->v6.sin6_port = htons(port);
    else
        a->v4.sin_port = htons(port);
}

static bool is_loopback(const struct address *a)
{
    return is_v6(a) ? IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr)
                    : ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

/* Splits "host:port" and "[v6]:port" in place. */
static int split(const char *key, char *listen, const char **ret_host, const char **ret_port,
                 struct df_err *err)
{
    char *colon = strrchr(listen, ':');
    char *host = listen;
    if (colon && *host == '[' && colon > host && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    } else if (!colon || memchr(host, ':', (size_t)(colon - host))) {
        return df_fail(err, DF_ERR_USER, "%s: \"%s\": must be host:port (127.0.0.1:8030)", key,
                       listen);
    }
    *colon = '\0';
    *ret_host = host;
    *ret_port = colon + 1;
    return 0;
}

static int look_up(const char *key, const char *host, const char *port, struct address *ret,
                   struct df_err *err)
{
    const struct addrinfo want = {.ai_family = *host ? AF_UNSPEC : AF_INET,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(*host ? host : NULL, port, &want, &found);
    if (failed)
        return df_fail(err, DF_ERR_USER, "%s: %s: %s", key, host, gai_strerror(failed));
    memcpy(&ret->v6, found->ai_addr, found->ai_addrlen);
    ret->len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int resolve(const char *key, const char *listen, struct address *ret, struct df_err *err)
{
    DF_FREE char *copy = strdup(listen);
    const char *host = "", *port = "";
    int64_t number = 0;
    if (df_check_alloc(copy, err) < 0 || split(key, copy, &host, &port, err) < 0)
        return -1;
    if (df_parse_i64(port, 0, 65535, &number, err) < 0)
        return df_err_wrap(err, "%s: port", key);
    return look_up(key, host, port, ret, err);
}

static int try_bind(const struct address *a, int *ret_fd)
{
    DF_CLOSE int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &a->any, a->len) < 0 || listen(fd, SOMAXCONN) < 0)
        return -errno;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

/* The port of the previous spawner; 0 if it is unknown. */
static uint16_t last_port(const char *endpoint_file)
{
    DF_BUF struct df_buf url = DF_BUF_INIT(256);
    if (!endpoint_file || df_fs_read(endpoint_file, &url, NULL) < 0)
        return 0;
    const char *colon = strrchr(df_buf_str(&url), ':');
    return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

static int bind_any(struct address *a, const char *endpoint_file, int *ret_fd)
{
    uint16_t before = port_of(a) ? 0 : last_port(endpoint_file);
    struct address same = *a;
    set_port(&same, before);
    if (before && try_bind(&same, ret_fd) == 0)
        return 0;
    return try_bind(a, ret_fd);
}

static char *url_of(const struct address *a, bool tls)
{
    const char *scheme = tls ? "https" : "http";
    char host[INET6_ADDRSTRLEN] = "";
    if (is_v6(a)) {
        bool any = IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
        (void)inet_ntop(AF_INET6, any ? &in6addr_loopback : &a->v6.sin6_addr, host, sizeof(host));
        return df_strf("%s://[%s]:%u", scheme, host, port_of(a));
    }
    struct in_addr in = a->v4.sin_addr;
    if (in.s_addr == htonl(INADDR_ANY))
        in.s_addr = htonl(INADDR_LOOPBACK);
    (void)inet_ntop(AF_INET, &in, host, sizeof(host));
    return df_strf("%s://%s:%u", scheme, host, port_of(a));
}

int df_listen(const struct df_config *config, const char *endpoint_file, int *ret_fd,
              bool *ret_loopback, char **ret_url, struct df_err *err)
{
    struct address a = {.len = 0};
    DF_CLOSE int fd = -1;
    if (resolve("listen", config->listen, &a, err) < 0)
        return -1;
    int failed = bind_any(&a, endpoint_file, &fd);
    if (failed < 0)
        return df_fail_errno(err, -failed, "listen on %s", config->listen);
    a.len = sizeof(a.v6);
    if (getsockname(fd, &a.any, &a.len) < 0)
        return df_fail_errno(err, errno, "listen on %s", config->listen);
    char *url = config->advertise_url ? strdup(config->advertise_url)
                                      : url_of(&a, df_config_has_tls(config));
    if (!url)
        return df_fail_oom(err);
    *ret_fd = DF_TAKE_FD(fd);
    *ret_loopback = is_loopback(&a);
    *ret_url = url;
    return 0;
}

int df_listen_at(const char *key, const char *listen, int *ret_fd, struct df_err *err)
{
    struct address a = {.len = 0};
    if (resolve(key, listen, &a, err) < 0)
        return -1;
    int failed = try_bind(&a, ret_fd);
    return failed < 0 ? df_fail_errno(err, -failed, "%s: listen on %s", key, listen) : 0;
}
