#include "runner/work.h"

#include "runner/terrakube/work.h"

const struct df_work *const df_works[] = {&df_terrakube_work, &df_platform_work, &df_tofu_work,
                                          NULL};

const struct df_work *df_work_of(const cJSON *doc)
{
    for (const struct df_work *const *w = df_works; *w; w++) {
        if (((*w)->member && df_json_at(doc, (*w)->member)) ||
            ((*w)->runtime && df_streq(df_json_str(doc, "runtime.name"), (*w)->runtime)))
            return *w;
    }
    return &df_tofu_work;
}

const struct df_work *df_work_starter(void)
{
    for (const struct df_work *const *w = df_works; *w; w++) {
        if ((*w)->is_starter && (*w)->is_starter())
            return *w;
    }
    return NULL;
}
