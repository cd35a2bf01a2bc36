#include "spawner/store/documents/unclean.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/json/json.h"

#define FILE_MAX (4 * DF_KIB)

static char *file_of(const char *data_directory)
{
    return df_fs_join(data_directory, "unclean");
}

void df_unclean_read(const char *data_directory, struct df_unclean *ret)
{
    DF_FREE char *path = file_of(data_directory);
    DF_BUF struct df_buf text = DF_BUF_INIT(FILE_MAX);
    DF_JSON cJSON *record = NULL;
    *ret = (struct df_unclean){.count = 0};
    if (!path || df_fs_read(path, &text, NULL) < 0 ||
        df_json_parse(df_buf_str(&text), text.len, &record, NULL) < 0)
        return;
    const char *at = df_json_str(record, "noticedAt"), *command = df_json_str(record, "command");
    ret->count = df_json_int(record, "count", 0);
    (void)snprintf(ret->noticed_at, sizeof(ret->noticed_at), "%s", at ? at : "");
    (void)snprintf(ret->command, sizeof(ret->command), "%s", command ? command : "");
}

int df_unclean_add(const char *data_directory, const struct df_holder *holder, struct df_err *err)
{
    struct df_unclean known;
    df_unclean_read(data_directory, &known);
    DF_FREE char *path = file_of(data_directory);
    DF_JSON cJSON *record =
        df_json_object(DF_NUM("count", known.count + 1), DF_TIME("noticedAt", df_real_us()),
                       DF_STR("command", holder->command));
    return df_json_save(path, record, err);
}
