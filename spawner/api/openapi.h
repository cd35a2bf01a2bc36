/*
 * openapi.h - the bytes of openapi.yaml, included in the program by the assembler, so that the file
 * is the only source.
 */
#ifndef DF_API_OPENAPI_H
#define DF_API_OPENAPI_H

#include <stddef.h>

extern const char df_openapi[];
size_t df_openapi_len(void);

#endif
