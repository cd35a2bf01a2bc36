#include "common/kube/cached_object.h"

struct df_cached {
    unsigned references; /* atomic */
    const cJSON *tree;   /* shared; NULL: packed */
    const cJSON *shown;  /* shared; atomic, set once; NULL: nobody has asked, or packed */
    struct df_packed packed;
    char bytes[]; /* of packed */
};

enum { NO_STRING = 8 }; /* bytes of anything but a string: digits or brackets, and a comma */

/* About the length of the value's text. */
static size_t guess_text_len(const cJSON *j)
{
    size_t n = j->valuestring ? strlen(j->valuestring) + strlen("\"\",") : NO_STRING;
    for (const cJSON *item = j->child; item; item = item->next)
        n += guess_text_len(item) + (item->string ? strlen(item->string) + strlen("\"\":") : 0);
    return n;
}

int df_cached_new(cJSON *tree, struct df_cached **ret, struct df_err *err)
{
    DF_SHARED const cJSON *shared = df_shared_new(tree);
    struct df_cached *k = shared ? malloc(sizeof(*k)) : NULL;
    if (!k)
        return df_fail_oom(err);
    *k = (struct df_cached){.references = 1,
                            .packed = {.text_len = (uint32_t)guess_text_len(shared)}};
    k->tree = DF_TAKE(shared);
    *ret = k;
    return 0;
}

int df_cached_pack(struct df_packer *p, const struct df_cached *hot, struct df_cached **ret,
                   struct df_err *err)
{
    DF_PACKED struct df_packed packed = {0};
    if (df_pack(p, hot->tree, &packed, err) < 0)
        return -1;
    struct df_cached *k = malloc(sizeof(*k) + packed.len);
    if (!k)
        return df_fail_oom(err);
    *k = (struct df_cached){.references = 1, .packed = packed};
    k->packed.bytes = memcpy(k->bytes, packed.bytes, packed.len);
    *ret = k;
    return 0;
}

struct df_cached *df_cached_share(struct df_cached *k)
{
    (void)__atomic_add_fetch(&k->references, 1, __ATOMIC_RELAXED);
    return k;
}

void df_cached_drop(struct df_cached *k)
{
    if (!k || __atomic_sub_fetch(&k->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    df_shared_drop(k->tree);
    df_shared_drop(k->shown);
    free(k);
}

const cJSON *df_cached_tree(const struct df_cached *k)
{
    return k->tree;
}

size_t df_cached_text_len(const struct df_cached *k)
{
    return k->packed.text_len;
}

int df_cached_copy(struct df_packer *p, const struct df_cached *k, cJSON **ret, struct df_err *err)
{
    if (!k->tree)
        return df_unpack(p, &k->packed, ret, err);
    cJSON *copy = cJSON_Duplicate(k->tree, true);
    if (!copy)
        return df_fail_oom(err);
    *ret = copy;
    return 0;
}

int df_cached_read(struct df_packer *p, const struct df_cached *k, const cJSON **ret,
                   struct df_err *err)
{
    cJSON *unpacked = NULL;
    if (!k->tree && df_unpack(p, &k->packed, &unpacked, err) < 0)
        return -1;
    return df_check_alloc(*ret = k->tree ? df_shared_add(k->tree) : df_shared_new(unpacked), err);
}

static int make_shown(struct df_packer *p, const struct df_cached *k, df_cached_show show,
                      void *arg, const cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *copy = NULL;
    if (df_cached_copy(p, k, &copy, err) < 0 || show(arg, copy, err) < 0)
        return -1;
    return df_check_alloc(*ret = df_shared_new(DF_TAKE(copy)), err);
}

int df_cached_read_shown(struct df_packer *p, struct df_cached *k, df_cached_show show, void *arg,
                         const cJSON **ret, struct df_err *err)
{
    const cJSON *shown = __atomic_load_n(&k->shown, __ATOMIC_ACQUIRE);
    if (shown) {
        *ret = df_shared_add(shown);
        return 0;
    }
    if (make_shown(p, k, show, arg, ret, err) < 0)
        return -1;
    if (!k->tree)
        return 0;
    /* If another thread was faster, its tree is the same as this one, which the caller has. */
    const cJSON *second = df_shared_add(*ret);
    if (!__atomic_compare_exchange_n(&k->shown, &shown, second, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED))
        df_shared_drop(second);
    return 0;
}
