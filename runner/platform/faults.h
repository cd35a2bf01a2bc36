/*
 * faults.h - what is wrong with the input of an action, all of it at once: a person mends one file
 * in one go. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_FAULTS_H
#define DF_PLATFORM_FAULTS_H

#include <stdarg.h>

#include "common/base/strs.h"

/* All zero: none. At most DF_LIMIT_INPUT_FAULTS; a last line says that there are more. */
struct df_faults {
    struct df_strs lines;
};
#define DF_FAULTS DF_CLEANUP(df_faults_free)
void df_faults_free(struct df_faults *f);

/* Adds a sentence that begins with what it is about: "TARGET_SCOPE", or "environment.yaml:3: name"
 * (NULL counts as out of memory). A control character becomes "?", so that no input can forge a
 * line. Lost memory shows in df_faults_check(). */
void df_faults_add(struct df_faults *f, const char *about, const char *fmt, ...) DF_PRINTF(3, 4);
void df_faults_addv(struct df_faults *f, const char *about, const char *fmt, va_list ap)
    DF_PRINTF(3, 0);
/* True if another fault would not be kept: looking for it is in vain. */
bool df_faults_full(const struct df_faults *f);

/* Copies a value of the input to *to, which the caller frees. */
void df_faults_keep(struct df_faults *f, char **to, const char *value);

/* 0 if there are none. Class USER, reason InvalidInput: how many there are, and the first. */
int df_faults_check(const struct df_faults *f, struct df_err *err) DF_MUST_CHECK;

#endif
