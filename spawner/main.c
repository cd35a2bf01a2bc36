/* dayfly: the spawner service and its command line. */
#include "spawner/cli/program.h"

/* jemalloc reads it before main(): one heap for all threads, whose free pages go back to the system after
 * a fifth of a second; each thread keeps a few freed blocks. With more of either each of the many short-lived
 * threads would keep memory (docs/internals/cost.md). A sanitizer's allocator does not read it. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:1,dirty_decay_ms:200,muzzy_decay_ms:0,tcache_max:4096,"
                          "tcache_nslots_small_max:20,tcache_nslots_large:4";

int main(int argc, char **argv)
{
    return df_cli_main(argc, argv);
}
