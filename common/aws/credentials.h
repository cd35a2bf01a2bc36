/*
 * credentials.h - the keys of an AWS account, from where AWS's own programs take them. The first of
 * these that the environment offers decides:
 *
 *   static        AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *   web identity  AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN (IRSA), exchanged at STS
 *   profile       AWS_PROFILE (or "default") in AWS_SHARED_CREDENTIALS_FILE (or ~/.aws/credentials)
 *   container     AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI (EKS Pod Identity, ECS)
 *   instance      the metadata service of an EC2 instance, version 2
 *
 * Keys that expire are fetched again five minutes before, others after a refusal. Thread rule: any
 * thread.
 */
#ifndef DF_AWS_CREDENTIALS_H
#define DF_AWS_CREDENTIALS_H

#include "common/aws/keys.h"
#include "common/base/buf.h"

struct df_aws_credentials; /* opaque */

/* region: of STS, unless AWS_ENDPOINT_URL_STS says where it is; copied. Sends no request yet. */
int df_aws_credentials_new(const char *region, struct df_aws_credentials **ret,
                           struct df_err *err) DF_MUST_CHECK;
/* These keys, copied, and no others. */
int df_aws_credentials_given(const struct df_aws_keys *keys, struct df_aws_credentials **ret,
                             struct df_err *err) DF_MUST_CHECK;
void df_aws_credentials_free(struct df_aws_credentials *c); /* NULL is fine */

/* A copy of the current keys; the caller wipes it. USER: no source is offered, or what it holds
 * cannot be read; else as the source failed, and RETRY where that has NOT_FOUND or CONFLICT. */
int df_aws_credentials_get(struct df_aws_credentials *c, struct df_aws_keys *ret,
                           struct df_err *err) DF_MUST_CHECK;

/* Appends where the keys come from, as words behind "from": "the profile \"x\" of FILE". No
 * secret. */
void df_aws_credentials_source(const struct df_aws_credentials *c, struct df_buf *out);

/* A service did not accept these keys: expired, or replaced in the file that has them. True if
 * there are others now, with which a request may be repeated. The source is asked at most once in
 * DF_AWS_ASK_AGAIN_MS; the keys stay as they are where it does not answer. */
bool df_aws_credentials_refused(struct df_aws_credentials *c, const struct df_aws_keys *keys);
#define DF_AWS_ASK_AGAIN_MS 5000

#endif
