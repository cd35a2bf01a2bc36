/*
 * profile.h - AWS's file of profiles (~/.aws/credentials). Thread rule: any thread.
 */
#ifndef DF_AWS_PROFILE_H
#define DF_AWS_PROFILE_H

#include "common/aws/keys.h"

/* Reads the keys of a profile. USER: the file has no such profile, or it has no keys. */
int df_aws_profile_read(const char *path, const char *profile, struct df_aws_keys *ret,
                        struct df_err *err) DF_MUST_CHECK;

#endif
