/*
 * banned.h - poisons functions that have a safer replacement: using one is a compile error.
 *
 * Included by util.h and so by everything. Each line names what to use instead.
 */
#ifndef DF_BASE_BANNED_H
#define DF_BASE_BANNED_H

/* The declarations must be seen before the names are poisoned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __GNUC__
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok /* df_buf */
#pragma GCC poison gets tmpnam mktemp tempnam                            /* mkostemp, mkdtemp */
#pragma GCC poison atoi atol atoll atof                                  /* df_parse_i64 */
#pragma GCC poison system popen                                          /* df_process */
#pragma GCC poison rand srand srandom drand48                            /* df_random */
#pragma GCC poison gmtime localtime ctime asctime                        /* df_time_format */
#pragma GCC poison setenv putenv                                         /* df_process env */
#endif

#endif
