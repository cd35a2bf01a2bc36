/*
 * image_records.h - what an image notes of the tools in it, so that no pod has to ask them again.
 *
 * images/rootfs writes two kinds of files below DF_IMAGE_RECORDS: `versions/<identity>`, the first
 * line of what the program's `version` prints, and `notes/<tool>-<version>`, the backend note of
 * no_init.h. The identity is the SHA-256 of the program's first 4096 bytes, its size in digits and
 * a line feed. In these bytes are the ELF header, the sizes of the segments and the build ID:
 * another release in its place has no record and is asked. This is no protection against a forged
 * program: whoever can write to the records can replace the tool as well. Thread rule: any thread.
 */
#ifndef DF_TOFU_IMAGE_RECORDS_H
#define DF_TOFU_IMAGE_RECORDS_H

#include "runner/tofu/tool.h"

#define DF_IMAGE_RECORDS "/usr/share/dayfly/tools"

/* The tool that the record of this program names, without a path. Fails if there is no record.
 * records: DF_IMAGE_RECORDS, or another such directory. */
int df_image_record_read(const char *records, const char *program, struct df_tool *ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
