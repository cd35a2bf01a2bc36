#include "common/xml/xml.h"

#include <expat.h>

#include "common/base/buf.h"
#include "common/base/limits.h"

struct reading {
    XML_Parser parser;
    const struct df_xml_sink *sink;
    struct df_buf path, text;
    struct df_err why;
    bool failed;
};

static void stop_reading(struct reading *r)
{
    r->failed = true;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void on_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = arg;
    const char *local = strrchr(name, ':');
    (void)attributes;
    if (r->path.len)
        (void)df_buf_addc(&r->path, '/');
    (void)df_buf_adds(&r->path, local ? local + 1 : name);
    df_buf_clear(&r->text);
    if (df_buf_check(&r->path, &r->why) < 0)
        stop_reading(r);
}

static void on_text(void *arg, const XML_Char *text, int n)
{
    struct reading *r = arg;
    if (df_buf_add(&r->text, text, (size_t)n) < 0) {
        (void)!df_buf_check(&r->text, &r->why);
        stop_reading(r);
    }
}

static void on_end(void *arg, const XML_Char *name)
{
    struct reading *r = arg;
    (void)name;
    if (r->failed)
        return;
    if (r->sink->element(r->sink->arg, df_buf_str(&r->path), df_buf_str(&r->text), &r->why) < 0)
        stop_reading(r);
    const char *parent = strrchr(r->path.data, '/');
    r->path.len = parent ? (size_t)(parent - r->path.data) : 0;
    r->path.data[r->path.len] = '\0';
    df_buf_clear(&r->text); /* what follows is the parent's, which has none that matters */
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
                       const XML_Char *public_id, int internal)
{
    struct reading *r = arg;
    (void)name, (void)system_id, (void)public_id, (void)internal;
    (void)df_fail(&r->why, DF_ERR_USER, "a document type is not allowed");
    stop_reading(r);
}

static void reading_free(struct reading *r)
{
    XML_ParserFree(r->parser);
    df_buf_free(&r->path);
    df_buf_wipe(&r->text); /* credentials may come as XML */
}

int df_xml_read(const char *text, size_t n, const struct df_xml_sink *sink, struct df_err *err)
{
    DF_CLEANUP(reading_free)
    struct reading r = {.parser = XML_ParserCreate(NULL),
                        .sink = sink,
                        .path = DF_BUF_INIT(DF_LIMIT_XML_PATH),
                        .text = DF_BUF_INIT(DF_LIMIT_XML_TEXT)};
    if (!r.parser)
        return df_fail_oom(err);
    if (n > DF_LIMIT_XML)
        return df_fail(err, DF_ERR_LIMIT, "XML of more than %zu bytes", (size_t)DF_LIMIT_XML);
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_begin, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
    enum XML_Status status = XML_Parse(r.parser, text, (int)n, XML_TRUE);
    if (r.failed)
        return df_err_pass(err, &r.why);
    if (status != XML_STATUS_OK)
        return df_fail(err, DF_ERR_USER, "not XML, line %lu: %s",
                       (unsigned long)XML_GetCurrentLineNumber(r.parser),
                       XML_ErrorString(XML_GetErrorCode(r.parser)));
    return 0;
}
