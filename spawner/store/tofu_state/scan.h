/*
 * scan.h - what the service must know of a state, read in one pass and constant memory.
 *
 * The whole text is checked against the grammar of JSON, so that no half state is ever stored; of
 * its content only the members of the outermost object are looked at. (What tofu itself requires of
 * a state file stands in its internal/states/statefile/version4.go.)
 * Thread rule: any thread.
 */
#ifndef DF_SCAN_H
#define DF_SCAN_H

#include "common/base/err.h"

struct df_state_head {
    int64_t serial;
    char lineage[129];
    int64_t serial_at; /* where the digits of serial stand in the file */
    int64_t serial_length;
    int64_t outputs_at; /* the value of "outputs"; its length is 0 when there is none */
    int64_t outputs_length;
    int64_t version;    /* of the format: 4 is that of every tool since Terraform 0.12 */
    bool has_resources; /* the list "resources" is not empty */
    bool is_encrypted;  /* by OpenTofu: what is in it cannot be seen */
};

/* Reads from the start of fd. Class USER, reason StateRefused, with the byte offset when it is no
 * state: not JSON, no object, or "version", "serial" or "lineage" missing, doubled or odd. */
int df_state_scan(int fd, struct df_state_head *ret, struct df_err *err) DF_MUST_CHECK;

/* Writes the state in in_fd to out_fd with another serial; every other byte stays. */
int df_state_rewrite(int in_fd, const struct df_state_head *head, int64_t serial, int out_fd,
                     struct df_err *err) DF_MUST_CHECK;

/* Copies n bytes from offset at of in_fd. */
int df_state_copy(int in_fd, int64_t at, int64_t n, int out_fd, struct df_err *err) DF_MUST_CHECK;

#endif
