/*
 * placement_rules.h - rules of a placement that a table cannot express; for spawner/model only.
 * They are those of Kubernetes' API server (pkg/apis/core/validation), with our own messages.
 */
#ifndef DF_PLACEMENT_RULES_H
#define DF_PLACEMENT_RULES_H

#include "spawner/model/schema.h"

/* kube_rules.c: strings and small objects of Kubernetes */
df_rule df_rule_subdomain;    /* a name of most objects */
df_rule df_rule_label_key;    /* name or prefix/name */
df_rule df_rule_label_value;  /* at most 63 of A-Z a-z 0-9 . _ - */
df_rule df_rule_quantity;     /* "500m", "1.5Gi" */
df_rule df_rule_image;        /* a reference that a kubelet can parse */
df_rule df_rule_resources;    /* known names, no request above its limit */
df_rule df_rule_toleration;   /* operator, value, effect and seconds fit together */
df_rule df_rule_expression;   /* of a node selector or a label selector: operator and values fit */
df_rule df_rule_ip;           /* an IPv4 or IPv6 address */
df_rule df_rule_pod_labels;   /* as df_rule_labels, without labels that the service sets */
df_rule df_rule_pod_metadata; /* the same for annotations */

/* placement_rules.c: parts of a placement */
df_rule df_rule_mount_path;     /* absolute, and none of the runner's own */
df_rule df_rule_volume;         /* exactly one source; a name that is not ours */
df_rule df_rule_env;            /* value or valueFrom; no name twice */
df_rule df_rule_env_source;     /* exactly one source */
df_rule df_rule_env_from;       /* secretRef or configMapRef */
df_rule df_rule_user_context;   /* runAsNonRoot and a user of 0 exclude each other */
df_rule df_rule_container_user; /* the same, and privileges need privilege escalation */
df_rule df_rule_pod_template;   /* a patch, or a list of patches */

#endif
