/*
 * tool.h - the tool of a step, OpenTofu, Terraform or dayfly-platform: its names, and what differs
 * between them and between their versions. toolchain.h finds one.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_TOFU_TOOL_H
#define DF_TOFU_TOOL_H

#include "common/base/strs.h"
#include "common/hcl/hcl.h"
#include "common/json/json.h"
#include "runner/tofu/version.h"

enum df_tool_kind { DF_TOOL_OPENTOFU, DF_TOOL_TERRAFORM, DF_TOOL_PLATFORM };
#define DF_TOOL_KINDS 3
#define DF_TOOL_MODULE_KINDS 2 /* the first so many run modules; a step that names none gets one */

/* "opentofu", "terraform", "platform"; the program's file: "tofu", "terraform",
 * "dayfly-platform". */
const char *df_tool_kind_name(enum df_tool_kind kind);
const char *df_tool_kind_program(enum df_tool_kind kind);
enum df_hcl_tool df_tool_kind_hcl(enum df_tool_kind kind);
/* Class USER, reason InvalidStep, for another name. */
int df_tool_kind_parse(const char *name, enum df_tool_kind *ret, struct df_err *err) DF_MUST_CHECK;

struct df_step_wall_request;

/* What a step asks for. All borrowed. */
struct df_tool_request {
    enum df_tool_kind kind;
    const char *constraint;    /* NULL: any release */
    const cJSON *tools;        /* the member of the step document */
    const char *path_env;      /* PATH to search, or NULL */
    const volatile bool *stop; /* ends a download when true, or NULL */
    bool is_local;             /* only what is installed here: nothing is downloaded */
    /* The wall of the step, whose `tool` is not used: of each program that is asked for its
     * version, which a module may have put where it is searched. NULL, or its isolation off:
     * none. */
    const struct df_step_wall_request *wall;
};

struct df_tool {
    enum df_tool_kind kind;
    struct df_version version;
    char *path; /* owned; absolute */
};
void df_tool_free(struct df_tool *t);

/* Reads kind and version from the output of `version`. Class USER when it names neither tool. */
int df_tool_parse_banner(const char *text, struct df_tool *ret, struct df_err *err) DF_MUST_CHECK;
/* The line that df_tool_parse_banner() reads; the caller frees. NULL: no memory. */
char *df_tool_print_banner(const struct df_tool *t);

#define DF_TOOL_COMMAND_TEXT 48
/* "tofu plan", for messages. Returns out. */
const char *df_tool_command_name(const struct df_tool *t, const char *command,
                                 char out[DF_TOOL_COMMAND_TEXT]);

/* True if the source is a module of the tool, with state, providers and variables. */
bool df_tool_runs_modules(const struct df_tool *t);
/* True if the tool has -json-into, which writes the events to a file and the text to standard
 * output. */
bool df_tool_has_json_into(const struct df_tool *t);
/* True if the tool can install providers from an OCI registry. */
bool df_tool_has_oci_mirror(const struct df_tool *t);
/* True if the command with these arguments accepts variables (-var, -var-file). Besides what plans,
 * it may need their values for module sources, backends and the encryption of states and plans; the
 * apply of a plan compares them with those in it, and needs ephemeral ones again. */
bool df_tool_takes_variables(const struct df_tool *t, const struct df_strs *args);
/* True if the texts of a backend block in JSON are templates; the others take them literally. */
bool df_tool_evaluates_backend(const struct df_tool *t);

#endif
