/*
 * probe.h - what a pod of a step finds, told without doing a step: `dayfly doctor` starts one.
 *
 * It has all that a step's pod has, and looks whether a step could live with it: its clock, the
 * spawner's name, the spawner itself, its token, its directories, the tool. The report is one JSON
 * object on standard output and in the termination log:
 *   {"probe": "dayfly", "version": "0.5.0", "time": "...",
 *    "name": {"host", "addresses"[]} , "server": {"url", "status"}, "token": {"issuer",
 * "audience"}, "work": {"path", "free"}, "pluginCache": {"path", "free"}, "tool": {"name",
 * "version"}} Each of the objects has "error" instead when it is not well; one that does not
 * concern the pod is left out. No secret is in it. Thread rule: main thread.
 */
#ifndef DF_RUNNER_PROBE_H
#define DF_RUNNER_PROBE_H

#include "common/base/err.h"

struct df_probe_options {
    const char *handoff_file; /* as of a step */
    const char *work_dir;
    const char *plugin_cache; /* directory; or NULL */
    const char *tools;        /* JSON: the member of a step document; or NULL */
};

/* The exit code: 0 when there is a report, whatever it says. */
int df_probe(const struct df_probe_options *o);

#endif
