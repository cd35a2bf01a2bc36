/*
 * value.h - values as the tools print them: as HCL, objects and lists in several lines.
 * DF_JSON_NUL stays itself where the tools write the byte. Thread rule: pure functions, any thread.
 */
#ifndef DF_HCL_VALUE_H
#define DF_HCL_VALUE_H

#include "common/base/buf.h"
#include "common/json/json.h"

/* Appends the value of an output. type: of the same output, as in `output -json`; or NULL. The
 * caller checks the buffer. */
void df_hcl_print_value(const cJSON *value, const cJSON *type, struct df_buf *out);

#endif
