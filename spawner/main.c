/* dayfly: the spawner service and its command line. */
#include "spawner/cli/program.h"

/* jemalloc reads this before main(); a sanitizer's allocator does not. All threads share one heap,
 * and each keeps a few freed blocks: there are many threads, most of them short-lived. Free pages
 * go back to the system after a fifth of a second while the program allocates, otherwise by
 * df_memory_trim(). Figures are in docs/internals/cost.md. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:1,dirty_decay_ms:200,muzzy_decay_ms:0,tcache_max:4096,"
                          "tcache_nslots_small_max:20,tcache_nslots_large:4";

int main(int argc, char **argv)
{
    return df_cli_main(argc, argv);
}
