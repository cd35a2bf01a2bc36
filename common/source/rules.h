/*
 * rules.h - where a module may come from: the rules that the spawner asks before it takes a source
 * in and the runner once more before it touches anything. What is refused here never reaches git,
 * curl or a log: options in disguise (-x, --upload-pack=), transports that run programs (ext::),
 * passwords in URLs.
 *
 * A fault is the literal end of a sentence that begins with the field's name, and shows nothing of
 * the value; NULL: there is none. Thread rule: pure functions.
 */
#ifndef DF_SOURCE_RULES_H
#define DF_SOURCE_RULES_H

#include "common/base/util.h"

#define DF_SOURCE_USE_SECRET                                                                       \
    "has credentials in it; put them into a secret and name it in secretRef"

enum df_source_scheme { DF_SCHEME_FILE, DF_SCHEME_HTTPS, DF_SCHEME_SSH };

/* The parts of a URL, borrowed from it. */
struct df_source_url {
    enum df_source_scheme scheme; /* HTTPS stands for http to a loopback host, too, and SSH for
                                     user@host:path */
    const char *user;             /* in front of the @; user_len 0: none */
    size_t user_len;
    const char *host; /* with its port */
    size_t host_len;
    const char *path; /* with the query */
};

/* What of a URL is never taken, wherever it stands (a source's url, a submodule's). *ret is whole
 * without a fault alone. */
const char *df_source_url_fault(const char *url, struct df_source_url *ret);

/* A tag or a branch: what git check-ref-format refuses, and what git would take for an option. */
const char *df_source_ref_fault(const char *s);
const char *df_source_commit_fault(const char *s);
/* A path inside the source. */
const char *df_source_folder_fault(const char *s);

/* How many of the n bytes at the end of a name say that it is an archive that archive.h unpacks; 0:
 * none do. */
size_t df_source_archive_ending(const char *name, size_t n);

/* How many bytes of a URL stand in front of its query and the slash at its end. */
size_t df_source_url_name(const char *url);

#endif
