#include "common/base/fs.h"
#include "common/process/process.h"
#include "spawner/config/config.h"

char *df_config_runner(const struct df_config *c)
{
    static const char name[] = "dayfly-runner";
    DF_FREE char *self = NULL;
    if (c->runner_path)
        return strdup(c->runner_path);
    if (df_process_own_path(&self, NULL) == 0) {
        char *slash = strrchr(self, '/');
        DF_FREE char *beside = df_strf("%.*s/%s", slash ? (int)(slash - self) : 0, self, name);
        if (beside && access(beside, X_OK) == 0)
            return DF_TAKE(beside);
    }
    const char *path = getenv("PATH");
    return path ? df_process_which(name, path) : NULL;
}
