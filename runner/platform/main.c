/*
 * dayfly-platform: deploys, validates and removes a platform of Argo CD Applications.
 */
#include <ctype.h>
#include <getopt.h>

#include "common/base/fatal.h"
#include "common/base/nearest.h"
#include "common/process/process.h"
#include "runner/platform/component.h"
#include "runner/platform/run.h"
#include "runner/source/source.h"

static const char usage[] =
    "dayfly-platform deploys, validates or removes a platform: the components of a DAG, each an\n"
    "Application of Argo CD.\n"
    "\n"
    "  dayfly-platform deploy|validate|teardown [--config DIR] [--secrets DIR] [--manifests DIR]\n"
    "      The folders: default /config (environment.yaml, dag.yaml, health.yaml), /secrets and\n"
    "      /manifests. All else is said by variables, written before the command:\n";

static const char *const variables[] = {"KUBECONFIG_PATH",  "KUBECONFIG_DATA",
                                        "ENVIRONMENT",      "TARGET_SCOPE",
                                        "DRY_RUN",          "TEARDOWN_CONFIRMATION",
                                        "EXPECTED_COMMIT",  "PV_POLICY",
                                        "ACTION_TIMEOUT",   "REPORT_PATH",
                                        "LOG_LEVEL",        "LOG_FORMAT",
                                        "METRICS_ADDR",     "METRICS_TEXTFILE",
                                        "PUSHGATEWAY_URL",  "OTEL_EXPORTER_OTLP_ENDPOINT",
                                        "ALERTMANAGER_URL", "TRACE_ID",
                                        "SPAN_ID",          "TRACEPARENT"};

static const char usage_end[] =
    "  dayfly-platform version|help\n"
    "\n"
    "Examples:\n"
    "  ENVIRONMENT=staging KUBECONFIG_PATH=~/.kube/config DRY_RUN=true \\\n"
    "      dayfly-platform deploy --config ./config\n"
    "  ENVIRONMENT=staging KUBECONFIG_PATH=~/.kube/config TARGET_SCOPE=stack:foundation \\\n"
    "      dayfly-platform validate --config ./config\n"
    "\n"
    "Exit codes: 0 success, 1 failure, 2 partial (some components failed or are degraded),\n"
    "3 invalid input, nothing was changed, 4 timeout.\n";

static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                        {"secrets", required_argument, NULL, 's'},
                                        {"manifests", required_argument, NULL, 'm'},
                                        {NULL, 0, NULL, 0}};

#define INDENT 5
#define COLUMNS 92

static int print_usage(void)
{
    size_t column = INDENT;
    (void)printf("%s%*s", usage, INDENT, "");
    for (size_t i = 0; i < DF_ARRAY_SIZE(variables); i++) {
        size_t n = strlen(variables[i]) + 2;
        if (column + n > COLUMNS) {
            (void)printf("\n%*s", INDENT, "");
            column = INDENT;
        }
        (void)printf(" %s%s", variables[i], i + 1 < DF_ARRAY_SIZE(variables) ? "," : ".\n");
        column += n;
    }
    return fputs(usage_end, stdout) < 0 ? DF_RESULT_FAILURE : DF_RESULT_SUCCESS;
}

/* ---- what a person may have meant ---- */

struct guess {
    const char *name; /* NULL: nothing is near */
    size_t distance;
    const char *before, *behind; /* how it is written */
};

static void consider(const char *word, const char *candidate, const char *before,
                     const char *behind, struct guess *g)
{
    const char *name = g->name;
    df_nearest(word, candidate, &g->name, &g->distance);
    if (g->name != name) {
        g->before = before;
        g->behind = behind;
    }
}

/* What is meant by --dry-run or DRY_RUN=true is the variable: all kinds of words are tried, however
 * this one is written. */
static struct guess guess(const char *word)
{
    static const char *const others[] = {"version", "help"};
    struct guess g = {.distance = SIZE_MAX, .before = "", .behind = ""};
    char small[64], capital[64];
    size_t n = 0;
    for (word += strspn(word, "-"); word[n] && word[n] != '=' && n + 1 < sizeof(small); n++) {
        small[n] = (char)tolower((unsigned char)word[n]);
        capital[n] = (char)(word[n] == '-' ? '_' : toupper((unsigned char)word[n]));
    }
    small[n] = capital[n] = '\0';
    for (const struct option *o = options; n && o->name; o++)
        consider(small, o->name, "--", "", &g);
    for (size_t i = 0; n && i < DF_ARRAY_SIZE(df_platform_action_names); i++)
        consider(small, df_platform_action_names[i], "", "", &g);
    for (size_t i = 0; n && i < DF_ARRAY_SIZE(others); i++)
        consider(small, others[i], "", "", &g);
    for (size_t i = 0; n && i < DF_ARRAY_SIZE(variables); i++)
        consider(capital, variables[i], "the variable ", ", written before the command", &g);
    return g;
}

/* One line, which no help pushes off the screen. What is behind a = may be a secret. */
static int refuse(const char *what, const char *word)
{
    const struct guess g = guess(word);
    int n = (int)strcspn(word, "=");
    char meant[96] = "";
    if (g.name)
        (void)snprintf(meant, sizeof(meant), "%s%s", g.before, g.name);
    (void)fprintf(stderr, "dayfly-platform: %s%s%.*s", what, *word ? " " : "", n, word);
    if (g.name && (strncmp(meant, word, (size_t)n) != 0 || meant[n]))
        (void)fprintf(stderr, "; did you mean %s%s?", meant, g.behind);
    (void)fputs(" (see dayfly-platform --help)\n", stderr);
    return DF_RESULT_INVALID;
}

/* ---- the commands ---- */

static int run_action(enum df_platform_action action, int argc, char **argv)
{
    struct df_input_places places = {NULL};
    opterr = 0;
    for (int c, at = optind; (c = getopt_long(argc, argv, "+:", options, NULL)) != -1;
         at = optind) {
        if (c == '?')
            return refuse("unknown option", argv[at]);
        if (c == ':' || !*optarg)
            return refuse("no folder is named behind", argv[at]);
        *(c == 'c' ? &places.config : c == 's' ? &places.secrets : &places.manifests) = optarg;
    }
    if (optind < argc)
        return refuse("an action takes no argument", argv[optind]);
    return df_platform_run(action, &places);
}

/* Wherever it stands: who asks for help wants nothing to be done. */
static bool asks_for_help(char **words)
{
    for (size_t i = 0; words[i]; i++)
        if (df_streq(words[i], "--help") || df_streq(words[i], "-h") ||
            (i < 2 && df_streq(words[i], "help")))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    df_process_protect();
    if (df_source_is_helper()) /* git runs this program for a password, and as ssh */
        return df_source_help(argc, argv);
    df_fatal_catch();
    if (argc > 0 && asks_for_help(argv + 1))
        return print_usage();
    for (size_t i = 0; argc > 1 && i < DF_ARRAY_SIZE(df_platform_action_names); i++) {
        if (df_streq(argv[1], df_platform_action_names[i]))
            return run_action((enum df_platform_action)i, argc - 1, argv + 1);
    }
    if (argc < 2 || !*argv[1])
        return refuse("which action: deploy, validate or teardown?", "");
    if (df_streq(argv[1], "version") || df_streq(argv[1], "--version"))
        return puts("dayfly-platform " DF_VERSION) < 0 ? DF_RESULT_FAILURE : DF_RESULT_SUCCESS;
    return refuse(*argv[1] == '-' ? "the action comes first, not" : "unknown action", argv[1]);
}
