/*
 * leader.c - where the replica is to which runners send what follows their claim. Whether pods
 * reach it is for the probe to find out.
 */
#include "common/base/clock.h"
#include "common/kube/lease.h"
#include "spawner/doctor/checks.h"

/* The address of a holder that has gone says nothing of the network. */
static bool is_held(const cJSON *lease, int64_t now_us)
{
    const char *renewed = df_json_str(lease, "spec.renewTime");
    int64_t lasts_us = df_json_int(lease, "spec.leaseDurationSeconds", 0) * 1000000, at_us = 0;
    return renewed && df_time_parse(renewed, &at_us, NULL) == 0 && now_us < at_us + lasts_us;
}

int df_find_leader(struct df_doctor_context *p, char **ret, struct df_err *err)
{
    const char *name = p->config.election_lease;
    const struct df_kube_at at = {
        .resource = &df_kube_leases, .name_space = p->service_ns, .name = name};
    DF_JSON cJSON *lease = NULL;
    struct df_err why = {0};
    *ret = NULL;
    if (!p->config.elects)
        return 0;
    if (df_kube_get(p->kube, &at, &lease, &why) < 0) {
        df_finding(p, DF_LEVEL_WARN,
                   "whether pods reach the replica that leads is not checked, because the Lease %s "
                   "in the namespace %s cannot be read: %.300s",
                   name, p->service_ns, why.message);
        return 0;
    }
    const char *address = df_kube_annotation(lease, DF_LEASE_ADDRESS);
    if (!address || !df_starts_with(address, "https://"))
        return 0;
    if (!is_held(lease, df_real_us())) {
        df_finding(p, DF_LEVEL_WARN,
                   "whether pods reach the replica that leads is not checked, because none leads: "
                   "the Lease %s in the namespace %s is not renewed",
                   name, p->service_ns);
        return 0;
    }
    return df_check_alloc(*ret = strdup(address), err);
}
