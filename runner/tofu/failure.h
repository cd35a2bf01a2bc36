/*
 * failure.h - why tofu failed, from its messages: a sentence for people and the reason word of the
 * run's status (docs/objects.md). Thread rule: pure functions, any thread.
 */
#ifndef DF_TOFU_FAILURE_H
#define DF_TOFU_FAILURE_H

#include "runner/report/output.h"

/* The first error of tofu. Strings are "" if the message lacks them. */
struct df_failure {
    char summary[1024]; /* "Unclosed configuration block" */
    char place[256];    /* "main.tf:1" */
    char detail[2048];
};

/* From the text of `init` and `show` ("Error: ..."). The result is not redacted. */
void df_failure_from_text(const char *text, struct df_failure *ret);
/* The last line, if there is no "Error: ": some commands of terraform write their errors
 * without. */
void df_failure_from_last_line(const char *text, struct df_failure *ret);
/* From the diagnostics in the events of `plan` and `apply`. */
void df_failure_from_events(const struct df_output_summary *summary, struct df_failure *ret);

/* True if the tool failed because the answer with its state broke off. */
bool df_failure_is_broken_read(const struct df_failure *f);

/* Who holds the lock at which the tool failed. Strings are "" if that is not known. */
struct df_failure_holder {
    char id[128];
    char who[128]; /* user@host */
    char operation[64];
    char created[64]; /* "2026-01-01 10:00:00.123 +0000 UTC" */
};

/* Reads the lock info that the tool prints. */
void df_failure_holder(const struct df_failure *f, struct df_failure_holder *ret);

/* The ways out of people who have none of dayfly's commands. */
#define DF_FAILURE_UNLOCK_MAX 256
struct df_failure_advice {
    /* Of a lock with this id; what: the command, whose first word is the tool. */
    void (*unlock)(const char *what, const char *id, char out[DF_FAILURE_UNLOCK_MAX]);
    const char *credentials; /* a sentence without its full stop */
};

/* Fills err with "<what>: <summary> (<place>): <detail>" and the reason: StateLocked (with its
 * holder), StateUnavailable, StateRefused, StorageTakenOver, DiskFull, CredentialsMissing (with the
 * ways to give them), or the fallback. advice: NULL: that of dayfly. Returns -1. */
int df_failure_explain(const struct df_failure *f, const char *what, const char *fallback,
                       const struct df_failure_advice *advice, struct df_err *err);

/* As df_failure_explain() for a force-unlock with this ID. If another lock is held: StateLocked,
 * with both IDs. Returns -1. */
int df_failure_explain_unlock(const struct df_failure *f, const char *what, const char *id,
                              const char *fallback, struct df_err *err);

#endif
