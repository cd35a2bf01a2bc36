/*
 * network.h - takes the network away from a process that is about to execute another program.
 *
 * A filter of system calls: neither the program nor what it starts makes a socket(2) of any family.
 * It needs no right and no namespace, so it works in every container and for every user. Pairs of
 * Unix sockets (socketpair(2)), with which runtimes talk to their children, stay: they reach no
 * other machine, but one of datagrams can send to a Unix datagram socket that it can name. Sockets
 * that are open already stay usable; a child of df_process_spawn() has none that was not given to
 * it. Thread rule: for the one thread of a child between fork and exec.
 */
#ifndef DF_PROCESS_NETWORK_H
#define DF_PROCESS_NETWORK_H

/* Makes system calls only. 0, or -1 with errno. Ends only with the process. */
int df_network_leave(void);

#endif
