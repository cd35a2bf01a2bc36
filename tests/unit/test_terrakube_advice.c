#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/source/git.h"
#include "runner/terrakube/advice.h"

static void a_user_of_terrakube_is_told_ways_out_of_terrakube(void **state)
{
    (void)state;
    static const struct {
        const char *what, *summary, *detail, *says;
    } table[] = {
        {"tofu plan", "Error acquiring the state lock",
         "x Lock Info: ID: 7b-1 Path: p Operation: OperationTypeApply Who: me@host Version: 1 "
         "Created: 2026-01-01 10:00:00 +0000 UTC Info:",
         "`tofu force-unlock 7b-1` with this workspace's backend if its holder is gone"},
        {"terraform apply", "Error acquiring the state lock",
         "already locked: ID=7b-1 \n Lock Info: ID: 2 Path: p Operation: o Who: me Version: 1 "
         "Created: x Info:",
         "`terraform force-unlock 7b-1`"},
        {"tofu plan", "No valid credential sources found", "", "sensitive environment variables"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_failure f = {.summary = ""};
        struct df_err err = {0};
        (void)snprintf(f.summary, sizeof f.summary, "%s", table[i].summary);
        (void)snprintf(f.detail, sizeof f.detail, "%s", table[i].detail);
        assert_int_equal(
            df_failure_explain(&f, table[i].what, "PlanFailed", &df_terrakube_failure_advice, &err),
            -1);
        if (!strstr(err.message, table[i].says) || strstr(err.message, "dayfly"))
            fail_msg("%s", err.message);
    }
}

static void a_user_of_terrakube_is_not_sent_to_secrets_of_dayfly(void **state)
{
    (void)state;
    static const struct {
        const char *said, *message;
    } cases[] = {
        {"fatal: could not read Username for 'https://h'", "VCS connection or SSH key to the work"},
        {"fatal: could not read Password for 'https://h'", "VCS connection or SSH key to the work"},
        {"remote: x\nfatal: Authentication failed for 'https://h'", "VCS connection: renew them"},
        {"Load key \"k\": error in libcrypto", "the workspace's SSH key must be"},
        {"Host key verification failed.", "DAYFLY_KNOWN_HOSTS"},
        {"REMOTE HOST IDENTIFICATION HAS CHANGED", "DAYFLY_KNOWN_HOSTS"},
        {"SSL certificate problem: self-signed", "must trust its CA"},
        {"server certificate verification failed", "must trust its CA"},
        {"fatal: couldn't find remote ref refs/heads/x", "there is no such branch or tag"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_int_equal(df_git_explain("U", 9, cases[i].said, &df_terrakube_source_advice, &err),
                         -1);
        if (!strstr(err.message, cases[i].message) || strstr(err.message, "secret"))
            fail_msg("%s", err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_of_terrakube_is_told_ways_out_of_terrakube),
        cmocka_unit_test(a_user_of_terrakube_is_not_sent_to_secrets_of_dayfly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
