/* dayfly: the spawner service and its command line. */
#include "spawner/cli/program.h"

int main(int argc, char **argv)
{
    return df_cli_main(argc, argv);
}
