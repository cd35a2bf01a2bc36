/* module_name.h - the name of an executor that is made of where its module is. Thread rule: any
 * thread. */
#ifndef DF_CLI_MODULE_NAME_H
#define DF_CLI_MODULE_NAME_H

#include "common/base/err.h"

enum df_name_form {
    DF_NAME_PLAIN,
    DF_NAME_HASHED, /* followed by 8 hex digits of the SHA-256 of URL and folder */
    DF_NAME_FORMER  /* as it was once made: without the letters that have accents */
};

/* A DNS label made of the last part of a URL and of the folder in it ("infra-net"). */
int df_module_name(const char *url, const char *folder, enum df_name_form form, char ret[64],
                   struct df_err *err) DF_MUST_CHECK;

#endif
