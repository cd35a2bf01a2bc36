/*
 * forms.h - the byte strings to search for one secret value.
 *
 * Internal to the redactor; its test oracle uses the same list.
 */
#ifndef DF_REDACT_FORMS_H
#define DF_REDACT_FORMS_H

#include "common/base/err.h"

enum {
    DF_REDACT_MIN = 4,        /* shorter strings are ignored */
    DF_REDACT_PIECE = 1024,   /* longer values are searched in pieces of this size ... */
    DF_REDACT_OVERLAP = 16,   /* ... that overlap by this much */
    DF_REDACT_JOINED_MIN = 8, /* shorter values are not searched in the view */
    DF_REDACT_FORM_MAX = 8192 /* cap of a form: \\u00XX escaped twice is 7 for 1 */
};

struct df_redact_form {
    const char *bytes;
    size_t n;
    bool fold;   /* the case of letters does not matter: the digits of hex */
    bool tail;   /* base64: the next character, if there is one, has bits of the value, too */
    bool joined; /* to be searched in the view (unwrap.h), and only there */
};

/* Calls emit for each form of value: its lines and pieces, each in every encoding. The same bytes
 * may come more than once. form is borrowed for the call; n is DF_REDACT_MIN..DF_REDACT_FORM_MAX.
 * emit returns 0, or -1 with err to end the enumeration. */
int df_redact_forms(const char *value,
                    int (*emit)(void *arg, const struct df_redact_form *form, struct df_err *err),
                    void *arg, struct df_err *err) DF_MUST_CHECK;

#endif
