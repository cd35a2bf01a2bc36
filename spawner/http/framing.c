#include "spawner/http/framing.h"

#include <microhttpd.h>

/* Headers that decide where a request ends, whom it is for and who sends it: one of each. */
static const char *const single[] = {"Content-Length", "Transfer-Encoding", "Host",
                                     "Authorization"};

struct head {
    unsigned count[DF_ARRAY_SIZE(single)];
    bool bad_name, bad_value;
};

static bool is_token(const char *name, size_t n)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!alnum && (!c || !strchr(marks, c)))
            return false;
    }
    return n > 0;
}

static bool is_field_value(const char *value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)value[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result look_at(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_n,
                               const char *value, size_t value_n)
{
    (void)kind;
    struct head *h = cls;
    h->bad_name = h->bad_name || !is_token(name, name_n);
    h->bad_value = h->bad_value || !is_field_value(value, value_n);
    for (size_t i = 0; i < DF_ARRAY_SIZE(single); i++)
        h->count[i] += strcasecmp(name, single[i]) == 0;
    return MHD_YES;
}

int df_framing_check(const struct df_request *req, uint64_t *ret_length, struct df_err *err)
{
    struct head h = {.count = {0}};
    (void)MHD_get_connection_values_n(req->connection, MHD_HEADER_KIND, look_at, &h);
    if (h.bad_name)
        return df_fail(err, DF_ERR_USER, "a header's name has a character that names may not have");
    if (h.bad_value)
        return df_fail(err, DF_ERR_USER, "a header's value has a control character");
    for (size_t i = 0; i < DF_ARRAY_SIZE(single); i++)
        if (h.count[i] > 1)
            return df_fail(err, DF_ERR_USER, "the header %s is given twice", single[i]);
    const char *coding = df_request_header(req, "Transfer-Encoding");
    const char *length = df_request_header(req, "Content-Length");
    uint64_t n = length ? strtoull(length, NULL, 10) : 0;
    if (n > INT64_MAX)
        return df_fail(err, DF_ERR_USER, "Content-Length: is larger than 2^63 - 1");
    *ret_length = coding ? DF_BODY_UNKNOWN : n;
    return 0;
}
