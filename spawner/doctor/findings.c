/* findings.c - how a check reports what it found. */
#include <stdarg.h>

#include "spawner/doctor/checks.h"

static int add_finding(cJSON *findings, const char *check, enum df_level level, const char *message)
{
    static const char *const words[] = {"ok", "warn", "fail"};
    return df_json_append(findings,
                          df_json_object(DF_STR("check", check), DF_STR("level", words[level]),
                                         DF_STR("message", message)),
                          NULL);
}

void df_finding(struct df_doctor_context *p, enum df_level level, const char *fmt, ...)
{
    char message[1200];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    p->counts[level]++;
    if (add_finding(p->findings, p->check, level, message) < 0)
        p->is_oom = true;
}

int64_t df_clock_skew(int64_t from_us, int64_t at_us, int64_t slack_us, int64_t to_us)
{
    if (at_us + slack_us < from_us)
        return at_us + slack_us - from_us;
    return at_us > to_us ? at_us - to_us : 0;
}

/* From 30 s on (DF_JWT_LEEWAY_S) valid tokens are refused, or expired ones are accepted. */
void df_finding_skew(struct df_doctor_context *p, const char *whose, int64_t skew_us)
{
    int64_t off_s = (skew_us < 0 ? -skew_us : skew_us) / 1000000;
    const char *where = skew_us < 0 ? "behind" : "ahead of";
    if (off_s < 5)
        df_finding(p, DF_LEVEL_OK, "%s and this machine's agree", whose);
    else
        df_finding(
            p, off_s < 30 ? DF_LEVEL_WARN : DF_LEVEL_FAIL,
            "%s is %lld s %s this machine's: tokens and certificates are taken for expired or "
            "not yet valid; let both keep time by NTP",
            whose, (long long)off_s, where);
}
