#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "tests/unit/scratch.h"

#define MIB ((size_t)1024 * 1024)
#define SEALED_HEADER ((size_t)40)
#define SEALED_CHUNK (MIB + 16)

static const unsigned char key_a[DF_KEY_LEN] = {1, 2, 3};
static const unsigned char key_b[DF_KEY_LEN] = {1, 2, 4};

/* An unnamed file with this content. The caller closes. */
static int file_with(const void *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    struct df_err err = {0};
    assert_int_equal(df_fs_write_all(fd, bytes, n, &err), 0);
    return fd;
}

/* The whole content of a file. The caller frees. */
static char *content_of(int fd, size_t *ret_n)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, (size_t)st.st_size, 0), st.st_size);
    *ret_n = (size_t)st.st_size;
    return bytes;
}

static void the_digests_are_those_of_the_standards(void **state)
{
    (void)state;
    struct df_err err = {0};
    char hex[DF_SHA256_HEX];
    assert_int_equal(df_sha256_hex("abc", 3, hex, &err), 0);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(df_sha256_hex("", 0, hex, &err), 0);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");

    DF_CLOSE int fd = file_with("abc", 3);
    unsigned char md5[DF_MD5_LEN];
    char md5_hex[2 * DF_MD5_LEN + 1];
    assert_int_equal(df_md5_file(fd, md5, &err), 0);
    df_hex(md5, sizeof(md5), md5_hex);
    assert_string_equal(md5_hex, "900150983cd24fb0d6963f7d28e17f72");
}

static void a_file_is_digested_from_its_start_wherever_its_offset_is(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_CLOSE int fd = file_with("abc", 3);
    char hex[DF_SHA256_HEX];
    int64_t size = 0;
    assert_int_equal(df_sha256_file_hex(fd, hex, &size, &err), 0);
    assert_int_equal(size, 3);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(df_sha256_file_hex(fd, hex, NULL, &err), 0);
}

static void a_digest_in_pieces_is_the_digest_of_the_whole(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_sha256_ctx *c = NULL;
    char hex[DF_SHA256_HEX];
    assert_int_equal(df_sha256_new(&c, &err), 0);
    assert_int_equal(df_sha256_update(c, "a", 1, &err), 0);
    assert_int_equal(df_sha256_update(c, "", 0, &err), 0);
    assert_int_equal(df_sha256_update(c, "bc", 2, &err), 0);
    assert_int_equal(df_sha256_final_hex(c, hex, &err), 0);
    df_sha256_free(c);
    df_sha256_free(NULL);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void a_file_that_cannot_be_read_has_no_digest(void **state)
{
    (void)state;
    struct df_err err = {0};
    char hex[DF_SHA256_HEX] = "untouched";
    assert_int_equal(df_sha256_file_hex(-1, hex, NULL, &err), -1);
    assert_string_equal(hex, "untouched");
}

static void base64_goes_there_and_back(void **state)
{
    (void)state;
    static const struct {
        const char *text, *standard, *url;
    } cases[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xff\xef\xfe", "/+/+", "_-_-"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        for (int url = 0; url < 2; url++) {
            struct df_err err = {0};
            const char *want = url ? cases[i].url : cases[i].standard;
            DF_BUF struct df_buf out = DF_BUF_INIT(100);
            DF_BUF struct df_buf back = DF_BUF_INIT(100);
            assert_int_equal(
                df_base64_encode(cases[i].text, strlen(cases[i].text), url, &out, &err), 0);
            assert_string_equal(df_buf_str(&out), want);
            assert_int_equal(df_base64_decode(want, strlen(want), url, &back, &err), 0);
            assert_string_equal(df_buf_str(&back), cases[i].text);
        }
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool url;
    } cases[] = {
        {"Z", false},    {"Zg", false},     {"Zg=", false},      {"Zg===", false}, {"====", false},
        {"Z===", false}, {"Zm9v\n", false}, {"Zm 9", false},     {"_-_-", false},  {"Zh==", false},
        {"Zm9=", false}, {"=Zm9", false},   {"Zg==Zg==", false}, {"/+/+", true},   {"Zg==", true},
        {"Z", true},     {"Zh", true},      {"Zm9vY", true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_BUF struct df_buf out = DF_BUF_INIT(100);
        const char *text = cases[i].text;
        assert_int_equal(df_base64_decode(text, strlen(text), cases[i].url, &out, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void base64_that_does_not_fit_is_a_limit(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(7);
    assert_int_equal(df_base64_encode("foobar", 6, false, &out, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void what_was_sealed_opens_with_the_same_key_and_place(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 16, 1000};
    char text[1000];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < DF_ARRAY_SIZE(sizes); i++) {
        struct df_err err = {0};
        DF_BUF struct df_buf sealed = DF_BUF_INIT(2000);
        DF_BUF struct df_buf opened = DF_BUF_INIT(2000);
        assert_int_equal(df_aead_seal(key_a, "place", text, sizes[i], &sealed, &err), 0);
        assert_int_equal(sealed.len, sizes[i] + 28);
        assert_int_equal(df_aead_open(key_a, "place", sealed.data, sealed.len, &opened, &err), 0);
        assert_int_equal(opened.len, sizes[i]);
        assert_memory_equal(df_buf_str(&opened), text, sizes[i]);
    }
}

static void what_is_sealed_in_place_is_as_good(void **state)
{
    (void)state;
    DF_BUF struct df_buf b = DF_BUF_INIT(36), opened = DF_BUF_INIT(100);
    struct df_err err = {0};
    const char *text = NULL;
    size_t n = 0;
    (void)df_buf_adds(&b, "twelve bytesa secret");
    assert_int_equal(df_aead_seal_here(key_a, "place", &b, &err), 0);
    assert_int_equal(b.len, 8 + 28);
    assert_int_equal(df_aead_open(key_a, "place", b.data, b.len, &opened, &err), 0);
    assert_string_equal(df_buf_str(&opened), "a secret");
    assert_int_equal(df_aead_open_here(key_a, "place", &b, &text, &n, &err), 0);
    assert_int_equal(n, 8);
    assert_memory_equal(text, "a secret", 8);
    assert_int_equal(df_aead_open_here(key_a, "place", &b, &text, &n, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    b.len = 27;
    assert_int_equal(df_aead_open_here(key_a, "place", &b, &text, &n, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    df_buf_clear(&b);
    (void)df_buf_adds(&b, "twelve bytesa secret, too long");
    assert_int_equal(df_aead_seal_here(key_a, "place", &b, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void assert_stays_closed(const unsigned char *key, const char *aad, const void *bytes,
                                size_t n)
{
    struct df_err err = {0};
    DF_BUF struct df_buf opened = DF_BUF_INIT(2000);
    assert_int_equal(df_aead_open(key, aad, bytes, n, &opened, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_int_equal(opened.len, 0);
}

static void a_sealed_text_with_any_bit_flipped_stays_closed(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(2000);
    assert_int_equal(df_aead_seal(key_a, "place", "a secret", 8, &sealed, &err), 0);
    for (size_t bit = 0; bit < sealed.len * 8; bit++) {
        sealed.data[bit / 8] = (char)(sealed.data[bit / 8] ^ (1 << bit % 8));
        assert_stays_closed(key_a, "place", sealed.data, sealed.len);
        sealed.data[bit / 8] = (char)(sealed.data[bit / 8] ^ (1 << bit % 8));
    }
}

static void a_sealed_text_that_was_cut_or_moved_stays_closed(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(2000);
    assert_int_equal(df_aead_seal(key_a, "place", "a secret", 8, &sealed, &err), 0);
    for (size_t n = 0; n < sealed.len; n++)
        assert_stays_closed(key_a, "place", sealed.data, n);
    assert_stays_closed(key_a, "plac", sealed.data, sealed.len);
    assert_stays_closed(key_a, "", sealed.data, sealed.len);
    assert_stays_closed(key_b, "place", sealed.data, sealed.len);
}

static void the_same_text_never_looks_the_same_sealed(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BUF struct df_buf one = DF_BUF_INIT(2000);
    DF_BUF struct df_buf two = DF_BUF_INIT(2000);
    assert_int_equal(df_aead_seal(key_a, "place", "a secret", 8, &one, &err), 0);
    assert_int_equal(df_aead_seal(key_a, "place", "a secret", 8, &two, &err), 0);
    assert_memory_not_equal(one.data, two.data, one.len);
}

static void a_text_that_does_not_fit_is_neither_sealed_nor_opened(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(35);
    assert_int_equal(df_aead_seal(key_a, "", "12345678", 8, &sealed, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(sealed.len, 0);
}

/* A file of n bytes that differ from place to place. */
static int patterned_file(size_t n)
{
    DF_FREE char *bytes = malloc(n + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    return file_with(bytes, n);
}

static int sealed_copy(int in_fd)
{
    struct df_err err = {0};
    int out = memfd_create("sealed", MFD_CLOEXEC);
    assert_int_equal(df_seal_file(key_a, "run-1", in_fd, out, &err), 0);
    return out;
}

static void sealed_files_of_every_shape_open_again(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 1000, MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB + 5};
    for (size_t i = 0; i < DF_ARRAY_SIZE(sizes); i++) {
        struct df_err err = {0};
        DF_CLOSE int plain = patterned_file(sizes[i]);
        DF_CLOSE int sealed = sealed_copy(plain);
        DF_CLOSE int opened = memfd_create("opened", MFD_CLOEXEC);
        assert_int_equal(df_open_file(key_a, "run-1", sealed, 0, opened, &err), 0);
        size_t n = 0, m = 0;
        DF_FREE char *a = content_of(plain, &n);
        DF_FREE char *b = content_of(opened, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
    }
}

static void a_sealed_file_of_an_earlier_version_still_opens(void **state)
{
    (void)state;
    /* Written by the first version of this format: key 01 02 03 00..., place "run-1". */
    static const char sealed_hex[] =
        "44465345414c310a6465666768696a6b6c6d6e6f707172737475767778797a7b"
        "7c7d7e7f80818283d17d38e2f313be3c669a60808cd992a55782dc23";
    unsigned char sealed[sizeof(sealed_hex) / 2];
    for (size_t i = 0; i < sizeof(sealed_hex) / 2; i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(sealed_hex + 2 * i, "%2x", &byte), 1);
        sealed[i] = (unsigned char)byte;
    }
    struct df_err err = {0};
    DF_CLOSE int in = file_with(sealed, sizeof(sealed_hex) / 2);
    DF_CLOSE int out = memfd_create("opened", MFD_CLOEXEC);
    assert_int_equal(df_open_file(key_a, "run-1", in, 0, out, &err), 0);
    size_t n = 0;
    DF_FREE char *text = content_of(out, &n);
    assert_int_equal(n, 4);
    assert_memory_equal(text, "plan", 4);
}

static void assert_file_stays_closed(const unsigned char *key, const char *aad, const void *bytes,
                                     size_t n)
{
    struct df_err err = {0};
    DF_CLOSE int in = file_with(bytes, n);
    DF_CLOSE int out = memfd_create("opened", MFD_CLOEXEC);
    assert_int_equal(df_open_file(key, aad, in, 0, out, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
}

static void a_sealed_file_with_any_bit_flipped_stays_closed(void **state)
{
    (void)state;
    DF_CLOSE int plain = patterned_file(20);
    DF_CLOSE int sealed = sealed_copy(plain);
    size_t n = 0;
    DF_FREE char *bytes = content_of(sealed, &n);
    for (size_t bit = 0; bit < n * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        assert_file_stays_closed(key_a, "run-1", bytes, n);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
}

static void a_sealed_file_with_its_chunks_tampered_stays_closed(void **state)
{
    (void)state;
    DF_CLOSE int plain = patterned_file(3 * MIB);
    DF_CLOSE int sealed = sealed_copy(plain);
    size_t n = 0;
    DF_FREE char *bytes = content_of(sealed, &n);
    DF_FREE char *other = malloc(n + SEALED_CHUNK);
    assert_int_equal(n, SEALED_HEADER + 3 * SEALED_CHUNK);
    assert_non_null(other);
    char *first = other + SEALED_HEADER, *second = first + SEALED_CHUNK;

    memcpy(other, bytes, n); /* swapped */
    memcpy(first, bytes + SEALED_HEADER + SEALED_CHUNK, SEALED_CHUNK);
    memcpy(second, bytes + SEALED_HEADER, SEALED_CHUNK);
    assert_file_stays_closed(key_a, "run-1", other, n);

    memcpy(other, bytes, n); /* repeated in place of the next */
    memcpy(second, first, SEALED_CHUNK);
    assert_file_stays_closed(key_a, "run-1", other, n);

    memcpy(other, bytes, n); /* the last one repeated behind itself */
    memcpy(other + n, bytes + n - SEALED_CHUNK, SEALED_CHUNK);
    assert_file_stays_closed(key_a, "run-1", other, n + SEALED_CHUNK);

    memcpy(other, bytes, n); /* one left out in the middle */
    memcpy(second, bytes + n - SEALED_CHUNK, SEALED_CHUNK);
    assert_file_stays_closed(key_a, "run-1", other, n - SEALED_CHUNK);

    const size_t cuts[] = {0,
                           7,
                           SEALED_HEADER - 1,
                           SEALED_HEADER,
                           SEALED_HEADER + 15,
                           SEALED_HEADER + SEALED_CHUNK,
                           SEALED_HEADER + 2 * SEALED_CHUNK,
                           n - 1};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cuts); i++)
        assert_file_stays_closed(key_a, "run-1", bytes, cuts[i]);

    memcpy(other, bytes, n); /* a byte behind the end */
    other[n] = 'x';
    assert_file_stays_closed(key_a, "run-1", other, n + 1);
}

static void chunks_of_another_file_under_the_same_key_do_not_fit(void **state)
{
    (void)state;
    DF_CLOSE int plain = patterned_file(2 * MIB);
    DF_CLOSE int one = sealed_copy(plain);
    DF_CLOSE int two = sealed_copy(plain);
    size_t n = 0, m = 0;
    DF_FREE char *a = content_of(one, &n);
    DF_FREE char *b = content_of(two, &m);
    memcpy(a + SEALED_HEADER + SEALED_CHUNK, b + SEALED_HEADER + SEALED_CHUNK, SEALED_CHUNK);
    assert_file_stays_closed(key_a, "run-1", a, n);
}

static void a_sealed_file_opens_at_its_own_place_and_key_alone(void **state)
{
    (void)state;
    DF_CLOSE int plain = patterned_file(100);
    DF_CLOSE int sealed = sealed_copy(plain);
    size_t n = 0;
    DF_FREE char *bytes = content_of(sealed, &n);
    assert_file_stays_closed(key_a, "run-2", bytes, n);
    assert_file_stays_closed(key_b, "run-1", bytes, n);
}

static void a_derived_key_depends_on_master_and_purpose_and_never_changes(void **state)
{
    (void)state;
    struct df_err err = {0};
    unsigned char master[DF_KEY_LEN], out[DF_KEY_LEN], plan[DF_KEY_LEN];
    char hex[2 * DF_KEY_LEN + 1];
    for (size_t i = 0; i < sizeof(master); i++)
        master[i] = (unsigned char)i;
    assert_int_equal(df_derive_key(master, "vault", out, &err), 0);
    df_hex(out, sizeof(out), hex);
    assert_string_equal(hex, "eb102825e66ab05e90d047cd6f1c110bb8a1202036d3e8594b7337fa2b224f12");
    assert_int_equal(df_derive_key(master, "plan", plan, &err), 0);
    assert_memory_not_equal(out, plan, sizeof(out));
}

static void a_key_file_is_made_once_and_then_kept(void **state)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(*state, "key");
    unsigned char one[DF_KEY_LEN], two[DF_KEY_LEN];
    assert_int_equal(df_key_file(path, one, &err), 0);
    assert_int_equal(df_key_file(path, two, &err), 0);
    assert_memory_equal(one, two, sizeof(one));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
}

static void a_key_file_that_is_damaged_is_refused_and_left_alone(void **state)
{
    static const char *const contents[] = {
        "",
        "\n",
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeef\n",
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n\n",
        "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\n",
        "00112233445566778899aabbccddeeff00112233445566778899aabbccddeefg\n",
    };
    DF_FREE char *path = df_fs_join(*state, "key");
    for (size_t i = 0; i < DF_ARRAY_SIZE(contents); i++) {
        struct df_err err = {0};
        unsigned char key[DF_KEY_LEN] = {42};
        assert_int_equal(df_fs_replace(path, contents[i], strlen(contents[i]), 0600, &err), 0);
        assert_int_equal(df_key_file(path, key, &err), -1);
        assert_int_equal(err.cls, DF_ERR_SYSTEM);
        assert_non_null(strstr(err.message, path));
        assert_int_equal(key[0], 42);
        DF_BUF struct df_buf after = DF_BUF_INIT(1000);
        assert_int_equal(df_fs_read(path, &after, &err), 0);
        assert_string_equal(df_buf_str(&after), contents[i]);
    }
}

static void a_key_file_that_others_may_read_is_refused(void **state)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(*state, "key");
    unsigned char key[DF_KEY_LEN];
    assert_int_equal(df_key_file(path, key, &err), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(df_key_file(path, key, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "chmod 600"));
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(df_key_file(path, key, &err), 0);
}

static void a_directory_is_no_key_file(void **state)
{
    struct df_err err = {0};
    unsigned char key[DF_KEY_LEN];
    assert_int_equal(df_key_file(*state, key, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
}

static void a_key_file_in_a_missing_directory_says_where(void **state)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(*state, "none/key");
    unsigned char key[DF_KEY_LEN];
    assert_int_equal(df_key_file(path, key, &err), -1);
    assert_non_null(strstr(err.message, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digests_are_those_of_the_standards),
        cmocka_unit_test(a_file_is_digested_from_its_start_wherever_its_offset_is),
        cmocka_unit_test(a_digest_in_pieces_is_the_digest_of_the_whole),
        cmocka_unit_test(a_file_that_cannot_be_read_has_no_digest),
        cmocka_unit_test(base64_goes_there_and_back),
        cmocka_unit_test(what_is_not_base64_is_refused),
        cmocka_unit_test(base64_that_does_not_fit_is_a_limit),
        cmocka_unit_test(what_was_sealed_opens_with_the_same_key_and_place),
        cmocka_unit_test(what_is_sealed_in_place_is_as_good),
        cmocka_unit_test(a_sealed_text_with_any_bit_flipped_stays_closed),
        cmocka_unit_test(a_sealed_text_that_was_cut_or_moved_stays_closed),
        cmocka_unit_test(the_same_text_never_looks_the_same_sealed),
        cmocka_unit_test(a_text_that_does_not_fit_is_neither_sealed_nor_opened),
        cmocka_unit_test(sealed_files_of_every_shape_open_again),
        cmocka_unit_test(a_sealed_file_of_an_earlier_version_still_opens),
        cmocka_unit_test(a_sealed_file_with_any_bit_flipped_stays_closed),
        cmocka_unit_test(a_sealed_file_with_its_chunks_tampered_stays_closed),
        cmocka_unit_test(chunks_of_another_file_under_the_same_key_do_not_fit),
        cmocka_unit_test(a_sealed_file_opens_at_its_own_place_and_key_alone),
        cmocka_unit_test(a_derived_key_depends_on_master_and_purpose_and_never_changes),
        scratch_test(a_key_file_is_made_once_and_then_kept),
        scratch_test(a_key_file_that_is_damaged_is_refused_and_left_alone),
        scratch_test(a_key_file_that_others_may_read_is_refused),
        scratch_test(a_directory_is_no_key_file),
        scratch_test(a_key_file_in_a_missing_directory_says_where),
    };
    return cmocka_run_group_tests_name("crypto", tests, NULL, NULL);
}
