#include "common/kube/hot.h"

enum { FIRST_ROOM = 32 };

void df_kube_hot_free(struct df_kube_hot *h)
{
    free(h->objects);
    *h = (struct df_kube_hot){0};
}

int df_kube_hot_reserve(struct df_kube_hot *h, struct df_err *err)
{
    if (h->len < h->room)
        return 0;
    size_t room = h->room ? 2 * h->room : FIRST_ROOM;
    struct df_kube_object **more = realloc(h->objects, room * sizeof(*more));
    if (!more)
        return df_fail_oom(err);
    h->objects = more;
    h->room = room;
    return 0;
}

void df_kube_hot_drop(struct df_kube_hot *h, const struct df_kube_object *o)
{
    size_t i = h->len;
    while (i > 0 && h->objects[i - 1] != o)
        i--;
    if (i == 0)
        return;
    memmove(&h->objects[i - 1], &h->objects[i], (h->len - i) * sizeof(*h->objects));
    h->len--;
}

void df_kube_hot_use(struct df_kube_hot *h, struct df_kube_object *o)
{
    df_kube_hot_drop(h, o);
    h->objects[h->len++] = o;
}
