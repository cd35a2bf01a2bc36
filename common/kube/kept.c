#include "common/kube/kept.h"

struct df_kept {
    unsigned references; /* atomic */
    cJSON *tree;         /* NULL: packed */
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

int df_kept_new(cJSON *tree, struct df_kept **ret, struct df_err *err)
{
    struct df_kept *k = tree ? malloc(sizeof(*k)) : NULL;
    if (!k) {
        cJSON_Delete(tree);
        return df_fail_oom(err);
    }
    *k = (struct df_kept){
        .references = 1, .tree = tree, .packed = {.text_len = (uint32_t)guess_text_len(tree)}};
    *ret = k;
    return 0;
}

int df_kept_pack(struct df_packer *p, const struct df_kept *hot, struct df_kept **ret,
                 struct df_err *err)
{
    DF_PACKED struct df_packed packed = {0};
    if (df_pack(p, hot->tree, &packed, err) < 0)
        return -1;
    struct df_kept *k = malloc(sizeof(*k) + packed.len);
    if (!k)
        return df_fail_oom(err);
    *k = (struct df_kept){.references = 1, .packed = packed};
    k->packed.bytes = memcpy(k->bytes, packed.bytes, packed.len);
    *ret = k;
    return 0;
}

struct df_kept *df_kept_share(struct df_kept *k)
{
    (void)__atomic_add_fetch(&k->references, 1, __ATOMIC_RELAXED);
    return k;
}

void df_kept_drop(struct df_kept *k)
{
    if (!k || __atomic_sub_fetch(&k->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    cJSON_Delete(k->tree);
    free(k);
}

const cJSON *df_kept_tree(const struct df_kept *k)
{
    return k->tree;
}

size_t df_kept_text_len(const struct df_kept *k)
{
    return k->packed.text_len;
}

int df_kept_read(struct df_packer *p, const struct df_kept *k, cJSON **ret, struct df_err *err)
{
    if (!k->tree)
        return df_unpack(p, &k->packed, ret, err);
    cJSON *copy = cJSON_Duplicate(k->tree, true);
    if (!copy)
        return df_fail_oom(err);
    *ret = copy;
    return 0;
}
