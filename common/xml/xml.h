/*
 * xml.h - XML documents of other systems, element by element, read with expat.
 *
 * A document with a document type is refused, so no entity can grow or be fetched. Thread rule: any
 * thread.
 */
#ifndef DF_XML_H
#define DF_XML_H

#include "common/base/err.h"

struct df_xml_sink {
    /* An element ended; those within it ended before. path: the local names from the root on, as
     * "ListBucketResult/Contents/Key". text: its own characters, at most DF_LIMIT_XML_TEXT bytes.
     * Both borrowed. -1 with err ends the reading. */
    int (*element)(void *arg, const char *path, const char *text, struct df_err *err);
    void *arg;
};

/* USER: it is not XML, has a document type, or is too deep. LIMIT: a text is too long. */
int df_xml_read(const char *text, size_t n, const struct df_xml_sink *sink,
                struct df_err *err) DF_MUST_CHECK;

#endif
