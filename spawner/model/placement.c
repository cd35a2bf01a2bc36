/*
 * The fields of docs/placement.md as tables. They have the shapes of core/v1.
 */
#include "spawner/model/placement.h"

#include "spawner/model/placement_rules.h"
#include "spawner/model/rows.h"

#define SUBDOMAIN(field, ...) STRING(field, 253, .rule = df_rule_subdomain, __VA_ARGS__)
#define KEY(field, ...) STRING(field, 317, .rule = df_rule_label_key, __VA_ARGS__)
#define MOUNT_PATH STRING("mountPath", 512, .flags = DF_REQUIRED, .rule = df_rule_mount_path)
#define LABEL_VALUE(field)                                                                         \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_STRING, .max = 63                                         \
    }
#define LABEL_TEXT(field)                                                                          \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_STRING, .max = 63, .rule = df_rule_label_value            \
    }
#define QUANTITY(field)                                                                            \
    {                                                                                              \
        .name = (field), .rule = df_rule_quantity                                                  \
    }
#define NEEDED .flags = DF_REQUIRED
#define MODE(field) WHOLE(field, 0, 0777)
#define ID(field)                                                                                  \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_WHOLE, .max = INT32_MAX                                   \
    }

static const struct df_field text = {.type = DF_TYPE_STRING, .max = 1024};
static const struct df_field label = LABEL_VALUE(NULL); /* item of a map whose rule checks it */
static const struct df_field label_text = LABEL_TEXT(NULL);
static const struct df_field key_item = KEY(NULL);
static const struct df_field subdomain_item = SUBDOMAIN(NULL);
static const struct df_field annotation = {
    .type = DF_TYPE_STRING, .flags = DF_LINES, .max = DF_LIMIT_ANNOTATION};

/* ---- references ---- */

static const struct df_field ref[] = {SUBDOMAIN("name", NEEDED), {0}};
static const struct df_field ref_item = OBJECT(NULL, ref);
static const struct df_field optional_ref[] = {SUBDOMAIN("name", NEEDED), BOOL("optional"), {0}};
static const struct df_field key_ref[] = {
    SUBDOMAIN("name", NEEDED), STRING("key", 253, NEEDED), BOOL("optional"), {0}};

/* ---- scheduling ---- */

static const char *const toleration_operators[] = {"Exists", "Equal", NULL};
static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
static const struct df_field toleration[] = {
    KEY("key"),
    WORD("operator", toleration_operators),
    LABEL_TEXT("value"),
    WORD("effect", effects),
    {.name = "tolerationSeconds", .type = DF_TYPE_WHOLE, .min = -1, .max = INT32_MAX},
    {0}};
static const struct df_field toleration_item = OBJECT(NULL, toleration, .rule = df_rule_toleration);

static const char *const node_operators[] = {"In", "NotIn", "Exists", "DoesNotExist",
                                             "Gt", "Lt",    NULL};
static const struct df_field node_expression[] = {KEY("key", NEEDED),
                                                  WORD("operator", node_operators, NEEDED),
                                                  LIST("values", &label_text, 1000),
                                                  {0}};
static const struct df_field node_expression_item =
    OBJECT(NULL, node_expression, .rule = df_rule_expression);
static const struct df_field field_expression[] = {STRING("key", 253, NEEDED),
                                                   WORD("operator", node_operators, NEEDED),
                                                   LIST("values", &text, 1000),
                                                   {0}};
static const struct df_field field_expression_item =
    OBJECT(NULL, field_expression, .rule = df_rule_expression);
static const struct df_field node_term[] = {LIST("matchExpressions", &node_expression_item, 100),
                                            LIST("matchFields", &field_expression_item, 100),
                                            {0}};
static const struct df_field node_term_item = OBJECT(NULL, node_term);
static const struct df_field node_selector[] = {
    LIST("nodeSelectorTerms", &node_term_item, 100, .min = 1, NEEDED), {0}};
static const struct df_field preferred_node[] = {
    WHOLE("weight", 1, 100, NEEDED), OBJECT("preference", node_term, NEEDED), {0}};
static const struct df_field preferred_node_item = OBJECT(NULL, preferred_node);
static const struct df_field node_affinity[] = {
    OBJECT("requiredDuringSchedulingIgnoredDuringExecution", node_selector),
    LIST("preferredDuringSchedulingIgnoredDuringExecution", &preferred_node_item, 100),
    {0}};

static const char *const label_operators[] = {"In", "NotIn", "Exists", "DoesNotExist", NULL};
static const struct df_field label_expression[] = {KEY("key", NEEDED),
                                                   WORD("operator", label_operators, NEEDED),
                                                   LIST("values", &label_text, 1000),
                                                   {0}};
static const struct df_field label_expression_item =
    OBJECT(NULL, label_expression, .rule = df_rule_expression);
static const struct df_field label_selector[] = {
    MAP("matchLabels", &label, .max = DF_LIMIT_LABELS, .rule = df_rule_labels),
    LIST("matchExpressions", &label_expression_item, 100),
    {0}};

static const struct df_field pod_term[] = {OBJECT("labelSelector", label_selector),
                                           KEY("topologyKey", NEEDED),
                                           LIST("namespaces", &subdomain_item, 100),
                                           OBJECT("namespaceSelector", label_selector),
                                           LIST("matchLabelKeys", &key_item, 100),
                                           LIST("mismatchLabelKeys", &key_item, 100),
                                           {0}};
static const struct df_field pod_term_item = OBJECT(NULL, pod_term);
static const struct df_field preferred_pod[] = {
    WHOLE("weight", 1, 100, NEEDED), OBJECT("podAffinityTerm", pod_term, NEEDED), {0}};
static const struct df_field preferred_pod_item = OBJECT(NULL, preferred_pod);
static const struct df_field pod_affinity[] = {
    LIST("requiredDuringSchedulingIgnoredDuringExecution", &pod_term_item, 100),
    LIST("preferredDuringSchedulingIgnoredDuringExecution", &preferred_pod_item, 100),
    {0}};
static const struct df_field affinity[] = {OBJECT("nodeAffinity", node_affinity),
                                           OBJECT("podAffinity", pod_affinity),
                                           OBJECT("podAntiAffinity", pod_affinity),
                                           {0}};

static const char *const unsatisfiable[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
static const char *const spread_policies[] = {"Honor", "Ignore", NULL};
static const struct df_field spread[] = {WHOLE("maxSkew", 1, INT32_MAX, NEEDED),
                                         KEY("topologyKey", NEEDED),
                                         WORD("whenUnsatisfiable", unsatisfiable, NEEDED),
                                         OBJECT("labelSelector", label_selector),
                                         WHOLE("minDomains", 1, INT32_MAX),
                                         WORD("nodeAffinityPolicy", spread_policies),
                                         WORD("nodeTaintsPolicy", spread_policies),
                                         LIST("matchLabelKeys", &key_item, 100),
                                         {0}};
static const struct df_field spread_item = OBJECT(NULL, spread);

/* ---- resources ---- */

static const struct df_field quantity = QUANTITY(NULL);
const struct df_field df_resources_rows[] = {
    MAP("requests", &quantity, .max = 32), MAP("limits", &quantity, .max = 32), {0}};

/* ---- environment ---- */

static const struct df_field field_ref[] = {
    STRING("fieldPath", 512, NEEDED), STRING("apiVersion", 16), {0}};
static const struct df_field resource_ref[] = {
    STRING("resource", 128, NEEDED), STRING("containerName", 63), QUANTITY("divisor"), {0}};
static const struct df_field env_source[] = {OBJECT("secretKeyRef", key_ref),
                                             OBJECT("configMapKeyRef", key_ref),
                                             OBJECT("fieldRef", field_ref),
                                             OBJECT("resourceFieldRef", resource_ref),
                                             {0}};
static const struct df_field env_entry[] = {
    STRING("name", 256, NEEDED),
    {.name = "value", .type = DF_TYPE_STRING, .flags = DF_LINES, .max = DF_LIMIT_ENVIRONMENT_VALUE},
    OBJECT("valueFrom", env_source, .rule = df_rule_env_source),
    {0}};
static const struct df_field env_item = OBJECT(NULL, env_entry);
static const struct df_field env_from[] = {{.name = "prefix", .type = DF_TYPE_STRING, .max = 256},
                                           OBJECT("secretRef", optional_ref),
                                           OBJECT("configMapRef", optional_ref),
                                           {0}};
static const struct df_field env_from_item = OBJECT(NULL, env_from, .rule = df_rule_env_from);

/* ---- volumes ---- */

static const struct df_field file[] = {
    STRING("key", 253, NEEDED), STRING("path", 512, NEEDED), MODE("mode"), {0}};
static const struct df_field file_item = OBJECT(NULL, file);

/* A mount of a whole Secret or ConfigMap, or of some of its keys. */
static const struct df_field object_mount[] = {
    SUBDOMAIN("name", NEEDED), MOUNT_PATH,       LIST("items", &file_item, 256, .min = 1),
    MODE("defaultMode"),       BOOL("optional"), {0}};
static const struct df_field object_mount_item = OBJECT(NULL, object_mount);

static const char *const media[] = {"Memory", "HugePages", NULL};
static const struct df_field empty_dir[] = {WORD("medium", media), QUANTITY("sizeLimit"), {0}};
static const struct df_field claim[] = {SUBDOMAIN("claimName", NEEDED), BOOL("readOnly"), {0}};
static const struct df_field secret_source[] = {SUBDOMAIN("secretName", NEEDED),
                                                LIST("items", &file_item, 256, .min = 1),
                                                MODE("defaultMode"),
                                                BOOL("optional"),
                                                {0}};
static const struct df_field config_map_source[] = {SUBDOMAIN("name", NEEDED),
                                                    LIST("items", &file_item, 256, .min = 1),
                                                    MODE("defaultMode"),
                                                    BOOL("optional"),
                                                    {0}};
static const struct df_field csi[] = {STRING("driver", 63, NEEDED),
                                      BOOL("readOnly"),
                                      STRING("fsType", 64),
                                      MAP("volumeAttributes", &text, .max = 100),
                                      OBJECT("nodePublishSecretRef", ref),
                                      {0}};
static const struct df_field nfs[] = {
    STRING("server", 253, NEEDED), STRING("path", 1024, NEEDED), BOOL("readOnly"), {0}};
static const char *const pull_policies[] = {"Always", "IfNotPresent", "Never", NULL};
static const struct df_field image_source[] = {
    STRING("reference", 512, NEEDED, .rule = df_rule_image),
    WORD("pullPolicy", pull_policies),
    {0}};
static const struct df_field volume[] = {NAME("name", NEEDED),
                                         MOUNT_PATH,
                                         STRING("subPath", 512),
                                         BOOL("readOnly"),
                                         OBJECT("emptyDir", empty_dir),
                                         OBJECT("persistentVolumeClaim", claim),
                                         OBJECT("secret", secret_source),
                                         OBJECT("configMap", config_map_source),
                                         OBJECT("csi", csi),
                                         OBJECT("nfs", nfs),
                                         OBJECT("image", image_source),
                                         {0}};
static const struct df_field volume_item = OBJECT(NULL, volume, .rule = df_rule_volume);

static const struct df_field plugin_cache[] = {
    SUBDOMAIN("claimName", NEEDED), MOUNT_PATH, BOOL("readOnly"), BOOL("optional"), {0}};

/* ---- security ---- */

static const char *const profile_types[] = {"RuntimeDefault", "Unconfined", "Localhost", NULL};
static const struct df_field profile[] = {
    WORD("type", profile_types, NEEDED), STRING("localhostProfile", 512), {0}};
static const struct df_field selinux[] = {
    STRING("user", 128), STRING("role", 128), STRING("type", 128), STRING("level", 128), {0}};
static const char *const group_changes[] = {"OnRootMismatch", "Always", NULL};
static const char *const group_policies[] = {"Merge", "Strict", NULL};
static const struct df_field id_item = ID(NULL);
static const struct df_field sysctl[] = {
    STRING("name", 253, NEEDED), STRING("value", 1024, NEEDED), {0}};
static const struct df_field sysctl_item = OBJECT(NULL, sysctl);
static const struct df_field pod_security[] = {ID("runAsUser"),
                                               ID("runAsGroup"),
                                               BOOL("runAsNonRoot"),
                                               ID("fsGroup"),
                                               WORD("fsGroupChangePolicy", group_changes),
                                               LIST("supplementalGroups", &id_item, 100),
                                               WORD("supplementalGroupsPolicy", group_policies),
                                               OBJECT("seccompProfile", profile),
                                               OBJECT("appArmorProfile", profile),
                                               OBJECT("seLinuxOptions", selinux),
                                               LIST("sysctls", &sysctl_item, 100),
                                               {0}};
static const struct df_field capability = STRING(NULL, 64);
static const struct df_field capabilities[] = {
    LIST("add", &capability, 64), LIST("drop", &capability, 64), {0}};
static const char *const proc_mounts[] = {"Default", "Unmasked", NULL};
static const struct df_field container_security[] = {ID("runAsUser"),
                                                     ID("runAsGroup"),
                                                     BOOL("runAsNonRoot"),
                                                     BOOL("privileged"),
                                                     BOOL("allowPrivilegeEscalation"),
                                                     BOOL("readOnlyRootFilesystem"),
                                                     OBJECT("capabilities", capabilities),
                                                     WORD("procMount", proc_mounts),
                                                     OBJECT("seccompProfile", profile),
                                                     OBJECT("appArmorProfile", profile),
                                                     OBJECT("seLinuxOptions", selinux),
                                                     {0}};

/* ---- DNS ---- */

static const struct df_field nameserver = STRING(NULL, 45, .rule = df_rule_ip);
static const struct df_field search = STRING(NULL, 253);
static const struct df_field dns_option[] = {
    STRING("name", 128, NEEDED), {.name = "value", .type = DF_TYPE_STRING, .max = 128}, {0}};
static const struct df_field dns_option_item = OBJECT(NULL, dns_option);
/* The counts are the limits of Kubernetes: a resolver reads no more. */
static const struct df_field dns_config[] = {LIST("nameservers", &nameserver, 3),
                                             LIST("searches", &search, 32),
                                             LIST("options", &dns_option_item, 32),
                                             {0}};
static const char *const dns_policies[] = {"ClusterFirst", "ClusterFirstWithHostNet", "Default",
                                           "None", NULL};

/* ---- the placement ---- */

const struct df_field df_placement_rows[] = {
    STRING("image", 512, .rule = df_rule_image),
    WORD("imagePullPolicy", pull_policies),
    LIST("imagePullSecrets", &ref_item, 32),
    MAP("nodeSelector", &label, .max = DF_LIMIT_LABELS, .rule = df_rule_labels),
    LIST("tolerations", &toleration_item, DF_LIMIT_TOLERATIONS),
    OBJECT("affinity", affinity),
    LIST("topologySpreadConstraints", &spread_item, 32),
    SUBDOMAIN("priorityClassName"),
    SUBDOMAIN("runtimeClassName"),
    SUBDOMAIN("serviceAccountName"),
    OBJECT("resources", df_resources_rows, .rule = df_rule_resources),
    MAP("labels", &label, .max = DF_LIMIT_LABELS, .rule = df_rule_pod_labels),
    MAP("annotations", &annotation, .max = DF_LIMIT_LABELS, .rule = df_rule_pod_metadata),
    MAP("podAnnotations", &annotation, .max = DF_LIMIT_LABELS, .rule = df_rule_pod_metadata),
    BOOL("podPerStep"),
    LIST("env", &env_item, DF_LIMIT_ENVIRONMENT, .rule = df_rule_env),
    LIST("envFrom", &env_from_item, DF_LIMIT_MOUNTS),
    LIST("volumes", &volume_item, DF_LIMIT_MOUNTS),
    LIST("secretMounts", &object_mount_item, DF_LIMIT_MOUNTS),
    LIST("configMapMounts", &object_mount_item, DF_LIMIT_MOUNTS),
    OBJECT("pluginCache", plugin_cache),
    OBJECT("podSecurityContext", pod_security, .rule = df_rule_user_context),
    OBJECT("securityContext", container_security, .rule = df_rule_container_user),
    WORD("dnsPolicy", dns_policies),
    OBJECT("dnsConfig", dns_config),
    {.name = "podTemplate", .rule = df_rule_pod_template},
    {0},
};

int df_placement_check(cJSON *placement, const char *where, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0}, path = {&root, where, 0};
    if (!cJSON_IsObject(placement))
        return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement", "%s: must be an object", where);
    df_schema_check(df_placement_rows, placement, NULL, &path, &f);
    if (!f.count)
        df_rule_placement(placement, &path, &f);
    return df_faults_fail(&f, "InvalidPlacement", "", err);
}
