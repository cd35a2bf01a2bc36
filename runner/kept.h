/*
 * kept.h - reads the versions of a state that its bucket keeps. A process of its own with the
 * environment of the tool, and so with the credentials of the step and behind its wall; history.h
 * starts it. It is no part of the contract with the spawner. Thread rule: main thread.
 */
#ifndef DF_RUNNER_KEPT_H
#define DF_RUNNER_KEPT_H

/* The name of the program's command. */
#define DF_KEPT_COMMAND "state-versions"

/* file: a JSON document {"state": as in the step document, "version": its id, or absent}. Prints
 * the content of that version as it is stored; without one {"versions": [{version, createdAt, size,
 * serial, lineage}]}, the newest first, at most DF_LIMIT_STATE_HISTORY, serial and lineage where
 * the content has them. After a failure prints {"reason", "message"}: VersionsUnavailable for a
 * type or a setting with which versions cannot be read, NoSuchVersion, StateUnavailable. Returns
 * the exit code. */
int df_kept_command(const char *file);

#endif
