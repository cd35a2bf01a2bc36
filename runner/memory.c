#include "runner/memory.h"

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/limits.h"

#define WORD "oom_kill "

/* The number after WORD at the start of a line. */
static int64_t count_in(const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, WORD, strlen(WORD)) == 0)
            return strtoll(line + strlen(WORD), NULL, 10);
    }
    return 0;
}

int64_t df_memory_kills(const char *root)
{
    static const char *const files[] = {"memory.events", "memory/memory.oom_control"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_FREE char *path = df_fs_join(root, files[i]);
        DF_BUF struct df_buf text = DF_BUF_INIT(4 * DF_KIB);
        if (path && df_fs_read(path, &text, NULL) == 0)
            return count_in(df_buf_str(&text));
    }
    return 0;
}
