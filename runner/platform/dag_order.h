/*
 * dag_order.h - the order of a DAG. Internal to runner/platform. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_DAG_ORDER_H
#define DF_PLATFORM_DAG_ORDER_H

#include "runner/platform/dag.h"
#include "runner/platform/shape.h"

/* Puts each node behind those that it depends on, and leaves the file's order wherever that allows
 * it. Each cycle is a fault of `file`, as a path. The nodes are in the file's order before. */
int df_dag_sort(struct df_dag *dag, const struct df_document *file,
                struct df_err *err) DF_MUST_CHECK;

#endif
