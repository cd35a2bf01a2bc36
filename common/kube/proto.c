/*
 * Decodes protobuf into the trees that the JSON would give: first the wire format, then the tables
 * of fields, then the envelope of objects and watch events.
 */
#include "common/kube/proto.h"

#include <time.h>

static const char envelope[] = {'k', '8', 's', '\0'};

/* Field numbers of runtime.Unknown, runtime.RawExtension and meta.v1.WatchEvent. */
enum { UNKNOWN_RAW = 2, EXTENSION_RAW = 1, EVENT_TYPE = 1, EVENT_OBJECT = 2 };

static const struct df_proto_field owner_references[] = {
    DF_PROTO(4, TEXT, "uid"),
    DF_PROTO(6, TRUTH, "controller"),
    {0},
};

const struct df_proto_field df_proto_metadata[] = {
    DF_PROTO(1, TEXT, "name"),
    DF_PROTO(3, TEXT, "namespace"),
    DF_PROTO(5, TEXT, "uid"),
    DF_PROTO(6, TEXT, "resourceVersion"),
    DF_PROTO(8, TIME, "creationTimestamp"),
    DF_PROTO(9, TIME, "deletionTimestamp"),
    DF_PROTO(10, NUMBER, "deletionGracePeriodSeconds", .always = true),
    DF_PROTO(11, MAP, "labels"),
    DF_PROTO(13, MESSAGE, "ownerReferences", .of = owner_references, .repeated = true),
    {0},
};

static const struct df_proto_field causes[] = {
    DF_PROTO(1, TEXT, "reason"),
    DF_PROTO(2, TEXT, "message"),
    DF_PROTO(3, TEXT, "field"),
    {0},
};

static const struct df_proto_field details[] = {
    DF_PROTO(4, MESSAGE, "causes", .of = causes, .repeated = true),
    DF_PROTO(5, NUMBER, "retryAfterSeconds"),
    {0},
};

const struct df_proto_field df_proto_status[] = {
    DF_PROTO(2, TEXT, "status"), DF_PROTO(3, TEXT, "message"),
    DF_PROTO(4, TEXT, "reason"), DF_PROTO(5, MESSAGE, "details", .of = details),
    DF_PROTO(6, NUMBER, "code"), {0},
};

/* ---- wire format ----------------------------------------------------------------------------- */

struct span {
    const uint8_t *at, *end;
};

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* One encoded field. */
struct item {
    uint32_t number;
    enum wire wire;
    uint64_t value;    /* VARINT */
    struct span bytes; /* BYTES */
};

static int malformed(struct df_err *err)
{
    return df_fail(err, DF_ERR_USER, "malformed protobuf");
}

static bool read_varint(struct span *s, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        uint8_t byte = *s->at++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_bytes(struct span *s, uint64_t n, struct span *ret)
{
    if (n > (uint64_t)(s->end - s->at))
        return false;
    *ret = (struct span){s->at, s->at + n};
    s->at += n;
    return true;
}

static bool read_value(struct span *s, struct item *i)
{
    uint64_t n = 0;
    switch (i->wire) {
    case VARINT:
        return read_varint(s, &i->value);
    case FIXED64:
        return read_bytes(s, 8, &i->bytes);
    case FIXED32:
        return read_bytes(s, 4, &i->bytes);
    case BYTES:
        return read_varint(s, &n) && read_bytes(s, n, &i->bytes);
    default:
        return false;
    }
}

/* 1: an item; 0: the end; -1: malformed. */
static int next_item(struct span *s, struct item *ret, struct df_err *err)
{
    uint64_t key = 0;
    if (s->at == s->end)
        return 0;
    if (!read_varint(s, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return malformed(err);
    *ret = (struct item){.number = (uint32_t)(key >> 3), .wire = (enum wire)(key & 7)};
    return read_value(s, ret) ? 1 : malformed(err);
}

/* Finds the last field of that number with bytes; empty if there is none. */
static int find_bytes(struct span in, uint32_t number, struct span *ret, struct df_err *err)
{
    struct item i;
    int more = 0;
    *ret = (struct span){in.end, in.end};
    while ((more = next_item(&in, &i, err)) > 0)
        if (i.number == number && i.wire == BYTES)
            *ret = i.bytes;
    return more;
}

/* ---- trees ----------------------------------------------------------------------------------- */

static int read_fields(const struct df_proto_field *fields, struct span in, cJSON *to,
                       struct df_err *err);

static char *text_of(struct span s)
{
    return strndup((const char *)s.at, (size_t)(s.end - s.at));
}

static int set_text(cJSON *to, const char *name, struct span s, struct df_err *err)
{
    DF_FREE char *text = text_of(s);
    return df_json_put(to, err, DF_STR_ALLOC(name, text));
}

static int set_time(cJSON *to, const char *name, struct span s, struct df_err *err)
{
    struct item i;
    int more = 0;
    char text[64];
    int64_t seconds = 0;
    while ((more = next_item(&s, &i, err)) > 0)
        if (i.number == 1 && i.wire == VARINT)
            seconds = (int64_t)i.value;
    struct tm tm;
    if (more < 0 || !gmtime_r(&(time_t){seconds}, &tm) ||
        !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
        return malformed(err);
    return df_json_set_str(to, name, text, err);
}

static int set_entry(cJSON *to, const char *name, struct span s, struct df_err *err)
{
    cJSON *map = df_json_object_at(to, name);
    struct span key, value;
    if (df_check_alloc(map, err) < 0 || find_bytes(s, 1, &key, err) < 0 ||
        find_bytes(s, 2, &value, err) < 0)
        return -1;
    DF_FREE char *word = text_of(key);
    return word ? set_text(map, word, value, err) : df_fail_oom(err);
}

static cJSON *append_object(cJSON *to, const char *list_name)
{
    cJSON *list = df_json_array_at(to, list_name);
    cJSON *object = list ? cJSON_CreateObject() : NULL;
    return object && df_json_append(list, object, NULL) == 0 ? object : NULL;
}

static int set_message(cJSON *to, const struct df_proto_field *f, struct span s, struct df_err *err)
{
    cJSON *object = f->repeated ? append_object(to, f->name) : df_json_object_at(to, f->name);
    return object ? read_fields(f->of, s, object, err) : df_fail_oom(err);
}

/* As in JSON, empty texts, times and lists are omitted, and mostly 0 and false. */
static int set_field(cJSON *to, const struct df_proto_field *f, const struct item *i,
                     struct df_err *err)
{
    bool is_number = f->type == DF_PROTO_NUMBER || f->type == DF_PROTO_TRUTH;
    bool is_empty = is_number ? !i->value : i->bytes.at == i->bytes.end;
    if (i->wire != (is_number ? VARINT : BYTES))
        return malformed(err);
    if (is_empty && !f->always && f->type != DF_PROTO_MESSAGE)
        return 0;
    switch (f->type) {
    case DF_PROTO_NUMBER:
        return df_json_set(to, f->name, cJSON_CreateNumber((double)(int64_t)i->value), err);
    case DF_PROTO_TRUTH:
        return df_json_set(to, f->name, cJSON_CreateBool(i->value != 0), err);
    case DF_PROTO_TEXT:
        return set_text(to, f->name, i->bytes, err);
    case DF_PROTO_TIME:
        return set_time(to, f->name, i->bytes, err);
    case DF_PROTO_MAP:
        return set_entry(to, f->name, i->bytes, err);
    case DF_PROTO_MESSAGE:
    default:
        return set_message(to, f, i->bytes, err);
    }
}

static int read_fields(const struct df_proto_field *fields, struct span in, cJSON *to,
                       struct df_err *err)
{
    struct item i;
    int more = 0;
    while ((more = next_item(&in, &i, err)) > 0) {
        const struct df_proto_field *f = fields;
        while (f->number && f->number != i.number)
            f++;
        if (f->number && set_field(to, f, &i, err) < 0)
            return -1;
    }
    return more;
}

/* ---- envelopes ------------------------------------------------------------------------------- */

bool df_proto_is_object(const void *bytes, size_t n)
{
    return n >= sizeof(envelope) && memcmp(bytes, envelope, sizeof(envelope)) == 0;
}

int df_proto_read_object(const struct df_proto_field *fields, const void *bytes, size_t n,
                         cJSON **ret, struct df_err *err)
{
    struct span raw = {bytes, (const uint8_t *)bytes + n};
    DF_JSON cJSON *object = cJSON_CreateObject();
    if (!object)
        return df_fail_oom(err);
    if (!df_proto_is_object(bytes, n))
        return malformed(err);
    raw.at += sizeof(envelope);
    if (find_bytes(raw, UNKNOWN_RAW, &raw, err) < 0 || read_fields(fields, raw, object, err) < 0)
        return -1;
    *ret = DF_TAKE(object);
    return 0;
}

int df_proto_read_event(const struct df_proto_field *fields, const void *bytes, size_t n,
                        cJSON **ret, struct df_err *err)
{
    const struct span in = {bytes, (const uint8_t *)bytes + n};
    struct span type, object;
    cJSON *tree = NULL;
    if (find_bytes(in, EVENT_TYPE, &type, err) < 0 ||
        find_bytes(in, EVENT_OBJECT, &object, err) < 0 ||
        find_bytes(object, EXTENSION_RAW, &object, err) < 0)
        return -1;
    DF_JSON cJSON *event = cJSON_CreateObject();
    if (df_check_alloc(event, err) < 0 || set_text(event, "type", type, err) < 0)
        return -1;
    bool is_error = df_streq(df_json_str(event, "type"), "ERROR");
    if (df_proto_read_object(is_error ? df_proto_status : fields, object.at,
                             (size_t)(object.end - object.at), &tree, err) < 0 ||
        df_json_add(event, "object", tree, err) < 0)
        return -1;
    *ret = DF_TAKE(event);
    return 0;
}
