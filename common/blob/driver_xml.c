#include "common/blob/driver_xml.h"

#include "common/base/parse.h"
#include "common/xml/xml.h"

static int take_fault(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct df_driver_fault *f = arg;
    (void)err;
    if (df_streq(path, "Error/Code"))
        df_copy(f->code, sizeof(f->code), text);
    else if (df_streq(path, "Error/Message"))
        df_copy(f->message, sizeof(f->message), text);
    else if (df_streq(path, "Error/Region"))
        df_copy(f->region, sizeof(f->region), text);
    return 0;
}

void df_driver_xml_fault(const struct df_http_response *res, struct df_driver_fault *f)
{
    const struct df_xml_sink sink = {take_fault, f};
    (void)!df_xml_read(df_buf_str(&res->body), res->body.len, &sink, NULL);
}

static void begin_item(struct df_driver_xml_item *i)
{
    i->name[0] = i->version[0] = '\0';
    i->size = 0;
    i->made_us = INT64_MAX;
}

/* A name that is cut would be another one. */
static void take_whole(char *to, size_t size, const char *text)
{
    df_copy(to, size, strlen(text) < size ? text : "");
}

static int end_item(struct df_driver_xml_list *l, struct df_err *err)
{
    int result = l->give(l->arg, &l->item, err);
    begin_item(&l->item);
    return result;
}

static int take_element(void *arg, const char *path, const char *text, struct df_err *err)
{
    struct df_driver_xml_list *l = arg;
    const struct df_driver_xml_words *words = l->words;
    if (df_streq(path, words->name))
        take_whole(l->item.name, sizeof(l->item.name), text);
    else if (df_streq(path, words->version))
        take_whole(l->item.version, sizeof(l->item.version), text);
    else if (df_streq(path, words->size))
        return df_parse_i64(text, 0, INT64_MAX, &l->item.size, err);
    else if (df_streq(path, words->made))
        return words->read_time(text, &l->item.made_us, err);
    else if (df_streq(path, words->item))
        return end_item(l, err);
    else if (df_streq(path, words->more))
        l->more = df_streq(text, "true");
    else if (df_streq(path, words->next))
        return df_str_set(&l->next, *text ? text : NULL, err);
    return 0;
}

int df_driver_xml_read(struct df_driver_xml_list *l, const struct df_buf *body, struct df_err *err)
{
    const struct df_xml_sink sink = {take_element, l};
    begin_item(&l->item);
    return df_xml_read(df_buf_str(body), body->len, &sink, err);
}

static int give_object(void *arg, const struct df_driver_xml_item *item, struct df_err *err)
{
    return df_driver_give(arg, item->name, item->size, item->made_us, err);
}

int df_driver_xml_page(struct df_driver_page *p, const struct df_driver_xml_words *words,
                       const struct df_buf *body, struct df_err *err)
{
    struct df_driver_xml_list l = {.words = words, .give = give_object, .arg = p};
    int result = df_driver_xml_read(&l, body, err);
    if (result == 0 && l.more && !l.next)
        result = df_fail(err, DF_ERR_SYSTEM, "list %s: more, but not where it goes on",
                         p->driver->bucket.place);
    p->next = l.more || !words->more ? DF_TAKE(l.next) : NULL;
    free(l.next);
    return result;
}
