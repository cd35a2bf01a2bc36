/*
 * spec.h - the `source` member of a step document, read and judged before anything is touched.
 * Internal to runner/source. The spawner has refused bad sources long ago; a runner trusts nobody.
 */
#ifndef DF_SOURCE_SPEC_H
#define DF_SOURCE_SPEC_H

#include "common/json/json.h"

enum df_source_kind { DF_SOURCE_DIRECTORY, DF_SOURCE_GIT, DF_SOURCE_ARCHIVE };
enum df_source_scheme { DF_SCHEME_FILE, DF_SCHEME_HTTPS, DF_SCHEME_SSH };

/* Strings are borrowed from the document but for the owned ones. NULL: not given. */
struct df_source_spec {
    enum df_source_kind kind;
    enum df_source_scheme scheme; /* HTTPS stands for http to a loopback host, too */
    const char *url;
    char *path;   /* owned: of a file URL, as it is on disk; else NULL */
    char *origin; /* owned: "https://host:port" of an https URL as git shows it; else NULL */
    const char *tag, *branch, *commit; /* git: exactly one */
    const char *folder;                /* relative, without ".."; NULL for the top */
    const char *sha256;
    bool submodules;
    const char *username, *password, *ssh_key, *known_hosts, *ca_certificate;
};

void df_source_spec_free(struct df_source_spec *s);
#define DF_SOURCE_SPEC DF_CLEANUP(df_source_spec_free)

/* Class USER, reason SourceRefused, for what must not be taken; NOT_FOUND, reason SourceFailed, for
 * a path that is not there. source must outlive *ret. */
int df_source_spec_read(const cJSON *source, struct df_source_spec *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* What of a URL is never taken, wherever it stands (a source's url, a submodule's): option-like
 * words, transport prefixes (ext::), control characters, passwords, schemes but file, https, ssh
 * and http to this machine. */
int df_source_url_check(const char *url, enum df_source_scheme *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* 40 or 64 lower-case hex digits. */
bool df_is_commit(const char *s);

/* Relative, without "..", ".git" and control characters? */
bool df_is_inner_path(const char *s);

/* "[user@]host[:port]" of a URL that was checked, for messages. The caller frees. */
char *df_source_host(const char *url);

/* A refusal: class USER, reason SourceRefused. */
int df_source_refuse(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3);

#endif
