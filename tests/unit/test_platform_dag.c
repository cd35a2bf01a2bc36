#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/platform/dag.h"

/* cmocka's state is not used: a test has a DAG of its own. */
struct made {
    struct df_dag dag;
    struct df_faults faults;
};

static void made_free(struct made *m)
{
    df_dag_free(&m->dag);
    df_faults_free(&m->faults);
}
#define MADE DF_CLEANUP(made_free) struct made

static struct df_dag_text text_of(const char *name, const char *text)
{
    return (struct df_dag_text){name, text, strlen(text)};
}

/* Either text may be NULL. */
static struct made make(const char *repository, const char *mounted, const struct df_scope *scope)
{
    static const struct df_scope platform = {.kind = DF_SCOPE_PLATFORM};
    struct made m = {.faults = {{0}}};
    struct df_err err = {0};
    struct df_dag_text inside = text_of("dag.yaml", repository ? repository : "");
    struct df_dag_text outside = text_of("/config/dag.yaml", mounted ? mounted : "");
    if (df_dag_make(repository ? &inside : NULL, mounted ? &outside : NULL,
                    scope ? scope : &platform, &m.dag, &m.faults, &err) < 0)
        fail_msg("%s", err.message);
    return m;
}

static void assert_no_faults(const struct made *m)
{
    if (m->faults.lines.len)
        fail_msg("%s", m->faults.lines.items[0]);
}

/* Exactly these faults, joined by line ends. */
static void assert_faults(const struct made *m, const char *expected)
{
    DF_FREE char *all = df_strs_join(&m->faults.lines, "\n");
    assert_string_equal(all, expected);
}

/* "crds cm app" */
static void assert_order(const struct made *m, const char *expected)
{
    DF_STRS struct df_strs names = {0};
    assert_no_faults(m);
    for (size_t i = 0; i < m->dag.len; i++)
        assert_int_equal(df_strs_add(&names, m->dag.nodes[i].name), 0);
    DF_FREE char *all = df_strs_join(&names, " ");
    assert_string_equal(all, expected);
}

static void assert_in_scope(const struct made *m, const char *expected)
{
    DF_STRS struct df_strs names = {0};
    assert_no_faults(m);
    for (size_t i = 0; i < m->dag.len; i++)
        if (m->dag.nodes[i].is_in_scope)
            assert_int_equal(df_strs_add(&names, m->dag.nodes[i].name), 0);
    DF_FREE char *all = df_strs_join(&names, " ");
    assert_string_equal(all, expected);
}

static void assert_depends(const struct made *m, const char *name, const char *expected)
{
    DF_STRS struct df_strs names = {0};
    const struct df_node *n = df_dag_find(&m->dag, name);
    assert_non_null(n);
    for (size_t i = 0; i < n->depends.len; i++)
        assert_int_equal(df_strs_add(&names, m->dag.nodes[n->depends.items[i]].name), 0);
    DF_FREE char *all = names.len ? df_strs_join(&names, " ") : strdup("");
    assert_string_equal(all, expected);
}

/* The platform of most tests: crds, cm and app in a row, side beside them. */
static const char four[] = "components:\n"
                           "- {name: crds, stack: foundation, path: platform/crds}\n"
                           "- {name: cm, stack: foundation, path: cm, dependsOn: [crds]}\n"
                           "- {name: app, stack: apps, path: app, dependsOn: [cm]}\n"
                           "- {name: side, path: side}\n";

/* ---- what is read ---- */

static void a_component_has_all_that_its_keys_say(void **state)
{
    (void)state;
    MADE m = make("components:\n"
                  "- name: cert-manager\n"
                  "  stack: foundation\n"
                  "  path: platform/cert-manager\n"
                  "  namespace: certs\n"
                  "  critical: true\n"
                  "  timeout: 15m\n"
                  "  bootstrap: true\n",
                  NULL, NULL);
    assert_no_faults(&m);
    const struct df_node *n = &m.dag.nodes[0];
    assert_string_equal(n->name, "cert-manager");
    assert_string_equal(n->stack, "foundation");
    assert_string_equal(n->path, "platform/cert-manager");
    assert_string_equal(n->name_space, "certs");
    assert_int_equal(n->timeout_ms, 15 * 60 * 1000);
    assert_true(n->critical && n->bootstrap && n->is_in_scope);
    assert_null(n->chart);
    assert_int_equal(n->depends.len, 0);
}

static void a_component_needs_little_more_than_a_name(void **state)
{
    (void)state;
    MADE m = make("components: [{name: a, path: a}]", NULL, NULL);
    assert_no_faults(&m);
    const struct df_node *n = &m.dag.nodes[0];
    assert_null(n->stack);
    assert_null(n->name_space);
    assert_int_equal(n->timeout_ms, 0);
    assert_false(n->critical || n->bootstrap);
}

static void a_chart_comes_instead_of_a_path(void **state)
{
    (void)state;
    MADE m = make("components:\n"
                  "- name: a\n"
                  "  chart: {repoURL: https://charts.example.org, name: web, version: 1.2.3,\n"
                  "          values: {replicas: 2}}\n",
                  NULL, NULL);
    assert_no_faults(&m);
    assert_null(m.dag.nodes[0].path);
    assert_string_equal(df_json_str(m.dag.nodes[0].chart, "version"), "1.2.3");
    assert_int_equal(df_json_int(m.dag.nodes[0].chart, "values.replicas", 0), 2);
}

/* ---- order ---- */

static void an_order_that_is_right_stays(void **state)
{
    (void)state;
    MADE m = make(four, NULL, NULL);
    assert_order(&m, "crds cm app side");
    assert_depends(&m, "app", "cm");
}

static void what_a_component_depends_on_comes_before_it(void **state)
{
    (void)state;
    MADE m = make("components:\n"
                  "- {name: top, path: p, dependsOn: [left, right]}\n"
                  "- {name: side, path: p}\n"
                  "- {name: right, path: p, dependsOn: [base]}\n"
                  "- {name: left, path: p, dependsOn: [base]}\n"
                  "- {name: base, path: p}\n",
                  NULL, NULL);
    assert_order(&m, "base left right top side");
    assert_depends(&m, "top", "left right");
    assert_depends(&m, "right", "base");
    assert_depends(&m, "side", "");
}

static void write_chain(struct df_buf *text, int len)
{
    (void)df_buf_adds(text, "components:\n");
    for (int i = 0; i < len; i++)
        (void)df_buf_addf(text, "- {name: n%d, path: p, dependsOn: [%s%.0d]}\n", i,
                          i + 1 < len ? "n" : "", i + 1 < len ? i + 1 : 0);
}

static void the_longest_chain_is_turned_round(void **state)
{
    (void)state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    write_chain(&text, DF_LIMIT_COMPONENTS);
    MADE m = make(df_buf_str(&text), NULL, NULL);
    assert_no_faults(&m);
    assert_string_equal(m.dag.nodes[0].name, "n999");
    assert_string_equal(m.dag.nodes[999].name, "n0");
}

/* ---- faults ---- */

static void each_fault_of_a_component_is_named_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *rest, *fault; /* of a component that has a name, on line 3 */
    } cases[] = {
        {"", "dag.yaml:2: components[0]: must have either path or chart"},
        {"path: a, chart: {repoURL: https://h/, name: n, version: 1.0.0}",
         "dag.yaml:2: components[0]: must have either path or chart"},
        {"path: /etc",
         "dag.yaml:3: components[0].path: must be a relative path with / between the parts"},
        {"path: a/../../b", "dag.yaml:3: components[0].path: may not lead through .. or .git"},
        {"path: a, timeout: '10'",
         "dag.yaml:3: components[0].timeout: \"10\" is not a duration (250ms, 90s, 1h30m; a day "
         "is 24h)"},
        {"path: a, timeout: 10",
         "dag.yaml:3: components[0].timeout: must be a duration with its unit, as 90s or 15m"},
        {"path: a, timeout: 0s",
         "dag.yaml:3: components[0].timeout: \"0s\" is no time to wait: 1ms is the least"},
        {"path: a, timeout: 1000h",
         "dag.yaml:3: components[0].timeout: \"1000h\" is longer than 168h, the most"},
        {"path: a, critical: 'yes'", "dag.yaml:3: components[0].critical: must be true or false"},
        {"path: a, namespace: Kube",
         "dag.yaml:3: components[0].namespace: must be a DNS label: at most 63 of a-z, 0-9 and "
         "-, no - at an end"},
        {"path: a, stack: 7",
         "dag.yaml:3: components[0].stack: must be a string; put it in quotes"},
        {"path: a, stack: null",
         "dag.yaml:3: components[0].stack: has no value: give it one or leave the key out"},
        {"path: a, dependson: [b]",
         "dag.yaml:3: components[0].dependson: is not known: \"dependson\" is none of name, stack, "
         "path, chart, namespace, dependsOn, critical, timeout, bootstrap; did you mean "
         "dependsOn?"},
        {"path: a, dependsOn: b", "dag.yaml:3: components[0].dependsOn: must be a list of strings"},
        {"path: a, dependsOn: [web]", "dag.yaml:3: components[0].dependsOn[0]: \"web\" depends on "
                                      "itself"},
        {"path: a, dependsOn: [db]",
         "dag.yaml:3: components[0].dependsOn[0]: there is no component \"db\""},
        {"chart: {repoURL: https://h/, name: n}",
         "dag.yaml:3: components[0].chart.version: is required"},
        {"chart: {repoURL: 'https://joe:pw@h/', name: n, version: 1.0.0}",
         "dag.yaml:3: components[0].chart.repoURL: has credentials in it: give them to Argo CD as "
         "a repository Secret"},
        {"chart: {repoURL: h/x, name: n, version: 1.0.0, values: 3}",
         "dag.yaml:3: components[0].chart.values: must be a mapping"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *text = df_strf("components:\n- {name: web,\n   %s}\n", cases[i].rest);
        MADE m = make(text, NULL, NULL);
        assert_faults(&m, cases[i].fault);
    }
}

static void each_fault_of_a_whole_file_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"", "dag.yaml: must be a mapping with keys"},
        {"a: [", "dag.yaml: bad YAML at 2:1: did not find expected node content"},
        {"component: []",
         "dag.yaml:1: component: is not known: \"component\" is none of components; did you mean "
         "components?\ndag.yaml:1: components: is required"},
        {"components: {a: {}, b: {}}", "dag.yaml:1: components: must be a list"},
        {"components: []", "dag.yaml:1: components: has 0 components, but must have 1 to 1000"},
        {"components:\n- web", "dag.yaml:2: components[0]: must be a mapping"},
        {"components:\n- {path: a}", "dag.yaml:2: components[0].name: is required"},
        {"components:\n- {name: Web_1, path: a}",
         "dag.yaml:2: components[0].name: must be a DNS label: at most 63 of a-z, 0-9 and -, no - "
         "at an end"},
        {"components:\n- {name: a, path: a}\n- {name: b, path: b}\n- {name: a, path: c}",
         "dag.yaml:4: components[2].name: \"a\" is the name of components[0], too"},
        {"components:\n- {name: cert-manager, path: a}\n- name: b\n  path: b\n  dependsOn:\n"
         "  - cert-manger",
         "dag.yaml:6: components[1].dependsOn[0]: there is no component \"cert-manger\"; did you "
         "mean cert-manager?"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        MADE m = make(cases[i].text, NULL, NULL);
        assert_faults(&m, cases[i].fault);
    }
}

static void a_cycle_is_printed_as_a_path(void **state)
{
    (void)state;
    MADE m = make("components:\n"
                  "- {name: first, path: p, dependsOn: [a]}\n"
                  "- {name: a, path: p, dependsOn: [b]}\n"
                  "- {name: b, path: p, dependsOn: [c]}\n"
                  "- {name: c, path: p, dependsOn: [a]}\n"
                  "- {name: x, path: p, dependsOn: [y]}\n"
                  "- {name: y, path: p, dependsOn: [x]}\n",
                  NULL, NULL);
    assert_faults(&m, "dag.yaml:3: components[1].dependsOn: is a cycle: a -> b -> c -> a\n"
                      "dag.yaml:6: components[4].dependsOn: is a cycle: x -> y -> x");
}

static void
what_comes_before_argo_cd_needs_files_and_depends_on_nothing_that_comes_after(void **state)
{
    (void)state;
    MADE m = make("components:\n"
                  "- {name: a, path: p}\n"
                  "- {name: b, path: p, bootstrap: true, dependsOn: [a]}\n"
                  "- {name: c, path: p, bootstrap: true, dependsOn: [b]}\n"
                  "- {name: d, bootstrap: true, chart: {repoURL: 'https://c.example', name: d, "
                  "version: '1'}}\n",
                  NULL, NULL);
    assert_faults(&m,
                  "dag.yaml:5: components[3]: has bootstrap and a chart: what comes before Argo "
                  "CD needs a path\n"
                  "dag.yaml:3: components[1].dependsOn: names \"a\", which is not of the "
                  "bootstrap, and comes after it");
}

static void all_faults_are_told_at_once(void **state)
{
    (void)state;
    struct df_scope scope = {DF_SCOPE_STACK, .name = (char[]){"none"}, (char[]){"stack:none"}};
    MADE m = make("components:\n"
                  "- {name: a, path: ../x, stack: one}\n"
                  "- {name: b, path: p, dependsOn: [a, d]}\n"
                  "- {name: c, path: p, timeout: 1d, dependsOn: [b]}\n"
                  "- {name: b, path: p}\n",
                  NULL, &scope);
    assert_int_equal(m.faults.lines.len, 5);
    struct df_err err = {0};
    assert_int_equal(df_faults_check(&m.faults, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, "InvalidInput");
    assert_string_equal(err.message,
                        "the input has 5 faults; the first: dag.yaml:2: components[0].path: may "
                        "not lead through .. or .git");
}

static void more_components_than_the_cap_are_a_fault(void **state)
{
    (void)state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    write_chain(&text, DF_LIMIT_COMPONENTS + 1);
    MADE m = make(df_buf_str(&text), NULL, NULL);
    assert_faults(&m, "dag.yaml:2: components: has 1001 components, but must have 1 "
                      "to 1000");
}

static void faults_beyond_the_cap_are_not_listed(void **state)
{
    (void)state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_INPUT_FILE);
    (void)df_buf_adds(&text, "components:\n");
    for (int i = 0; i < 2 * DF_LIMIT_INPUT_FAULTS; i++)
        (void)df_buf_addf(&text, "- {name: n%d, path: /}\n", i);
    MADE m = make(df_buf_str(&text), NULL, NULL);
    assert_int_equal(m.faults.lines.len, DF_LIMIT_INPUT_FAULTS + 1);
    assert_string_equal(m.faults.lines.items[DF_LIMIT_INPUT_FAULTS],
                        "there are more faults: mend these first");
}

static void a_fault_has_no_control_characters(void **state)
{
    (void)state;
    MADE m = make("\"a\\nb\": 1\ncomponents: [{name: a, path: a}]", NULL, NULL);
    assert_int_equal(m.faults.lines.len, 1);
    assert_non_null(strstr(m.faults.lines.items[0], "a?b"));
}

/* ---- a mounted file ---- */

static void a_mounted_dag_is_used_instead_of_the_repositorys(void **state)
{
    (void)state;
    MADE m = make(four, "components: [{name: other, path: p}]", NULL);
    assert_order(&m, "other");
    MADE alone = make(NULL, "components: [{name: other, path: p}]", NULL);
    assert_order(&alone, "other");
}

static void a_mounted_text_is_whole_unless_it_has_overrides(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_whole;
    } cases[] = {
        {"components: [{name: a, path: a}]", true},
        {"# not\noverrides:\n  only: [a]", false},
        {"{overrides: {only: [a]}}", false},
        {"# overrides:\ncomponents: []", true},
        {"a: [", true}, /* df_dag_make() tells the fault */
        {"", true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_dag_text text = text_of("dag.yaml", cases[i].text);
        if (df_dag_is_whole(&text) != cases[i].is_whole)
            fail_msg("%s", cases[i].text);
    }
}

static void overrides_replace_depends_on_and_timeout(void **state)
{
    (void)state;
    MADE m = make(four,
                  "overrides:\n"
                  "  components:\n"
                  "    cm: {dependsOn: [side], timeout: 5m}\n"
                  "    app: {dependsOn: []}\n",
                  NULL);
    assert_order(&m, "crds side cm app");
    assert_depends(&m, "cm", "side");
    assert_depends(&m, "app", "");
    assert_int_equal(df_dag_find(&m.dag, "cm")->timeout_ms, 5 * 60 * 1000);
    assert_in_scope(&m, "crds side cm app");
}

static void only_leaves_the_others_in_the_dag_but_out_of_scope(void **state)
{
    (void)state;
    MADE m = make(four, "overrides: {only: [app, side]}", NULL);
    assert_order(&m, "crds cm app side");
    assert_in_scope(&m, "app side");
    assert_depends(&m, "app", "cm");
}

static void each_fault_of_overrides_is_named_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"{}", "/config/dag.yaml:1: overrides: is required"},
        {"overrides:\n  only: []",
         "/config/dag.yaml:2: overrides.only: is empty: leave it out to keep all"},
        {"overrides:\n  only:\n  - crd",
         "/config/dag.yaml:3: overrides.only[0]: there is no component \"crd\"; did you mean "
         "crds?"},
        {"overrides:\n  only: crds",
         "/config/dag.yaml:2: overrides.only: must be a list of strings"},
        {"overrides:\n  components:\n    pap: {}",
         "/config/dag.yaml:3: overrides.components.pap: there is no component \"pap\"; did you "
         "mean app?"},
        {"overrides:\n  components:\n    app: {path: x}",
         "/config/dag.yaml:3: overrides.components.app.path: is not known: \"path\" is none of "
         "dependsOn, timeout"},
        {"overrides:\n  components:\n    app:\n      timeout: soon",
         "/config/dag.yaml:4: overrides.components.app.timeout: \"soon\" is not a duration (250ms, "
         "90s, 1h30m; a day is 24h)"},
        {"overrides:\n  components:\n    app:\n      dependsOn: [a]",
         "/config/dag.yaml:4: overrides.components.app.dependsOn[0]: there is no component \"a\""},
        {"overrides:\n  components:\n    app:\n      dependsOn: [app]",
         "/config/dag.yaml:4: overrides.components.app.dependsOn[0]: \"app\" depends on itself"},
        {"overrides:\n  components: [app]",
         "/config/dag.yaml:2: overrides.components: must be a mapping"},
        {"overrides:\n  components:\n    crds: {dependsOn: [app]}",
         "dag.yaml:2: components[0].dependsOn: is a cycle: crds -> app -> cm -> crds"},
        {"overrides: {}\ncomponents: [{name: a, path: a}]",
         "/config/dag.yaml:1: overrides: must not stand beside components: overrides change the "
         "DAG of the repository"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        MADE m = make(four, cases[i].text, NULL);
        assert_faults(&m, cases[i].fault);
    }
}

static void overrides_need_a_dag_of_the_repository(void **state)
{
    (void)state;
    static const char fault[] = "dag.yaml: is required: neither the repository has one at its root "
                                "nor is there one with components among the mounted files";
    MADE m = make(NULL, "overrides: {only: [a]}", NULL);
    assert_faults(&m, fault);
    MADE nothing = make(NULL, NULL, NULL);
    assert_faults(&nothing, fault);
}

static void overrides_are_no_key_of_the_repositorys_file(void **state)
{
    (void)state;
    MADE m = make("components: [{name: a, path: a}]\noverrides: {}", NULL, NULL);
    assert_faults(&m, "dag.yaml:2: overrides: is not known: \"overrides\" is none of components");
}

/* ---- scope ---- */

static void a_scope_takes_a_stack_or_an_app(void **state)
{
    (void)state;
    struct df_scope stack = {DF_SCOPE_STACK, .name = (char[]){"foundation"}};
    struct df_scope app = {DF_SCOPE_APP, .name = (char[]){"side"}};
    MADE one = make(four, NULL, &stack), other = make(four, NULL, &app);
    assert_in_scope(&one, "crds cm");
    assert_in_scope(&other, "side");
    assert_order(&other, "crds cm app side");
}

static void an_unknown_scope_is_refused_with_the_names_there_are(void **state)
{
    (void)state;
    struct df_scope stack = {DF_SCOPE_STACK, .name = (char[]){"none"}};
    struct df_scope app = {DF_SCOPE_APP, .name = (char[]){"none"}};
    MADE one = make(four, NULL, &stack), other = make(four, NULL, &app);
    assert_faults(&one, "TARGET_SCOPE: there is no stack \"none\"; there are: foundation, apps");
    assert_faults(&other, "TARGET_SCOPE: there is no app \"none\"; there are: crds, cm, app, side");
    MADE bare = make("components: [{name: a, path: a}]", NULL, &stack);
    assert_faults(&bare, "TARGET_SCOPE: there is no stack \"none\"; there are: none");
}

static void a_scope_of_which_only_leaves_nothing_is_refused(void **state)
{
    (void)state;
    struct df_scope app = {DF_SCOPE_APP, (char[]){"cm"}, (char[]){"app:cm"}};
    MADE m = make(four, "overrides: {only: [app]}", &app);
    assert_faults(&m, "TARGET_SCOPE: nothing of app:cm is in overrides.only of /config/dag.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_component_has_all_that_its_keys_say),
        cmocka_unit_test(a_component_needs_little_more_than_a_name),
        cmocka_unit_test(a_chart_comes_instead_of_a_path),
        cmocka_unit_test(an_order_that_is_right_stays),
        cmocka_unit_test(what_a_component_depends_on_comes_before_it),
        cmocka_unit_test(the_longest_chain_is_turned_round),
        cmocka_unit_test(each_fault_of_a_component_is_named_with_its_line),
        cmocka_unit_test(each_fault_of_a_whole_file_is_named),
        cmocka_unit_test(a_cycle_is_printed_as_a_path),
        cmocka_unit_test(
            what_comes_before_argo_cd_needs_files_and_depends_on_nothing_that_comes_after),
        cmocka_unit_test(all_faults_are_told_at_once),
        cmocka_unit_test(more_components_than_the_cap_are_a_fault),
        cmocka_unit_test(faults_beyond_the_cap_are_not_listed),
        cmocka_unit_test(a_fault_has_no_control_characters),
        cmocka_unit_test(a_mounted_dag_is_used_instead_of_the_repositorys),
        cmocka_unit_test(a_mounted_text_is_whole_unless_it_has_overrides),
        cmocka_unit_test(overrides_replace_depends_on_and_timeout),
        cmocka_unit_test(only_leaves_the_others_in_the_dag_but_out_of_scope),
        cmocka_unit_test(each_fault_of_overrides_is_named_with_its_line),
        cmocka_unit_test(overrides_need_a_dag_of_the_repository),
        cmocka_unit_test(overrides_are_no_key_of_the_repositorys_file),
        cmocka_unit_test(a_scope_takes_a_stack_or_an_app),
        cmocka_unit_test(an_unknown_scope_is_refused_with_the_names_there_are),
        cmocka_unit_test(a_scope_of_which_only_leaves_nothing_is_refused),
    };
    return cmocka_run_group_tests_name("platform_dag", tests, NULL, NULL);
}
