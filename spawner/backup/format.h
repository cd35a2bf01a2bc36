/*
 * format.h - what a backup consists of. Only for spawner/backup.
 *
 * A tar archive (common/archive/ustar.h) of, in this order: DF_BACKUP_HEADER, the database, the key
 * and the certificate authority unless they were left out, the blobs, and DF_BACKUP_SUMS, which has
 * the SHA-256 of every member before it as `sha256sum` prints them, in the same order. So one pass
 * writes it and one pass checks it, and `tar -x` and `sha256sum -c` read it without dayfly.
 */
#ifndef DF_BACKUP_FORMAT_H
#define DF_BACKUP_FORMAT_H

#define DF_BACKUP_FORMAT 1 /* of the archive; a reader refuses a higher one */

/* {format, version, createdAt, key: included, blobs: included, location: of the bucket, elsewhere:
 * {count, executors: [{name, type}]}: those whose state is in a storage of their own; the first
 * DF_BACKUP_NAMED. Without it: there are none, or an older version made the archive} */
#define DF_BACKUP_HEADER "backup.json"
#define DF_BACKUP_NAMED 20
#define DF_BACKUP_DATABASE "dayfly.db"
#define DF_BACKUP_KEY "key"
#define DF_BACKUP_BLOBS "blobs/data/" /* as in a data directory */
#define DF_BACKUP_SUMS "SHA256SUMS"

#endif
