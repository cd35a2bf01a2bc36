/*
 * kube_rules.c - the API server's rules of single values: names, images, quantities, resources,
 * scheduling. placement_rules.c has the rules about several values together.
 */
#include "spawner/model/placement_rules.h"

#include <arpa/inet.h>
#include <math.h>

#include "common/base/parse.h"
#include "spawner/model/placement.h"
#include "spawner/model/rules.h"

/* ---- names ---- */

bool df_is_dns_subdomain(const char *s)
{
    if (strlen(s) > 253)
        return false;
    for (;;) {
        size_t n = strcspn(s, ".");
        char label[64];
        if (n >= sizeof(label))
            return false;
        (void)snprintf(label, sizeof(label), "%.*s", (int)n, s);
        if (!df_is_dns_label(label))
            return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
}

void df_rule_subdomain(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!df_is_dns_subdomain(value->valuestring))
        df_fault(f, path, "\"%.64s\" is not a valid name (a-z, 0-9, - and ., at most 253)",
                 value->valuestring);
}

void df_rule_label_key(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    /* The rule for keys takes a map: pass a map with one member. */
    cJSON member = {.type = cJSON_String, .string = value->valuestring};
    const cJSON map = {.type = cJSON_Object, .child = &member};
    df_rule_annotation_keys(&map, path, f);
}

void df_rule_label_value(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    char key[] = "value";
    cJSON member = {.type = cJSON_String, .string = key, .valuestring = value->valuestring};
    const cJSON map = {.type = cJSON_Object, .child = &member};
    df_rule_labels(&map, path, f);
}

void df_rule_ip(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    unsigned char address[16];
    if (inet_pton(AF_INET, value->valuestring, address) != 1 &&
        inet_pton(AF_INET6, value->valuestring, address) != 1)
        df_fault(f, path, "\"%.64s\" is no IP address", value->valuestring);
}

/* Labels that the service, the Job controller or the API server sets. */
static const char *const reserved_keys[] = {"dayfly.dev/", "batch.kubernetes.io/", "kubernaut.ai/",
                                            "job-name", "controller-uid"};

static void refuse_reserved(const cJSON *map, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *m = map->child; m; m = m->next)
        for (size_t i = 0; i < DF_ARRAY_SIZE(reserved_keys); i++)
            if (df_starts_with(m->string, reserved_keys[i]) &&
                (df_ends_with(reserved_keys[i], "/") || df_streq(m->string, reserved_keys[i])))
                df_fault(f, path, "\"%.64s\" is set by the service; leave it out", m->string);
}

void df_rule_pod_labels(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    df_rule_labels(value, path, f);
    refuse_reserved(value, path, f);
}

void df_rule_pod_metadata(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    df_rule_annotation_keys(value, path, f);
    refuse_reserved(value, path, f);
}

/* ---- images ---- */

/* The path in host[:port]/path[:tag][@digest]. The text before the first slash is a host if it
 * looks like one. */
static const char *image_path(const char *image)
{
    size_t n = strcspn(image, "/");
    bool is_host = memchr(image, '.', n) || memchr(image, ':', n) ||
                   (n == strlen("localhost") && df_starts_with(image, "localhost"));
    return image[n] && is_host ? image + n + 1 : image;
}

static const char *image_fault(const char *image)
{
    if (strstr(image, "://"))
        return "an image has no scheme";
    if (image[strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "._:/@-")])
        return "only letters, digits and . _ : / @ - stand in an image";
    const char *path = image_path(image);
    size_t n = strcspn(path, ":@");
    if (n == 0 || path[0] == '/' || path[n - 1] == '/' || strstr(path, "//"))
        return "a part of it is empty";
    for (size_t i = 0; i < n; i++)
        if (path[i] >= 'A' && path[i] <= 'Z')
            return "a repository is written in lower case";
    if (path[n] && !path[n + 1])
        return "a part of it is empty";
    return NULL;
}

void df_rule_image(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *why = image_fault(value->valuestring);
    if (why)
        df_fault(f, path, "\"%.100s\" is not an image: %s", value->valuestring, why);
}

/* ---- quantities ---- */

static const struct {
    const char *suffix;
    double factor;
} units[] = {
    {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},    {"", 1},        {"k", 1e3},     {"M", 1e6},
    {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
};

/* The factor of a decimal exponent such as "e3" or "E-2"; -1: not an exponent. */
static double exponent_factor(const char *s)
{
    int64_t power = 0;
    if ((*s != 'e' && *s != 'E') || !s[1])
        return -1;
    const char *digits = s[1] == '+' ? s + 2 : s + 1;
    return df_parse_i64(digits, -18, 18, &power, NULL) < 0 ? -1 : pow(10, (double)power);
}

double df_quantity(const char *text)
{
    if (*text == '+')
        text++;
    size_t whole = strspn(text, "0123456789"), n = whole;
    size_t part = text[n] == '.' ? strspn(text + n + 1, "0123456789") : 0;
    n += text[n] == '.' ? 1 + part : 0;
    if (whole + part == 0 || n > 32)
        return -1;
    char number[40];
    (void)snprintf(number, sizeof(number), "%.*s", (int)n, text);
    for (size_t i = 0; i < DF_ARRAY_SIZE(units); i++)
        if (df_streq(text + n, units[i].suffix))
            return strtod(number, NULL) * units[i].factor;
    double factor = exponent_factor(text + n);
    return factor < 0 ? -1 : strtod(number, NULL) * factor;
}

/* YAML documents may have a number (`cpu: 2`) instead of a string. */
static double quantity_of(const cJSON *value)
{
    if (cJSON_IsNumber(value))
        return value->valuedouble;
    return cJSON_IsString(value) ? df_quantity(value->valuestring) : -1;
}

void df_rule_quantity(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (quantity_of(value) < 0)
        df_fault(
            f, path,
            "\"%.64s\" is not a quantity: a number and one of m, k, M, G, T, Ki, Mi, Gi, Ti or "
            "nothing (500m, 512Mi, 2)",
            cJSON_IsString(value) ? value->valuestring : "(no text)");
}

/* ---- resources ---- */

/* Extended resources and huge pages cannot be overcommitted. */
static bool is_countable(const char *name)
{
    return strchr(name, '/') || df_starts_with(name, "hugepages-");
}

static bool is_resource(const char *name)
{
    static const char *const known[] = {"cpu", "memory", "ephemeral-storage"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (df_streq(name, known[i]))
            return true;
    return is_countable(name);
}

static void check_resource_names(const cJSON *map, const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *m = map ? map->child : NULL; m; m = m->next)
        if (!is_resource(m->string))
            df_fault(f, path,
                     "\"%.64s\" is not a resource (cpu, memory, ephemeral-storage, hugepages-…, "
                     "example.com/gpu)",
                     m->string);
}

static void exceeds_fault(const cJSON *request, const cJSON *limit, const struct df_path *path,
                          struct df_faults *f)
{
    DF_FREE char *asked = df_json_print(request), *allowed = df_json_print(limit);
    if (!asked || !allowed)
        f->no_memory = true;
    else
        df_fault(f, path, "%.32s is more than the limit %.32s", asked, allowed);
}

void df_rule_resources(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const cJSON *requests = df_json_at(value, "requests"), *limits = df_json_at(value, "limits");
    const struct df_path in_requests = {path, "requests", 0}, in_limits = {path, "limits", 0};
    check_resource_names(requests, &in_requests, f);
    check_resource_names(limits, &in_limits, f);
    for (const cJSON *m = requests ? requests->child : NULL; m; m = m->next) {
        const struct df_path here = {&in_requests, m->string, 0};
        const cJSON *limit = cJSON_GetObjectItemCaseSensitive(limits, m->string);
        if (is_countable(m->string) && (!limit || quantity_of(m) != quantity_of(limit)))
            df_fault(f, &here, "needs a limit that is the same: devices and huge pages are whole");
        else if (limit && quantity_of(m) > quantity_of(limit))
            exceeds_fault(m, limit, &here, f);
    }
}

/* ---- scheduling ---- */

void df_rule_toleration(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *key = df_json_str(value, "key"), *effect = df_json_str(value, "effect");
    const char *text = df_json_str(value, "value");
    bool exists = df_streq(df_json_str(value, "operator"), "Exists");
    if (df_str_empty(key) && !exists)
        df_fault(f, path, "without a key the operator must be Exists");
    if (exists && !df_str_empty(text))
        df_fault(f, path,
                 "the value \"%.64s\" is ignored by the operator Exists; use Equal, or leave "
                 "the value out",
                 text);
    if (df_json_at(value, "tolerationSeconds") && !df_streq(effect, "NoExecute"))
        df_fault(f, path, "tolerationSeconds is for the effect NoExecute alone");
}

void df_rule_expression(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *operator= df_json_str(value, "operator");
    const cJSON *values = df_json_at(value, "values");
    int n = cJSON_GetArraySize(values);
    bool is_set = df_streq(operator, "In") || df_streq(operator, "NotIn");
    bool is_presence = df_streq(operator, "Exists") || df_streq(operator, "DoesNotExist");
    int64_t number = 0;
    if (is_set && n == 0)
        df_fault(f, path, "the operator %s needs values", operator);
    if (is_presence && n > 0)
        df_fault(f, path, "the operator %s takes no values", operator);
    if (!is_set && !is_presence &&
        (n != 1 ||
         df_parse_i64(values->child->valuestring, INT64_MIN, INT64_MAX, &number, NULL) < 0))
        df_fault(f, path, "the operator %s needs one value, a whole number in quotes", operator);
}
