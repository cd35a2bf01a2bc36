/*
 * set.h - what a set of secrets consists of; internal to the redactor.
 */
#ifndef DF_REDACT_SET_H
#define DF_REDACT_SET_H

#include "common/redact/joints.h"
#include "common/redact/patterns.h"

struct df_redact_set {
    struct df_patterns plain;  /* searched in the text */
    struct df_patterns joined; /* searched in the view, across joints */
    struct df_joints joints;   /* which joints a pattern of `joined` may cross */
};

#endif
