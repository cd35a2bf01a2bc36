#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/job/job_fields.h"
#include "tests/unit/kube_diary.h"
#include "tests/unit/proto_words.h"

static const struct {
    long version;
    const char *type, *name, *text;
} told[] = {
    {11, "ADDED", "b", "11"},   {12, "MODIFIED", "a", "12"},     {13, "DELETED", "b", "13"},
    {20, "BOOKMARK", "", "20"}, {21, "ADDED", "\xc3\xa9", "21"}, {22, "ADDED", "c", "22"},
};

static void frame(struct kube_reply *a, const struct df_buf *event)
{
    size_t n = event->len;
    const char head[DF_PROTO_FRAME] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    (void)df_buf_addf(&a->bytes, "%zx\r\n", n + sizeof(head));
    (void)df_buf_add(&a->bytes, head, sizeof(head));
    (void)df_buf_add(&a->bytes, df_buf_str(event), n);
    (void)df_buf_adds(&a->bytes, "\r\n");
}

static void tell_job(struct kube_reply *a, const char *type, const char *name, const char *version)
{
    DF_BUF struct df_buf metadata = DF_BUF_INIT(DF_KIB), job = DF_BUF_INIT(DF_KIB);
    DF_BUF struct df_buf event = DF_BUF_INIT(DF_KIB);
    proto_text(&metadata, 1, name);
    proto_text(&metadata, 3, "build");
    proto_text(&metadata, 6, version);
    proto_message(&job, 1, &metadata);
    proto_event(&event, type, "Job", &job);
    frame(a, &event);
}

static void tell_frames(const struct kube_request *r, struct kube_reply *a)
{
    kube_stream(a);
    frame(a, &(struct df_buf){0}); /* an empty one says nothing */
    for (size_t i = 0; i < DF_ARRAY_SIZE(told); i++)
        if (told[i].version > kube_parameter(r->target, "resourceVersion"))
            tell_job(a, told[i].type, told[i].name, told[i].text);
}

static void tell_nothing(const struct kube_request *r, struct kube_reply *a)
{
    (void)r, (void)a;
}

/* In frames where they are asked for. */
static void cut_the_first_frames(struct kube_server *s, const struct kube_request *r,
                                 struct kube_reply *a)
{
    bool asked = strstr(r->head, "Accept: " DF_PROTO_WATCH_TYPE ",application/json\r\n");
    cut_first_stream(s, r, a, asked ? tell_frames : tell_nothing);
}

static void a_stream_of_frames_cut_at_any_byte_is_taken_up_where_it_was(void **state)
{
    (void)state;
    cut_at_every_byte(cut_the_first_frames, tell_frames, df_job_fields);
}

/* Everything but the first stream is answered as it should be. */
static bool is_first_stream(const struct kube_server *s, const struct kube_request *r,
                            struct kube_reply *a)
{
    if (!strstr(r->target, "watch=true")) {
        kube_say(a, 200, "", LIST("10", ""));
        return false;
    }
    if (s->watches == 1)
        return true;
    tell_frames(r, a);
    a->hold = true;
    return false;
}

/* Refuses the first stream by its head or in its first frame, with a Status. */
static void refuse_in_frames(struct kube_server *s, const struct kube_request *r,
                             struct kube_reply *a)
{
    const bool *in_stream = s->arg;
    DF_BUF struct df_buf status = DF_BUF_INIT(DF_KIB), text = DF_BUF_INIT(DF_KIB);
    if (!is_first_stream(s, r, a))
        return;
    proto_text(&status, 3, "jobs is forbidden to you");
    proto_text(&status, 4, "Forbidden");
    proto_number(&status, 6, 403);
    if (*in_stream) {
        kube_stream(a);
        proto_event(&text, "ERROR", "Status", &status);
        frame(a, &text);
        kube_stream_end(a);
        return;
    }
    proto_object(&text, "Status", &status);
    (void)df_buf_addf(&a->bytes, "HTTP/1.1 403 Said\r\nContent-Length: %zu\r\n\r\n", text.len);
    (void)df_buf_add(&a->bytes, text.data, text.len);
}

static void why_a_watch_is_refused_is_read_as_protobuf_too(void **state)
{
    (void)state;
    for (int in_stream = 0; in_stream < 2; in_stream++) {
        struct kube_server s;
        struct diary d;
        bool arg = in_stream;
        kube_start(&s, refuse_in_frames, &arg);
        diary_open(&d);
        watch_until(&s, &d, df_job_fields, "+c22");
        kube_stop(&s);
        assert_int_equal(d.last.cls, DF_ERR_DENIED);
        assert_non_null(strstr(d.last.message, "jobs is forbidden to you (HTTP 403 Forbidden)"));
        diary_close(&d);
    }
}

/* A frame that claims to be longer than any object is. */
static void claim_much(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    if (!is_first_stream(s, r, a))
        return;
    DF_BUF struct df_buf much = DF_BUF_INIT(8 * DF_MIB);
    for (size_t i = 0; i < DF_LIMIT_KUBE_OBJECT / DF_KIB + 1; i++) {
        static const char zeros[DF_KIB];
        (void)df_buf_add(&much, zeros, sizeof(zeros));
    }
    kube_stream(a);
    frame(a, &much);
}

static void an_endless_frame_ends_the_stream(void **state)
{
    (void)state;
    struct kube_server s;
    struct diary d;
    kube_start(&s, claim_much, NULL);
    diary_open(&d);
    watch_until(&s, &d, df_job_fields, "+c22");
    kube_stop(&s);
    assert_int_equal(d.last.cls, DF_ERR_LIMIT);
    diary_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_of_frames_cut_at_any_byte_is_taken_up_where_it_was),
        cmocka_unit_test(why_a_watch_is_refused_is_read_as_protobuf_too),
        cmocka_unit_test(an_endless_frame_ends_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
