/*
 * scan.h - a streaming reader of state files: it finds what the service needs in one pass, in
 * constant memory.
 *
 * The whole text is checked against the grammar of JSON, so that an incomplete state is never
 * stored. Only the members of the outermost object are read. (tofu's own rules for a state file are
 * in its internal/states/statefile/version4.go.) Thread rule: any thread.
 */
#ifndef DF_SCAN_H
#define DF_SCAN_H

#include "common/base/err.h"

struct df_state_head {
    int64_t serial;
    char lineage[129];
    int64_t serial_at; /* offset of the digits of serial in the file */
    int64_t serial_length;
    int64_t outputs_at; /* offset of the value of "outputs"; length 0 if there is none */
    int64_t outputs_length;
    int64_t version;    /* of the format; every tool since Terraform 0.12 writes 4. 0: encrypted */
    bool has_resources; /* the list "resources" is not empty */
    bool is_encrypted;  /* by OpenTofu; its contents are unknown */
};

/* Reads from the start of fd. USER StateRefused if it is not a state: not JSON, not an object, or
 * "version", "serial" or "lineage" is missing, duplicated or has a wrong type; an encrypted state
 * needs no version. The message contains the byte offset. */
int df_state_scan(int fd, struct df_state_head *ret, struct df_err *err) DF_MUST_CHECK;

/* Writes the state in in_fd to out_fd with another serial and leaves every other byte as it is. */
int df_state_rewrite(int in_fd, const struct df_state_head *head, int64_t serial, int out_fd,
                     struct df_err *err) DF_MUST_CHECK;

/* Copies n bytes from offset at of in_fd. */
int df_state_copy(int in_fd, int64_t at, int64_t n, int out_fd, struct df_err *err) DF_MUST_CHECK;

#endif
