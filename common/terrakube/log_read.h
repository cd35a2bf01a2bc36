/*
 * log_read.h - the lines that a step has in Redis, read back: a lost pod has saved none of them.
 */
#ifndef DF_TERRAKUBE_LOG_READ_H
#define DF_TERRAKUBE_LOG_READ_H

#include "common/redis/redis.h"
#include "common/terrakube/payload.h"

/* Writes the lines of the payload's step to fd, in their order, each with a newline; a job's stream
 * has those of other steps, too. At most max bytes of them (DF_LIMIT_TERRAKUBE_RESCUE): then a line
 * says that there are more. Failures are those of redis.h, and of the file; what was read before is
 * written. Thread rule: one client, one thread. */
int df_terrakube_log_read(struct df_redis *r, const struct df_terrakube_payload *p, size_t max,
                          int fd, struct df_err *err) DF_MUST_CHECK;

#endif
