/*
 * number.h - numbers of JSON as text; used inside common/json only. Thread rule: pure functions.
 */
#ifndef DF_JSON_NUMBER_H
#define DF_JSON_NUMBER_H

#include "common/json/json.h"

#define DF_NUMBER_TEXT 32

/* The shortest text that reads back as the same finite number; whole numbers below
 * DF_JSON_MAX_PLAIN as plain digits. Returns out. */
const char *df_number_print(double d, char out[DF_NUMBER_TEXT]);

#endif
