/*
 * proto_words.h - protobuf as the API server writes it, for tests. Include behind cmocka.h.
 */
#ifndef DF_TEST_PROTO_WORDS_H
#define DF_TEST_PROTO_WORDS_H

#include "common/base/buf.h"
#include "common/base/util.h"

static inline void proto_varint(struct df_buf *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        (void)df_buf_add(to, &(char){(char)(value | 0x80)}, 1);
    (void)df_buf_add(to, &(char){(char)value}, 1);
}

static inline void proto_number(struct df_buf *to, uint32_t field, int64_t value)
{
    proto_varint(to, (uint64_t)field << 3);
    proto_varint(to, (uint64_t)value);
}

static inline void proto_bytes(struct df_buf *to, uint32_t field, const void *bytes, size_t n)
{
    proto_varint(to, (uint64_t)field << 3 | 2);
    proto_varint(to, n);
    (void)df_buf_add(to, bytes, n);
}

static inline void proto_text(struct df_buf *to, uint32_t field, const char *text)
{
    proto_bytes(to, field, text, strlen(text));
}

/* Takes the message out of its buffer. */
static inline void proto_message(struct df_buf *to, uint32_t field, struct df_buf *message)
{
    proto_bytes(to, field, df_buf_str(message), message->len);
    df_buf_clear(message);
}

static inline void proto_time(struct df_buf *to, uint32_t field, int64_t seconds)
{
    DF_BUF struct df_buf time = DF_BUF_INIT(DF_KIB);
    if (seconds) {
        proto_number(&time, 1, seconds);
        proto_number(&time, 2, 0);
    }
    proto_message(to, field, &time);
}

static inline void proto_entry(struct df_buf *to, uint32_t field, const char *key,
                               const char *value)
{
    DF_BUF struct df_buf entry = DF_BUF_INIT(DF_KIB);
    proto_text(&entry, 1, key);
    proto_text(&entry, 2, value);
    proto_message(to, field, &entry);
}

/* The message in the envelope of an object. */
static inline void proto_object(struct df_buf *to, const char *kind, struct df_buf *message)
{
    DF_BUF struct df_buf type = DF_BUF_INIT(DF_KIB);
    proto_text(&type, 1, "v1");
    proto_text(&type, 2, kind);
    (void)df_buf_add(to, "k8s\0", 4);
    proto_message(to, 1, &type);
    proto_message(to, 2, message);
    proto_text(to, 3, "");
    proto_text(to, 4, "");
}

/* An event of a watch, without its frame. */
static inline void proto_event(struct df_buf *to, const char *type, const char *kind,
                               struct df_buf *message)
{
    DF_BUF struct df_buf object = DF_BUF_INIT(DF_MIB), extension = DF_BUF_INIT(DF_MIB);
    proto_object(&object, kind, message);
    proto_message(&extension, 1, &object);
    proto_text(to, 1, type);
    proto_message(to, 2, &extension);
}

#endif
