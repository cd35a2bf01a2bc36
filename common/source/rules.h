/*
 * rules.h - where a module may come from. The spawner checks these rules before it accepts a
 * source, and the runner again before it fetches. A refused source never reaches git, curl or a
 * log: options in disguise (-x, --upload-pack=), transports that run programs (ext::), passwords in
 * URLs.
 *
 * A fault is a string literal that continues a sentence after the field's name, without the value;
 * NULL: no fault. Thread rule: pure functions.
 */
#ifndef DF_SOURCE_RULES_H
#define DF_SOURCE_RULES_H

#include "common/base/util.h"

#define DF_SOURCE_USE_SECRET                                                                       \
    "has credentials in it; put them into a secret and name it in secretRef"

enum df_source_scheme { DF_SCHEME_FILE, DF_SCHEME_HTTPS, DF_SCHEME_SSH };

/* The parts of a URL, borrowed from it. */
struct df_source_url {
    enum df_source_scheme scheme; /* HTTPS also for http, SSH also for
                                     user@host:path */
    const char *user;             /* before the @; user_len 0: none */
    size_t user_len;
    const char *host; /* with its port */
    size_t host_len;
    const char *path; /* with the query */
    bool is_open;     /* http to a host that is not loopback */
};

/* The fault of a URL, of a source or a submodule. *ret is complete only if there is no fault. */
const char *df_source_url_fault(const char *url, struct df_source_url *ret);
/* The same where http, which anybody on the way can read and change, is no fault. */
const char *df_source_open_url_fault(const char *url, struct df_source_url *ret);

/* The fault of an address with a folder or ref in it, as modules (git::URL//DIR) and web pages of
 * repositories (URL/tree/main/DIR) have it: it is the name of no repository. */
const char *df_source_address_fault(const char *url);

/* The fault of a tag or branch: as of git check-ref-format, or an option of git. */
const char *df_source_ref_fault(const char *s);
const char *df_source_commit_fault(const char *s);
/* The fault of a path inside the source. */
const char *df_source_folder_fault(const char *s);

/* The length of the ending (".tar.gz") that marks a name of n bytes as an archive for archive.h; 0:
 * it is none. */
size_t df_source_archive_ending(const char *name, size_t n);

/* The length of a URL without its query and a slash at its end. */
size_t df_source_url_name(const char *url);

#endif
