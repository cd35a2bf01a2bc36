/*
 * rows.h - macros for rows of a table of fields; for the files with tables in spawner/model only.
 */
#ifndef DF_ROWS_H
#define DF_ROWS_H

#include "common/base/limits.h"
#include "spawner/model/rules.h"

#define DF_WEEK_SECONDS (7 * 24 * 3600)

#define STRING(field, cap, ...)                                                                    \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_STRING, .min = 1, .max = (cap), __VA_ARGS__               \
    }
#define NAME(field, ...) STRING(field, DF_LIMIT_NAME, .rule = df_rule_name, __VA_ARGS__)
#define WORD(field, list, ...) STRING(field, 64, .words = (list), __VA_ARGS__)
#define BOOL(field, ...)                                                                           \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_BOOL, __VA_ARGS__                                         \
    }
#define WHOLE(field, low, high, ...)                                                               \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_WHOLE, .min = (low), .max = (high), __VA_ARGS__           \
    }
#define OBJECT(field, rows, ...)                                                                   \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_OBJECT, .fields = (rows), __VA_ARGS__                     \
    }
#define MAP(field, each, ...)                                                                      \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_OBJECT, .item = (each), __VA_ARGS__                       \
    }
#define LIST(field, each, cap, ...)                                                                \
    {                                                                                              \
        .name = (field), .type = DF_TYPE_LIST, .item = (each), .max = (cap), __VA_ARGS__           \
    }

/* The pod of a step, and the environment of its tool. For files that include tables.h and the
 * model's placement.h. */
#define DF_ROW_PLACEMENT OBJECT("placement", df_placement_rows, .rule = df_rule_placement)
#define DF_ROW_ENVIRONMENT(...)                                                                    \
    LIST("environment", &df_environment_item, DF_LIMIT_ENVIRONMENT, .rule = df_rule_environment,   \
         __VA_ARGS__)

/* They decide the order in which steps start (admission.h). */
#define DF_ROW_CLASS(...) NAME("class", __VA_ARGS__)
#define DF_ROW_PRIORITY(...) WHOLE("priority", -DF_LIMIT_PRIORITY, DF_LIMIT_PRIORITY, __VA_ARGS__)

#endif
