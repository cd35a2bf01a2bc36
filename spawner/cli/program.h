/* program.h - the program `dayfly`; see cli.h for its commands. Thread rule: main thread. */
#ifndef DF_CLI_PROGRAM_H
#define DF_CLI_PROGRAM_H

/* The whole program: returns its exit code. */
int df_cli_main(int argc, char **argv);

#endif
