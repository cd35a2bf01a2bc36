/*
 * probe.h - checks the conditions in a step's pod, or on this machine, without running a step:
 * `dayfly doctor` starts such a pod, or this program.
 *
 * It has everything that a step's pod has, and checks clock, name and reachability of the spawner,
 * token, directories and tool. The report is one JSON object, on standard output and in the
 * termination log:
 *
 *   {"probe": "dayfly", "version": "0.5.0", "time": "...",
 *    "name": {"host", "addresses"[]}, "server": {"url", "status"}, "leader": {"url", "status"},
 *    "token": {"issuer", "audience"}, "work": {"path", "free"},
 *    "pluginCache": {"path", "free"}, "tool": {"name", "version"}, "wall": {"hidden"}}
 *
 * A failed check has "class" and "error"; a check that does not apply is left out. No secret is in
 * the report. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PROBE_H
#define DF_RUNNER_PROBE_H

#include "common/base/err.h"

struct df_probe_options {
    const char *handoff_file; /* of a step */
    const char *work_dir;
    const char *plugin_cache; /* directory; or NULL */
    const char *tools;        /* JSON: the member of a step document; or NULL */
};

/* The handoff may have more members: `leader`, the URL of the replica that leads (report/link.h),
 * and `step`, for the wall (trial.h). Returns the exit code: 0 once a report was written, even if
 * checks failed. */
int df_probe(const struct df_probe_options *o);

#endif
