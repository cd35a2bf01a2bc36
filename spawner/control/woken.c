#include "spawner/control/woken.h"

#include "common/base/util.h"

bool df_woken_is_new(struct df_woken *t, const cJSON *doc)
{
    uint64_t name = df_hash_str(DF_HASH_BEGIN, df_json_str(doc, "metadata.name"));
    uint64_t version = df_hash_str(name, df_json_str(doc, "metadata.resourceVersion"));
    return atomic_exchange(&t->versions[name % DF_WOKEN], version) != version;
}
