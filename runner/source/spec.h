/*
 * spec.h - reads and checks the `source` member of a step document. The spawner has checked it,
 * too, but a runner does not rely on that. Internal to runner/source.
 */
#ifndef DF_SOURCE_SPEC_H
#define DF_SOURCE_SPEC_H

#include "common/json/json.h"
#include "common/source/rules.h"

enum df_source_kind { DF_SOURCE_DIRECTORY, DF_SOURCE_GIT, DF_SOURCE_ARCHIVE };

/* Strings are borrowed from the document unless owned. NULL: not given. */
struct df_source_spec {
    enum df_source_kind kind;
    enum df_source_scheme scheme;
    const char *url;
    char *path;   /* owned: of a file URL, decoded; else NULL */
    char *host;   /* owned: "[user@]host[:port]", for messages; NULL of a file URL */
    char *origin; /* owned: "https://host:port" of an https URL as git shows it; else NULL */
    /* git: exactly one of the four. ref: a branch, or a tag if there is no such branch. */
    const char *tag, *branch, *ref, *commit;
    const char *folder; /* relative, without ".."; NULL for the top */
    const char *sha256;
    bool accepts_http; /* also to other hosts than loopback */
    bool submodules;
    bool any_commit;        /* the commit may be in no branch or tag */
    bool follows_links;     /* directory: a link out of it is replaced by what it leads to */
    bool keeps_top;         /* archive: a single directory at its top stays */
    bool accepts_host_keys; /* ssh without known_hosts: whichever key the server has */
    const char *username, *password, *ssh_key, *known_hosts, *ca_certificate;
};

void df_source_spec_free(struct df_source_spec *s);
#define DF_SOURCE_SPEC DF_CLEANUP(df_source_spec_free)

/* Class USER, reason SourceRefused, for a source that is not allowed; NOT_FOUND, reason
 * SourceFailed, for a path that does not exist. source must outlive *ret. */
int df_source_spec_read(const cJSON *source, struct df_source_spec *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* Refuses the fault of df_source_url_fault(); accepts_http: that of df_source_open_url_fault(). */
int df_source_url_check(const char *url, bool accepts_http, struct df_source_url *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* Fails with class USER, reason SourceRefused. */
int df_source_refuse(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3);

#endif
