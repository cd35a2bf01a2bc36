/*
 * The commands of the runner: a table in front of main(), and a function for each of them. git
 * starts this program as well, to ask for a password: main() answers that before it looks at the
 * command.
 */
#include <getopt.h>

#include "common/base/exit.h"
#include "common/base/fatal.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/process/process.h"
#include "runner/kept.h"
#include "runner/probe.h"
#include "runner/source/source.h"
#include "runner/step.h"
#include "runner/trial.h"
#include "runner/work.h"

static const char usage[] =
    "dayfly-runner runs one step of a run and exits.\n"
    "\n"
    "  dayfly-runner step --handoff-fd N [--work-dir DIR]\n"
    "      Runs the step whose handoff is read from the open descriptor N.\n"
    "  dayfly-runner step --handoff-file FILE [--work-dir DIR]\n"
    "      The same in a pod, with the handoff in a file; default DIR: " DF_STEP_POD_DIR ".\n"
    "  dayfly-runner step --file STEP.json --report-dir DIR [--work-dir DIR]\n"
    "      Runs the step document of a file; log, events, plan and result go to DIR.\n"
    "  dayfly-runner probe --handoff-file FILE --work-dir DIR [--plugin-cache DIR]\n"
    "                      [--tools JSON]\n"
    "      Reports whether a step could run here, for `dayfly doctor`; runs none.\n"
    "  dayfly-runner version\n"
    "\n";

static const char exit_codes[] =
    "Exit codes: 0 success, 1 failure, 2 something changed and then it failed, 3 invalid input,\n"
    "4 timeout.\n";

static int print_usage(FILE *to)
{
    (void)fputs(usage, to);
    for (const struct df_work *const *w = df_works; *w; w++) {
        if ((*w)->usage)
            (void)fprintf(to, "%s\n", (*w)->usage);
    }
    return fputs(exit_codes, to);
}

static int refuse_usage(const char *what)
{
    (void)fprintf(stderr, "dayfly-runner: %s\n\n", what);
    (void)print_usage(stderr);
    return DF_EXIT_INPUT;
}

static int step_command(int argc, char **argv)
{
    static const struct option options[] = {{"handoff-fd", required_argument, NULL, 'h'},
                                            {"handoff-file", required_argument, NULL, 'p'},
                                            {"file", required_argument, NULL, 'f'},
                                            {"report-dir", required_argument, NULL, 'r'},
                                            {"work-dir", required_argument, NULL, 'w'},
                                            {NULL, 0, NULL, 0}};
    struct df_step_options o = {.handoff_fd = -1};
    int64_t fd;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'h':
            if (df_parse_i64(optarg, 3, 1 << 20, &fd, NULL) < 0)
                return refuse_usage("--handoff-fd: not a descriptor");
            o.handoff_fd = (int)fd;
            break;
        case 'p':
            o.handoff_file = optarg;
            break;
        case 'f':
            o.file = optarg;
            break;
        case 'r':
            o.report_dir = optarg;
            break;
        case 'w':
            o.work_dir = optarg;
            break;
        default:
            return refuse_usage("unknown option");
        }
    }
    if (optind < argc)
        return refuse_usage("step takes no further arguments");
    int ways = (o.handoff_fd >= 0) + (o.handoff_file != NULL) + (o.file != NULL);
    if (ways != 1 || (o.file != NULL) != (o.report_dir != NULL))
        return refuse_usage("step needs --handoff-fd, --handoff-file, or --file with --report-dir");
    return df_step(&o);
}

static int probe_command(int argc, char **argv)
{
    static const struct option options[] = {{"handoff-file", required_argument, NULL, 'p'},
                                            {"work-dir", required_argument, NULL, 'w'},
                                            {"plugin-cache", required_argument, NULL, 'c'},
                                            {"tools", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    struct df_probe_options o = {.handoff_file = NULL};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'p':
            o.handoff_file = optarg;
            break;
        case 'w':
            o.work_dir = optarg;
            break;
        case 'c':
            o.plugin_cache = optarg;
            break;
        case 't':
            o.tools = optarg;
            break;
        default:
            return refuse_usage("unknown option");
        }
    }
    if (optind < argc || !o.handoff_file || !o.work_dir)
        return refuse_usage("probe needs --handoff-file and --work-dir");
    return df_probe(&o);
}

/* Of the runner itself: not for people, so not in the usage. */
static int kept_command(int argc, char **argv)
{
    return argc == 2 ? df_kept_command(argv[1])
                     : refuse_usage(DF_KEPT_COMMAND " takes the file with the request");
}

/* The same, for a process of the probe behind a wall. */
static int look_command(int argc, char **argv)
{
    return argc == 2 ? df_trial_look(argv[1])
                     : refuse_usage(DF_TRIAL_COMMAND " takes the file with the request");
}

static int print_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    return puts("dayfly-runner " DF_VERSION) < 0 ? DF_EXIT_FAILURE : DF_EXIT_OK;
}

static int print_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    return print_usage(stdout) < 0 ? DF_EXIT_FAILURE : DF_EXIT_OK;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"step", step_command},
                {"probe", probe_command},
                {DF_KEPT_COMMAND, kept_command},
                {DF_TRIAL_COMMAND, look_command},
                {"version", print_version},
                {"--version", print_version},
                {"help", print_help},
                {"--help", print_help}};

int main(int argc, char **argv)
{
    df_process_protect();      /* from the module that it runs */
    if (df_source_is_helper()) /* git runs this program for a password, and as ssh */
        return df_source_help(argc, argv);
    df_fatal_catch();
    struct df_err err = {0};
    if (df_log_setup_environment(false, "runner", &err) < 0) {
        (void)fprintf(stderr, "dayfly-runner: %s\n", err.message);
        return DF_EXIT_INPUT;
    }
    for (size_t i = 0; argc > 1 && i < DF_ARRAY_SIZE(commands); i++) {
        if (df_streq(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    }
    const struct df_work *starter = argc == 1 ? df_work_starter() : NULL;
    if (starter)
        return df_step(&(struct df_step_options){.handoff_fd = -1, .starter = starter});
    return argc > 1 ? refuse_usage("unknown command") : print_help(argc, argv);
}
