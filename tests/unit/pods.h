/*
 * pods.h - pods as a kubelet describes them, to be judged. Include behind cmocka.h.
 */
#ifndef DF_TEST_PODS_H
#define DF_TEST_PODS_H

#include "common/base/clock.h"
#include "spawner/engine/diagnosis/pod_diagnosis.h"
#include "tests/unit/kube_words.h"

#define SECOND INT64_C(1000000)
#define SINCE "2026-11-21T10:00:00Z" /* when the pod was not ready yet */
#define JOB "{'metadata':{'name':'j','uid':'ju'},'status':{'active':1}}"

static inline int64_t at(int64_t seconds)
{
    int64_t us = 0;
    assert_int_equal(df_time_parse(SINCE, &us, NULL), 0);
    return us + seconds * SECOND;
}

/* A verdict on a pod whose status is given; seconds after SINCE. The Job is there. was_claimed: its
 * runner has the step. */
static inline struct df_pod_diagnosis
judge_as(bool was_claimed, const char *pod, const char *events, int64_t seconds, int64_t deadline)
{
    DF_JSON cJSON *job = json(JOB), *p = pod ? json(pod) : NULL;
    DF_JSON cJSON *list = events ? json(events) : NULL;
    const struct df_pod_view view = {.job = job,
                                     .pod = p,
                                     .events = list,
                                     .container = "runner",
                                     .was_created = true,
                                     .had_pod = was_claimed,
                                     .now_us = at(seconds),
                                     .pending_deadline_us = deadline ? at(deadline) : 0};
    return df_pod_diagnose(&view);
}

static inline struct df_pod_diagnosis judge(const char *pod, const char *events, int64_t seconds,
                                            int64_t deadline)
{
    return judge_as(pod != NULL, pod, events, seconds, deadline);
}

#define POD(status)                                                                                \
    "{'metadata':{'name':'j-x','uid':'pu'},'spec':{'containers':[{'name':'runner'}]},'status':"    \
    "{" status "}}"
#define UNREADY                                                                                    \
    "'phase':'Pending','conditions':[{'type':'PodScheduled','status':'True'},{'type':'Ready',"     \
    "'status':'False','reason':'ContainersNotReady','message':'not "                               \
    "ready','lastTransitionTime':'" SINCE "'}]"
#define WAITING(reason, message)                                                                   \
    POD(UNREADY ",'containerStatuses':[{'name':'runner','state':{'waiting':{'reason':'" reason     \
                "','message':'" message "'}}}]")
#define INIT_WAITING(reason)                                                                       \
    POD(UNREADY ",'initContainerStatuses':[{'name':'i','state':{'terminated':{'exitCode':0}}},"    \
                "{'name':'k','state':{'waiting':{'reason':'" reason "','message':'m'}}}],"         \
                "'containerStatuses':[{'name':'runner','state':{'waiting':{'reason':"              \
                "'PodInitializing'}}}]")
#define TERMINATED(phase, more, container)                                                         \
    POD("'phase':'" phase "'" more                                                                 \
        ",'containerStatuses':[{'name':'runner','state':{'terminated':{" container "}}}]")
#define OTHER_TERMINATED(phase, container)                                                         \
    POD("'phase':'" phase "','containerStatuses':[{'name':'runner','state':{'terminated':{"        \
        "'exitCode':1}}},{'name':'side','state':{'terminated':{" container "}}}]")
#define SCHEDULED(type, status)                                                                    \
    POD("'phase':'Pending','conditions':[{'type':'" type "','status':'" status "'}]")

#define NONE DF_FAULT_NONE
#define USER DF_FAULT_USER
#define SYSTEM DF_FAULT_SYSTEM
#define WITHIN 10  /* seconds: in every grace */
#define AFTER 1000 /* beyond */

#endif
