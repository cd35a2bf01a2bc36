/*
 * sts.h - requests to AWS's Security Token Service, at AWS_ENDPOINT_URL_STS or at that of the
 * region. Contract: AWS's STS API of 2011-06-15. Thread rule: any thread.
 */
#ifndef DF_AWS_STS_H
#define DF_AWS_STS_H

#include "common/aws/keys.h"
#include "common/base/buf.h"

/* True if the text can be a region: 1 to 32 of a-z, 0-9 and "-". It becomes a part of a host's
 * name: anything else could make it another host, which then gets the request. */
bool df_aws_region_is_good(const char *text);

/* To whom requests go, and whose they are. Borrowed. */
struct df_sts {
    const char *region;
    const struct df_aws_keys *keys; /* sign the request; NULL: its arguments prove who asks */
};

/* A role to be assumed. Borrowed. */
struct df_aws_role {
    const char *arn;
    const char *session;     /* its name in AWS's own trail: 2 to 64 of A-Z a-z 0-9 + = , . @ _ - */
    const char *external_id; /* as are the next: or NULL */
    const char *policy;      /* JSON: what the session may do of what the role may */
    int64_t duration_s;
};

/* Calls an action that answers with temporary keys. arguments: "&Name=value…", escaped. DENIED: STS
 * refused it, and the message says why in its words; USER: the region is none; RETRY as http.h. */
int df_sts_keys(const struct df_sts *sts, const char *action, const struct df_buf *arguments,
                struct df_aws_keys *ret, struct df_err *err) DF_MUST_CHECK;

int df_sts_assume_role(const struct df_sts *sts, const struct df_aws_role *role,
                       struct df_aws_keys *ret, struct df_err *err) DF_MUST_CHECK;

/* *ret: the ARN of the keys' holder; the caller frees. Fails as above. */
int df_sts_caller(const struct df_sts *sts, char **ret, struct df_err *err) DF_MUST_CHECK;

#endif
