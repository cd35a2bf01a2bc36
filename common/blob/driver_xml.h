/*
 * driver_xml.h - what S3 and Azure say in XML: refusals and lists. Internal to common/blob. Thread
 * rule: pure functions, any thread.
 */
#ifndef DF_BLOB_DRIVER_XML_H
#define DF_BLOB_DRIVER_XML_H

#include "common/blob/driver.h"

/* read_fault() of a protocol. What is not XML is some proxy's page: then the status has to do. */
void df_driver_xml_fault(const struct df_http_response *res, struct df_driver_fault *f);

/* An object of a list, or a version of one. */
struct df_driver_xml_item {
    char name[DF_LIMIT_BUCKET_NAME + 1]; /* "": there is none, or it is too long; so is version */
    char version[DF_LIMIT_OBJECT_VERSION + 1];
    int64_t size, made_us; /* made_us: INT64_MAX if it is not known: not old */
};

/* How a store spells its lists: paths of elements, as df_xml_sink has them; NULL: it has none
 * such. */
struct df_driver_xml_words {
    const char *item, *name, *version, *size, *made, *more, *next;
    int (*read_time)(const char *text, int64_t *ret_us, struct df_err *err);
};

struct df_driver_xml_list {
    const struct df_driver_xml_words *words;
    int (*give)(void *arg, const struct df_driver_xml_item *item, struct df_err *err);
    void *arg;
    struct df_driver_xml_item item; /* that is being read */
    bool more;                      /* the list says that it is not the whole one */
    char *next; /* owned by the caller, also after a failure: where the rest begins, or NULL */
};

/* Calls give() for each item, and sets more and next. */
int df_driver_xml_read(struct df_driver_xml_list *l, const struct df_buf *body,
                       struct df_err *err) DF_MUST_CHECK;

/* read_page() of a protocol: gives the objects, and sets p->next. */
int df_driver_xml_page(struct df_driver_page *p, const struct df_driver_xml_words *words,
                       const struct df_buf *body, struct df_err *err) DF_MUST_CHECK;

#endif
