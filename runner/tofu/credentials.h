/*
 * credentials.h - recognizes messages of providers that credentials are missing or invalid. Thread
 * rule: pure functions, any thread.
 */
#ifndef DF_TOFU_CREDENTIALS_H
#define DF_TOFU_CREDENTIALS_H

#include "runner/tofu/failure.h"

struct df_credentials_case {
    const char *words;    /* in the provider's message */
    const char *of;       /* "AWS" */
    const char *variable; /* an environment variable that the provider reads */
    const char *login;    /* the command that renews a person's credentials, or NULL */
};

/* The case that matches the failure, or NULL. Borrowed literal. */
const struct df_credentials_case *df_credentials_case_of(const struct df_failure *f);

#endif
