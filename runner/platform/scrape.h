/*
 * scrape.h - GET /metrics for as long as an action runs: the smallest HTTP server that Prometheus
 * understands. One thread, one connection at a time, which has two seconds for its request.
 */
#ifndef DF_PLATFORM_SCRAPE_H
#define DF_PLATFORM_SCRAPE_H

#include "common/base/err.h"

struct df_scrape; /* opaque */

/* Listens at "HOST:PORT" or ":PORT" (every address of IPv4); port 0: a free one. Class USER for
 * what is no address. */
int df_scrape_start(const char *address, struct df_scrape **ret, struct df_err *err) DF_MUST_CHECK;
unsigned df_scrape_port(const struct df_scrape *s);
/* Waits for the connection that is being answered. NULL is fine. */
void df_scrape_stop(struct df_scrape *s);

#endif
