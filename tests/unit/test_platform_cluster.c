/* Which cluster an action works on; test_platform_input.c has the rest of its input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/crypto/crypto.h"
#include "input_world.h"

static char *base64_of(const char *text)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_base64_encode(text, strlen(text), false, &b, NULL), 0);
    return df_buf_take(&b);
}

static void set_data(const char *kubeconfig)
{
    DF_FREE char *data = base64_of(kubeconfig);
    set("KUBECONFIG_PATH", NULL);
    set("KUBECONFIG_DATA", data);
}

static void a_kubeconfig_comes_from_a_variable_that_is_wiped(void **state)
{
    WORLD w = good_world(*state);
    set_data(KUBECONFIG);
    const char *in_environment = getenv("KUBECONFIG_DATA");
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.kube.server, "https://10.0.0.1:6443");
    assert_string_equal(w.in.kube.token, "hush");
    assert_string_equal(w.in.kube.source, "KUBECONFIG_DATA (context \"here\")");
    assert_null(getenv("KUBECONFIG_DATA"));
    assert_string_equal(in_environment, "");
}

static void base64_may_be_folded(void **state)
{
    WORLD w = good_world(*state);
    DF_FREE char *data = base64_of(KUBECONFIG);
    DF_FREE char *folded = df_strf("%.40s\n%s\n", data, data + 40);
    set("KUBECONFIG_PATH", NULL);
    set("KUBECONFIG_DATA", folded);
    load(&w);
    assert_good(&w);
}

static void the_path_wins_over_the_data_with_a_warning(void **state)
{
    WORLD w = good_world(*state);
    set_data("not: used");
    set("KUBECONFIG_PATH", w.kubeconfig);
    DF_FREE char *log = load_and_listen(&w);
    assert_good(&w);
    assert_true(df_starts_with(w.in.kube.source, w.kubeconfig));
    assert_non_null(strstr(log, "KUBECONFIG_PATH and KUBECONFIG_DATA are set"));
    assert_null(getenv("KUBECONFIG_DATA"));
}

static void each_fault_of_the_kubeconfig_has_its_word(void **state)
{
    static const struct {
        const char *data, *fault; /* data NULL: KUBECONFIG_DATA is no base64 */
    } cases[] = {
        {NULL, "KUBECONFIG_DATA: must be the base64 of a kubeconfig: "},
        {"contexts: [{name: a}, {name: b}]",
         "KUBECONFIG_DATA: no current-context; set it with `kubectl config use-context NAME` "
         "(there are: a, b)"},
        {"current-context: gone\ncontexts: [{name: a}]",
         "KUBECONFIG_DATA: there is no context \"gone\" (there are: a)"},
        {"- a list", "KUBECONFIG_DATA: must be a mapping with clusters, users and contexts"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        WORLD w = good_world(*state);
        set_data(cases[i].data ? cases[i].data : "");
        if (!cases[i].data)
            set("KUBECONFIG_DATA", "%%%");
        load(&w);
        assert_int_equal(w.faults.lines.len, 1);
        w.faults.lines.items[0][strlen(cases[i].fault)] = '\0';
        assert_faults(&w, cases[i].fault);
    }
}

static void a_kubeconfig_that_is_not_there_is_a_fault(void **state)
{
    WORLD w = good_world(*state);
    set("KUBECONFIG_PATH", "/nonexistent/config");
    load(&w);
    assert_faults(&w, "KUBECONFIG_PATH: open /nonexistent/config: No such file or directory");
}

static void without_a_kubeconfig_it_must_be_a_pod(void **state)
{
    WORLD w = good_world(*state);
    set("KUBECONFIG_PATH", NULL);
    set("KUBECONFIG", w.kubeconfig); /* not asked for */
    set("HOME", w.dir);
    load(&w);
    assert_faults(&w,
                  "KUBECONFIG_PATH: is required, as ~/.kube/config, or KUBECONFIG_DATA: this is "
                  "no pod, whose service account would do; KUBECONFIG is set, but not looked "
                  "at: name the file in KUBECONFIG_PATH");
    set("KUBECONFIG", NULL);
    load(&w);
    assert_faults(&w,
                  "KUBECONFIG_PATH: is required, as ~/.kube/config, or KUBECONFIG_DATA: this is "
                  "no pod, whose service account would do");

    set("KUBERNETES_SERVICE_HOST", "10.96.0.1");
    load(&w);
    assert_faults(&w, "KUBECONFIG_PATH: is required, or KUBECONFIG_DATA: this pod has no service "
                      "account token (DIR/account/token); set automountServiceAccountToken: true "
                      "in its spec");

    put(w.dir, "account/token", "hush");
    load(&w);
    assert_good(&w);
    assert_string_equal(w.in.kube.server, "https://10.96.0.1:443");
}

/* An agent of a CI system sets it in its pods: what it names is another cluster than the pod's. */
static void a_pod_with_a_kubeconfig_that_does_not_count_is_warned(void **state)
{
    WORLD w = good_world(*state);
    put(w.dir, "account/token", "hush");
    set("KUBECONFIG_PATH", NULL);
    set("KUBERNETES_SERVICE_HOST", "10.96.0.1");
    set("KUBECONFIG", w.kubeconfig);
    DF_FREE char *log = load_and_listen(&w);
    assert_good(&w);
    assert_non_null(strstr(log, "the pod's service account counts; KUBECONFIG is set, but not "
                                "looked at: name the file in KUBECONFIG_PATH"));
    set("KUBECONFIG", NULL);
    DF_FREE char *silent = load_and_listen(&w);
    assert_string_equal(silent, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_kubeconfig_comes_from_a_variable_that_is_wiped),
        scratch_test(base64_may_be_folded),
        scratch_test(the_path_wins_over_the_data_with_a_warning),
        scratch_test(each_fault_of_the_kubeconfig_has_its_word),
        scratch_test(a_kubeconfig_that_is_not_there_is_a_fault),
        scratch_test(without_a_kubeconfig_it_must_be_a_pod),
        scratch_test(a_pod_with_a_kubeconfig_that_does_not_count_is_warned),
    };
    int result = cmocka_run_group_tests_name("platform_cluster", tests, NULL, NULL);
    clear_variables();
    return result;
}
