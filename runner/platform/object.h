/*
 * object.h - one object of any kind: read, compared with what is wanted, applied.
 *
 * A second apply of the same object must write nothing. The fields that are wanted are compared
 * first, which costs a read; where they differ, a server-side apply as a dry run says what the
 * object would be: the server writes some values in another form (cpu: 0.5 as 500m), and only it
 * knows which. Only a result that differs from the object is written. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_OBJECT_H
#define DF_PLATFORM_OBJECT_H

#include "runner/platform/kinds.h"
#include "runner/platform/telemetry.h"

/* Of the fields that we write; also of Argo CD's objects. */
#define DF_PLATFORM_MANAGER "dayfly"
/* Whose an object is: the environment's name. Everything that we make has it, and what others made
 * has not, unless a person handed it over so. */
#define DF_LABEL_ENVIRONMENT "dayfly.dev/environment"

enum df_applied { DF_APPLIED_SAME, DF_APPLIED_NEW, DF_APPLIED_CHANGED };

struct df_objects {
    struct df_kube *kube;    /* borrowed */
    const char *environment; /* whose objects they are; borrowed */
    struct df_kinds kinds;
    struct df_telemetry *telemetry; /* is told of each write; borrowed, or NULL */
    bool dry_run;                   /* nothing is written; what would be is counted all the same */
    unsigned writes;                /* objects */
    const volatile bool *stop;      /* ends a call soon; or NULL */
};

/* Where an object is; its strings are borrowed from the object and from o. An object without a
 * namespace whose kind has one is in name_space. */
struct df_object_place {
    struct df_kube_resource resource;
    struct df_kube_at at; /* .resource is not set: see df_object_at() */
};
int df_object_place(struct df_objects *o, const cJSON *object, const char *name_space,
                    struct df_object_place *ret, struct df_err *err) DF_MUST_CHECK;
/* To be used as long as the place lives. */
struct df_kube_at df_object_at(const struct df_object_place *place);

/* NULL in *ret: there is none. The caller owns it. */
int df_object_read(struct df_objects *o, const struct df_kube_at *at, cJSON **ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Creates the object or sets its fields, as the manager DF_PLATFORM_MANAGER. live: as it was read,
 * NULL if there is none. *ret_object: as it is now, owned; may be NULL. */
int df_object_apply_over(struct df_objects *o, const struct df_kube_at *at, const cJSON *live,
                         const cJSON *wanted, enum df_applied *ret, cJSON **ret_object,
                         struct df_err *err) DF_MUST_CHECK;
/* The same with df_object_place() and df_object_read() before, and with our label. What others made
 * stays as it is: DENIED, reason NotOurs, if it is not as it is wanted. */
int df_object_apply(struct df_objects *o, const cJSON *wanted, const char *name_space,
                    enum df_applied *ret, struct df_err *err) DF_MUST_CHECK;

/* Every write but a deletion goes through here: it is counted and told to the telemetry. In a dry
 * run it is counted alone. *ret: as it is now, owned; may be NULL. */
int df_object_patch(struct df_objects *o, const struct df_kube_at *at,
                    const struct df_kube_patch *patch, cJSON **ret,
                    struct df_err *err) DF_MUST_CHECK;

/* Deletes the object and counts it. One that is not there is no failure. uid: of the one that is
 * meant; CONFLICT: another one has its name by now. */
int df_object_delete(struct df_objects *o, const struct df_kube_at *at, const char *uid,
                     struct df_err *err) DF_MUST_CHECK;

/* True if the object has our label. */
bool df_object_is_ours(const struct df_objects *o, const cJSON *live);

/* True if live has every field of wanted with its value (of an array every item, in order), and we
 * own no further one of it. */
bool df_object_has(const cJSON *live, const cJSON *wanted);

#endif
