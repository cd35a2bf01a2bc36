#include "spawner/api/openapi.h"

/* The path is relative to the top of the tree, where the compiler is started. */
__asm__(".section .rodata\n"
        ".global df_openapi\n"
        ".global df_openapi_end\n"
        "df_openapi:\n"
        ".incbin \"spawner/api/openapi.yaml\"\n"
        "df_openapi_end:\n"
        ".byte 0\n"
        ".previous\n");

extern const char df_openapi_end[];

size_t df_openapi_len(void)
{
    return (size_t)(df_openapi_end - df_openapi);
}
