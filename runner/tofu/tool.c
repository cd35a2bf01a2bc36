#include "runner/tofu/tool.h"

static const struct df_version v1_8 = {.number = {1, 8, 0}}, v1_10 = {.number = {1, 10, 0}},
                               v1_12 = {.number = {1, 12, 0}};

/* The members of type df_version: the first version with that feature; NULL: no version has it.
 * variables: of every command; plan_variables: of an apply of a plan. */
static const struct {
    const char *name, *program, *title;
    enum df_hcl_tool hcl;
    const struct df_version *json_into, *variables, *plan_variables, *oci_mirror,
        *backend_templates;
} kinds[DF_TOOL_KINDS] = {
    [DF_TOOL_OPENTOFU] = {.name = "opentofu",
                          .program = "tofu",
                          .title = "OpenTofu v",
                          .hcl = DF_HCL_OPENTOFU,
                          .json_into = &v1_12,
                          .variables = &v1_8,
                          .plan_variables = &v1_8,
                          .oci_mirror = &v1_10,
                          .backend_templates = &v1_8},
    [DF_TOOL_TERRAFORM] = {.name = "terraform",
                           .program = "terraform",
                           .title = "Terraform v",
                           .hcl = DF_HCL_TERRAFORM,
                           .plan_variables = &v1_10},
    [DF_TOOL_PLATFORM] = {.name = "platform",
                          .program = "dayfly-platform",
                          .title = "dayfly-platform "},
};

const char *df_tool_kind_name(enum df_tool_kind kind)
{
    return kinds[kind].name;
}

const char *df_tool_kind_program(enum df_tool_kind kind)
{
    return kinds[kind].program;
}

enum df_hcl_tool df_tool_kind_hcl(enum df_tool_kind kind)
{
    return kinds[kind].hcl;
}

int df_tool_kind_parse(const char *name, enum df_tool_kind *ret, struct df_err *err)
{
    for (size_t i = 0; i < DF_TOOL_KINDS; i++) {
        if (df_streq(name, kinds[i].name)) {
            *ret = (enum df_tool_kind)i;
            return 0;
        }
    }
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "runtime.name: \"%.40s\" is not opentofu, terraform or platform", name);
}

void df_tool_free(struct df_tool *t)
{
    free(t->path);
    t->path = NULL;
}

/* "OpenTofu v1.12.6", "Terraform v1.11.4" or "dayfly-platform 0.1.0" at the beginning of a
 * line. */
int df_tool_parse_banner(const char *text, struct df_tool *ret, struct df_err *err)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < DF_TOOL_KINDS; i++) {
            if (!df_starts_with(line, kinds[i].title))
                continue;
            const char *word = line + strlen(kinds[i].title);
            DF_FREE char *version = strndup(word, strcspn(word, " \r\n"));
            if (!version)
                return df_fail_oom(err);
            ret->kind = (enum df_tool_kind)i;
            return df_version_parse(version, &ret->version, err);
        }
    }
    return df_fail(err, DF_ERR_USER,
                   "its `version` names neither OpenTofu nor Terraform nor dayfly-platform");
}

char *df_tool_print_banner(const struct df_tool *t)
{
    char version[DF_VERSION_TEXT];
    return df_strf("%s%s\n", kinds[t->kind].title, df_version_format(&t->version, version));
}

const char *df_tool_command_name(const struct df_tool *t, const char *command,
                                 char out[DF_TOOL_COMMAND_TEXT])
{
    (void)snprintf(out, DF_TOOL_COMMAND_TEXT, "%s %s", kinds[t->kind].program, command);
    return out;
}

static bool has_since(const struct df_tool *t, const struct df_version *first)
{
    return first && df_version_compare(&t->version, first) >= 0;
}

bool df_tool_runs_modules(const struct df_tool *t)
{
    return t->kind < DF_TOOL_MODULE_KINDS;
}

bool df_tool_has_json_into(const struct df_tool *t)
{
    return has_since(t, kinds[t->kind].json_into);
}

bool df_tool_has_oci_mirror(const struct df_tool *t)
{
    return has_since(t, kinds[t->kind].oci_mirror);
}

bool df_tool_evaluates_backend(const struct df_tool *t)
{
    return has_since(t, kinds[t->kind].backend_templates);
}

/* Behind the options of an apply is the file of a plan. */
static bool applies_plan(const struct df_strs *args)
{
    return df_streq(args->items[0], "apply") && args->items[args->len - 1][0] != '-';
}

bool df_tool_takes_variables(const struct df_tool *t, const struct df_strs *args)
{
    static const char *const always[] = {"plan", "apply", "destroy", "import"};
    if (!args->len)
        return false;
    if (applies_plan(args))
        return has_since(t, kinds[t->kind].plan_variables);
    for (size_t i = 0; i < DF_ARRAY_SIZE(always); i++)
        if (df_streq(args->items[0], always[i]))
            return true;
    return has_since(t, kinds[t->kind].variables);
}
