/*
 * fatal.h - a program that a fatal signal ends says so in its log.
 *
 * The line has the form of log.h, level "error", and names the signal, the address of a memory
 * fault and the backtrace as `program+offset`, which `addr2line -e PROGRAM OFFSET` turns into
 * source lines. Then the signal ends the process as if nobody had caught it, so that the parent
 * and the kernel (core dump) see the true cause.
 *
 * In a build with a sanitizer the sanitizer reports memory faults itself; the other signals are
 * reported here. A stack overflow is reported for the main thread only: other threads have no
 * second stack.
 */
#ifndef DF_BASE_FATAL_H
#define DF_BASE_FATAL_H

/* Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS and SIGTRAP. Call it once, at the start
 * of main(), before any thread exists. Programs that are executed later start with the default
 * actions again. */
void df_fatal_catch(void);

#endif
