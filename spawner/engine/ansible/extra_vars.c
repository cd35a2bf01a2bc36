/*
 * What a text is read as follows Go's strconv, rule by rule; C's own strtod() takes more (" 1",
 * "0x1.8", "nan(x)") and less ("1_000"). Read df_extra_vars() at the end first.
 */
#include "spawner/engine/ansible/extra_vars.h"

#include <errno.h>
#include <math.h>

#include "spawner/engine/ansible/go_json.h"

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdefABCDEF"

/* ---- one value ---- */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* strconv.ParseInt(s, 10, 64) */
static bool read_whole(const char *s, int64_t *ret)
{
    const char *digits = s + is_one_of(*s, "+-");
    errno = 0;
    *ret = strtoll(s, NULL, 10);
    return *digits && !digits[strspn(digits, DIGITS)] && errno == 0;
}

/* An underscore stands between two digits, or between "0x" and one. */
static bool separates_digits(const char *s, const char *digits)
{
    for (const char *p = strchr(s, '_'); p; p = strchr(p + 1, '_'))
        if (p == s || !is_one_of(p[1], digits) ||
            !(is_one_of(p[-1], digits) || is_one_of(p[-1], "xX")))
            return false;
    return true;
}

/* Behind the mantissa. */
static bool is_exponent(const char *p, bool is_hex)
{
    if (!is_one_of(*p, is_hex ? "pP" : "eE"))
        return !*p && !is_hex;
    p++;
    p += is_one_of(*p, "+-");
    return is_one_of(*p, DIGITS) && !p[strspn(p, DIGITS "_")];
}

static bool is_number(const char *s)
{
    const char *p = s + is_one_of(*s, "+-");
    bool is_hex = *p == '0' && is_one_of(p[1], "xX") && p[2];
    const char *digits = is_hex ? HEX_DIGITS : DIGITS, *begin = p += is_hex ? 2 : 0;
    bool has_digits = false, has_point = false;
    for (; is_one_of(*p, digits) || *p == '_' || (*p == '.' && !has_point); p++) {
        has_digits |= is_one_of(*p, digits);
        has_point |= *p == '.';
    }
    return p > begin && has_digits && is_exponent(p, is_hex) && separates_digits(s, digits);
}

/* What strconv.ParseFloat() reads as no finite number. */
static bool is_not_finite(const char *s)
{
    const char *word = s + is_one_of(*s, "+-");
    return strcasecmp(s, "nan") == 0 || strcasecmp(word, "inf") == 0 ||
           strcasecmp(word, "infinity") == 0;
}

/* strconv.ParseFloat(s, 64) without the above: false also for a number beyond a double. */
static int read_number(const char *s, double *ret, bool *ret_is, struct df_err *err)
{
    *ret_is = is_number(s);
    if (!*ret_is)
        return 0;
    DF_FREE char *text = strdup(s);
    if (!text)
        return df_fail_oom(err);
    char *to = text;
    for (; *s; s++)
        if (*s != '_')
            *to++ = *s;
    *to = '\0';
    *ret = strtod(text, NULL);
    *ret_is = isfinite(*ret);
    return 0;
}

/* strconv.ParseBool(): 1 and 0 were read as numbers before. */
static bool read_bool(const char *s, bool *ret)
{
    static const char *const words[][4] = {{"f", "F", "false", "False"},
                                           {"t", "T", "true", "True"}};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 4; j++)
            if (df_streq(s, words[i][j])) {
                *ret = i == 1;
                return true;
            }
    *ret = df_streq(s, "TRUE");
    return *ret || df_streq(s, "FALSE");
}

static bool is_bracketed(const char *s)
{
    return (*s == '[' && df_ends_with(s, "]")) || (*s == '{' && df_ends_with(s, "}"));
}

static int read_other(const char *s, cJSON **ret, struct df_err *err)
{
    bool value;
    *ret = NULL;
    if (read_bool(s, &value))
        return df_check_alloc(*ret = cJSON_CreateBool(value), err);
    if (is_bracketed(s) && df_go_json(s, ret, err) < 0)
        return -1;
    return *ret ? 0 : df_check_alloc(*ret = cJSON_CreateString(s), err);
}

int df_extra_vars_value(const char *text, cJSON **ret, struct df_err *err)
{
    char printed[DF_GO_NUMBER];
    int64_t whole;
    double d = 0;
    bool is_double;
    if (is_not_finite(text))
        return df_fail(err, DF_ERR_USER,
                       "\"%s\" is read as a number, and JSON has none like it: leave it out, or "
                       "give the playbook another word",
                       text);
    if (read_whole(text, &whole)) {
        (void)snprintf(printed, sizeof(printed), "%lld", (long long)whole);
        return df_check_alloc(*ret = cJSON_CreateRaw(printed), err);
    }
    if (read_number(text, &d, &is_double, err) < 0)
        return -1;
    if (!is_double)
        return read_other(text, ret, err);
    df_go_number(d, printed);
    return df_check_alloc(*ret = cJSON_CreateRaw(printed), err);
}

/* ---- all of them ---- */

void df_extra_vars_add_part(struct df_buf *to, const char *name)
{
    for (; *name; name++) {
        char c = *name == '-' ? '_' : *name;
        (void)df_buf_addc(to, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
    }
}

/* Two names may become one: my-key and MY_KEY. */
static int check_names(const cJSON *vars, struct df_err *err)
{
    const char *name = NULL;
    if (df_json_duplicate_key(vars, &name, err) < 0)
        return -1;
    return name ? df_fail(err, DF_ERR_USER,
                          "spec.workflow.dependencies.configMaps: two keys of them become the "
                          "variable %s: rename one of them",
                          name)
                : 0;
}

static int add_config_maps(cJSON *vars, const cJSON *config_maps, struct df_err *err)
{
    const cJSON *map, *key;
    cJSON_ArrayForEach (map, config_maps) {
        cJSON_ArrayForEach (key, df_json_at(map, "data")) {
            DF_BUF struct df_buf name = DF_BUF_INIT(DF_KIB);
            (void)df_buf_adds(&name, "KUBERNAUT_CONFIGMAP_");
            df_extra_vars_add_part(&name, df_json_str(map, "metadata.name"));
            (void)df_buf_addc(&name, '_');
            df_extra_vars_add_part(&name, key->string);
            if (df_buf_check(&name, err) < 0 ||
                df_json_add_str(vars, df_buf_str(&name), key->valuestring, err) < 0)
                return -1;
        }
    }
    return check_names(vars, err);
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static int add_owner(cJSON *vars, const struct df_extra_owner *o, struct df_err *err)
{
    return df_json_put(
        vars, err, DF_STR("WFE_NAME", or_empty(o->name)),
        DF_STR("WFE_NAMESPACE", or_empty(o->name_space)), DF_STR("RR_NAME", or_empty(o->request)),
        DF_STR("RR_NAMESPACE", or_empty(o->request_namespace)), DF_STR("DAYFLY_UID", o->uid));
}

static int add_parameters(cJSON *vars, const cJSON *parameters, struct df_err *err)
{
    const cJSON *p;
    cJSON_ArrayForEach (p, parameters) {
        cJSON *value = NULL;
        if (cJSON_GetObjectItemCaseSensitive(vars, p->string))
            continue;
        if (df_extra_vars_value(p->valuestring, &value, err) < 0)
            return df_err_wrap(err, "spec.workflow.parameters.%s", p->string);
        if (df_json_add(vars, p->string, value, err) < 0)
            return -1;
    }
    return 0;
}

/* The strongest come first: what is there stays. */
int df_extra_vars(const cJSON *parameters, const struct df_extra_owner *owner,
                  const cJSON *config_maps, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *vars = cJSON_CreateObject();
    if (df_check_alloc(vars, err) < 0 || add_config_maps(vars, config_maps, err) < 0 ||
        add_owner(vars, owner, err) < 0 || add_parameters(vars, parameters, err) < 0)
        return -1;
    *ret = DF_TAKE(vars);
    return 0;
}
