/*
 * limits.h - the limits of every size, count and time that an outsider can increase, in one list.
 *
 * Each limit has its reason here and a test that reaches it, in tests/unit/test_limits.c or the
 * suite of its module. A limit that an operator may change is the default of a configuration key.
 */
#ifndef DF_BASE_LIMITS_H
#define DF_BASE_LIMITS_H

#define DF_KIB ((size_t)1024)
#define DF_MIB (1024 * DF_KIB)
#define DF_GIB (1024 * DF_MIB)

/* Documents */
#define DF_LIMIT_DOCUMENT (1 * DF_MIB) /* one Executor, Run, TaskAction: etcd allows 1.5 MiB */
#define DF_LIMIT_PAGE (4 * DF_MIB)     /* documents of one page of a list, as text */
#define DF_LIMIT_JSON_DEPTH 64         /* our documents have at most 12 levels */
#define DF_LIMIT_YAML_NODES 100000     /* an alias bomb is refused, not expanded */
#define DF_LIMIT_MANIFESTS                                                                         \
    (8 * DF_MIB)                  /* one file; Argo CD's own is 2 MiB, most of it definitions */
#define DF_LIMIT_YAML_ANCHORS 256 /* names are looked up one by one */
#define DF_LIMIT_PHASE_HISTORY 64 /* of a step, which may wait for a lock for days */
#define DF_LIMIT_LOG_PARTS 128    /* pods or tasks of a workflow whose output is kept */
#define DF_LIMIT_NAME 63          /* a DNS label */
#define DF_LIMIT_STEP_DOCUMENT                                                                     \
    (64 * DF_MIB) /* claim answer: variables and mounted files included */

#define DF_LIMIT_STEP_REPORT (64 * DF_KIB) /* claim, progress, result of a runner */

/* Audit trail in a cluster: beyond this the oldest entries are removed */
#define DF_LIMIT_AUDIT_ENTRY (8 * DF_KIB) /* one entry: who, what, when */
#define DF_LIMIT_AUDIT_ENTRIES 64         /* of one AuditTrail: rewritten with each of them */
#define DF_LIMIT_AUDIT_CALLERS 64         /* whose refusals are counted apart */
#define DF_LIMIT_AUDIT_TRAILS 320         /* twenty thousand entries, ten MiB in etcd */

/* Metrics */
#define DF_LIMIT_METRIC_SERIES 1000         /* sets of label values of one metric */
#define DF_LIMIT_METRIC_LABELS (1 * DF_KIB) /* one set, as text */

/* The program's own log */
#define DF_LIMIT_LOG_RECORD (16 * DF_KIB) /* a line of the program's own log */

/* HTTP */
#define DF_LIMIT_HTTP_BODY (1 * DF_MIB)      /* request bodies of ordinary routes */
#define DF_LIMIT_HTTP_IDLE 32                /* kept connections of a pool: many workers */
#define DF_LIMIT_HTTP_RESPONSE (16 * DF_MIB) /* what a client keeps in memory */
#define DF_LIMIT_HTTP_CONNECTIONS 2048       /* with those that were cut and are about to end */
#define DF_LIMIT_HTTP_OPEN 960               /* 100 KiB each with TLS; then a stranger makes room */
#define DF_LIMIT_HTTP_KNOWN 768              /* with a good token: 192 are left for newcomers */
#define DF_LIMIT_HTTP_FOREIGN 32         /* bodies of strangers; the API server's take a moment */
#define DF_LIMIT_HTTP_CALLERS 448        /* of roles read and write: 320 are left for the rest */
#define DF_LIMIT_HTTP_STEPS 640          /* of runners: 128 are left for people */
#define DF_LIMIT_HTTP_CALLER 256         /* of one token or account */
#define DF_LIMIT_HTTP_STEP 32            /* of one step; its runner and tofu use a few */
#define DF_LIMIT_HTTP_FOLLOWERS 128      /* event streams of one token or account */
#define DF_LIMIT_HTTP_HEAD_SECONDS 10    /* from the connection to the end of the first head */
#define DF_LIMIT_HTTP_ANSWER_SECONDS 30  /* to read an answer or a piece of a stream, + RATE */
#define DF_LIMIT_HTTP_IDLE_SECONDS 120   /* a silent peer is cut off */
#define DF_LIMIT_HTTP_HEAD (32 * DF_KIB) /* request line and headers */
#define DF_LIMIT_HTTP_RATE (4 * DF_KIB)  /* bytes per second: a slower body is refused */
#define DF_LIMIT_HTTP_REFUSED (64 * DF_KIB) /* a refused body announced as larger is not read */
#define DF_LIMIT_HTTP_DISCARD (16 * DF_MIB) /* of a refused body of unknown length */
#define DF_LIMIT_HTTP_UNREAD (64 * DF_KIB)  /* over TLS, before a request gets a byte of it */
#define DF_LIMIT_STATE_ANSWER (64 * DF_KIB) /* of a State Service: an id and a status */
#define DF_LIMIT_REPORTS 4096  /* names of changed steps; beyond that all steps are read */
#define DF_LIMIT_SELECTOR 1024 /* bytes of a label selector in a query */
#define DF_LIMIT_TOKENS 1000   /* bearer tokens; all are compared at each request */
#define DF_LIMIT_TOKEN_FILE (1 * DF_MIB)
#define DF_LIMIT_TOKENS_OF_ONE 20 /* personal tokens: of a person, all in one record of the vault */
#define DF_LIMIT_TOKEN_DAYS 90    /* a personal token lasts: whoever forgets one is forgotten */
#define DF_LIMIT_URL (8 * DF_KIB) /* in our requests; many servers refuse longer ones */
#define DF_LIMIT_TOKEN (16 * DF_KIB) /* a bearer token: JWTs with many groups are long */
#define DF_LIMIT_CALLER 255          /* the caller's name, as the audit trail stores it */
#define DF_LIMIT_STAMP 253           /* a user name of Kubernetes that a document keeps */
/* Deletions that the webhook told and nobody audited yet, as of `kubectl delete --all` of a team;
 * one that another webhook refuses is never audited. */
#define DF_LIMIT_DELETIONS 1024
#define DF_LIMIT_DELETION_SECONDS 3600
/* An AdmissionReview: two versions of a resource. Anybody may send one, so DF_LIMIT_HTTP_FOREIGN of
 * them must fit the memory of the spawner, and one of them as a tree, which takes 10 MiB. */
#define DF_LIMIT_REVIEW (256 * DF_KIB)
#define DF_LIMIT_REASON 1024  /* why a person approves, discards or cancels a run; stored with it */
#define DF_LIMIT_APPROVALS 10 /* that an executor may require; they are stored with the run */
#define DF_LIMIT_APPROVERS 100    /* in one list of an executor: a team, or its groups */
#define DF_LIMIT_CA (96 * DF_KIB) /* it is passed in one variable of tofu; Linux allows 128 KiB */
#define DF_LIMIT_HOST 253         /* of a host name: RFC 1035 */
#define DF_LIMIT_JWKS (256 * DF_KIB)    /* an issuer's key set: usually a few KiB */
#define DF_LIMIT_JWKS_KEYS 64           /* of one set; looked up one by one */
#define DF_LIMIT_LOGINS (1 * DF_MIB)    /* the file of `dayfly login`: some KiB for each service */
#define DF_LIMIT_SSE_EVENT (8 * DF_MIB) /* a log frame with every byte escaped, and its JSON */

/* State, plan, log */
#define DF_LIMIT_LOCK_INFO (64 * DF_KIB) /* tofu's lock document: some hundred bytes */
#define DF_LIMIT_STATE (512 * DF_MIB)    /* a state that large is pathological but real */
#define DF_LIMIT_STATE_IN_MEMORY                                                                   \
    (16 * DF_MIB) /* unsealed for one reader; a larger one is in a file meanwhile */
#define DF_LIMIT_STATE_META (8 * DF_KIB) /* what is said of a version: some hundred bytes */
#define DF_LIMIT_STATE_DEPTH 10000       /* the limit of Go's own reader, and so of tofu */
#define DF_LIMIT_OUTPUTS (16 * DF_MIB)   /* all outputs of a state: they are answered from memory */
#define DF_LIMIT_PLAN_READ (256 * DF_MIB)    /* the JSON of a plan that only destroys, in memory */
#define DF_LIMIT_BUNDLE (1 * DF_GIB)         /* plan file + its JSON + lock file */
#define DF_LIMIT_BUNDLE_HEADER (64 * DF_KIB) /* a few names and digests: usually 1 KiB */
#define DF_LIMIT_STREAM                                                                            \
    (1 * DF_GIB) /* log or event stream of one step; more is dropped and counted */
#define DF_LIMIT_STREAM_FRAME (1 * DF_MIB) /* one frame of a stream */
#define DF_LIMIT_EVENT_LINE (1 * DF_MIB)   /* one JSON event of tofu; longer ones are plain text */
#define DF_LIMIT_EVENTS_HELD                                                                       \
    (4 * DF_MIB) /* lines of a provisioner that may be parts of one secret */
#define DF_LIMIT_CHANGED_TYPES                                                                     \
    100 /* of resources that a plan changes; beyond that it needs a look */
#define DF_LIMIT_CHANGED_TYPE 128 /* bytes of one */

/* What an interrupted apply may have created */
#define DF_LIMIT_TOUCHED_OBJECTS 20000 /* a few hundred bytes each; further ones are counted */
#define DF_LIMIT_STATE_COMPARED (16 * DF_MIB)   /* as a tree it takes ten times as much */
#define DF_LIMIT_UNRECORDED 100                 /* listed in a document; the others are counted */
#define DF_LIMIT_UNRECORDED_BYTES (64 * DF_KIB) /* their addresses and ids: a document has more */

#define DF_LIMIT_BLOB_KEY 512 /* ours have at most three segments */
#define DF_LIMIT_BLOB_KUBE                                                                         \
    (64 * DF_MIB) /* one blob in a cluster: the whole of etcd is a few GiB at most */

#define DF_LIMIT_BLOB_BUCKET (16 * DF_GIB)  /* one blob in a bucket */
#define DF_LIMIT_BUCKET_HEAD (8 * DF_MIB)   /* its ids of chunks, and a tail of up to 1 MiB */
#define DF_LIMIT_BUCKET_OBJECT (8 * DF_MIB) /* a chunk, sealed: 1 MiB, once 4 */
#define DF_BUCKET_OWNER_SECONDS 60          /* so long a former owner writes at most */
#define DF_LIMIT_BUCKET_NAME (DF_LIMIT_BLOB_KEY + 512) /* of an object, with the prefix */
#define DF_LIMIT_OBJECT_VERSION 1024 /* the id of a version of an object: S3's own limit */
#define DF_LIMIT_STATE_HISTORY 30    /* versions of a state in a bucket that are listed */
#define DF_LIMIT_STATE_HEAD                                                                        \
    (4 * DF_KIB) /* of a state, for serial and lineage: they are among its first members */
#define DF_LIMIT_KEY_COMMAND 64 /* words of blobs.keyCommand */
#define DF_LIMIT_KEYRING 16     /* keys of content at rest, old ones included */

/* AWS */
#define DF_LIMIT_AWS_PROFILES (1 * DF_MIB) /* a file of profiles */
#define DF_LIMIT_AWS_TOKEN (64 * DF_KIB)   /* a token, or an answer with temporary keys */

/* Terrakube */
#define DF_LIMIT_TERRAKUBE_SECONDS (7 * 24 * 3600) /* of a deadline or a grace period */
#define DF_LIMIT_TERRAKUBE_PAYLOAD                                                                 \
    (16 * DF_MIB) /* one job: it fits four times into a step document */
#define DF_LIMIT_TERRAKUBE_OBJECT                                                                  \
    ((int64_t)DF_GIB) /* in its storage: a plan, a state, the log of a step, a tool */
#define DF_LIMIT_TERRAKUBE_PLAN                                                                    \
    (16 * DF_MIB) /* the JSON of a plan whose rows a UI shows; in memory ten times as much */
#define DF_LIMIT_TERRAKUBE_COMMANDS 256 /* of one step; they are put in order one by one */

#define DF_LIMIT_TERRAKUBE_ROWS 20000     /* resources in its UI; each post has all of them */
#define DF_LIMIT_TERRAKUBE_ROW_LINES 1000 /* lines and diagnostics of a resource there */
#define DF_LIMIT_TERRAKUBE_CONTEXT (16 * DF_MIB) /* what is posted for it */
#define DF_LIMIT_TERRAKUBE_TEMP_ENV (1 * DF_MIB) /* what scripts leave for later commands */
#define DF_LIMIT_TERRAKUBE_NODES 64          /* of a Redis; they are asked one after the other */
#define DF_LIMIT_TERRAKUBE_KEY (64 * DF_KIB) /* a key of an account of Google, as JSON: 2 KiB */

#define DF_LIMIT_TERRAKUBE_LINE (1 * DF_MIB)      /* of a log; a longer one is cut into several */
#define DF_LIMIT_TERRAKUBE_LOG_QUEUE (8 * DF_MIB) /* lines that Redis has not taken yet */
#define DF_LIMIT_TERRAKUBE_RESCUE (64 * DF_MIB)   /* lines of a lost pod that the next one saves */
#define DF_LIMIT_TERRAKUBE_RESCUE_BATCH 16        /* of them that are read at once */
#define DF_LIMIT_TERRAKUBE_LOG_BATCH 256          /* lines that are sent at once */
#define DF_LIMIT_TERRAKUBE_LOG_BYTES (512 * DF_KIB) /* of them; a longer line goes alone */

#define DF_LIMIT_OAUTH_ANSWER (64 * DF_KIB) /* a token of a cloud, or a file with a key */

/* Redis */
#define DF_LIMIT_REDIS_ANSWER (4 * DF_MIB) /* to one command: a line of a log in Java's form */
#define DF_LIMIT_REDIS_ELEMENTS 4096       /* of one list; each is allocated when it is announced */
#define DF_LIMIT_REDIS_NODES 200           /* of a cluster; an index into them is one byte */

/* XML, which object stores answer */
#define DF_LIMIT_XML (16 * DF_MIB)
#define DF_LIMIT_XML_PATH 512
#define DF_LIMIT_XML_TEXT (64 * DF_KIB)

#define DF_LIMIT_STEP_FILE (16 * DF_GIB) /* one file of a step: a runaway one ends the step */

/* Source */
#define DF_LIMIT_ARCHIVE_DOWNLOAD (512 * DF_MIB)
#define DF_LIMIT_ARCHIVE_BYTES (2 * DF_GIB) /* unpacked */
#define DF_LIMIT_ARCHIVE_ENTRIES 100000
#define DF_LIMIT_ARCHIVE_RATIO 200 /* unpacked to packed, once past 16 MiB: a bomb */
#define DF_LIMIT_ARCHIVE_PATH 1024
#define DF_LIMIT_ARCHIVE_DEPTH 64
#define DF_LIMIT_TREE_ENTRIES 1000000        /* files of one source, archive or not */
#define DF_LIMIT_IGNORE_FILE (64 * DF_KIB)   /* one .terraformignore */
#define DF_LIMIT_IGNORE_RULES 1000           /* of a source; each is compared with each path */
#define DF_LIMIT_SOURCE_LISTING (4 * DF_MIB) /* kept with a plan, or left out */
#define DF_LIMIT_FOLLOWED_LINKS 8            /* out of a source, one in what another leads to */
#define DF_LIMIT_SUBMODULES 256
#define DF_LIMIT_TREE_LISTING (64 * DF_MIB) /* names, modes and sizes of a commit's files */
#define DF_LIMIT_TREE_DEPTH 128             /* one open descriptor each while walking */

/* What an apply takes over of the plan's `init` */
#define DF_LIMIT_MODULES (16 * DF_MIB) /* fetched modules; larger ones are fetched again */
#define DF_LIMIT_MODULES_ENTRIES 10000
#define DF_LIMIT_TOOL_DOWNLOAD (512 * DF_MIB)

/* The parts of a module's configuration that we read */
#define DF_LIMIT_HCL_FILE (8 * DF_MIB) /* one file */
#define DF_LIMIT_HCL_FILES 10000       /* of one directory; all names are held */
#define DF_LIMIT_HCL_BLOCKS 100000     /* of one module, some hundred bytes each */
#define DF_LIMIT_HCL_ATTRIBUTES 1000   /* of one backend, cloud or variable block */
#define DF_LIMIT_LOCAL_MODULES 1000    /* that one module calls; each is a directory to read */

/* Providers */
#define DF_LIMIT_TRUST (8 * DF_MIB)    /* certificates for `init`; all public ones are 250 KiB */
#define DF_LIMIT_LOCKFILE (4 * DF_MIB) /* of a module; a provider has some kilobytes of hashes */
#define DF_LIMIT_PACKAGE_FILES 4096    /* of one unpacked provider; most have three */
#define DF_LIMIT_PACKAGE_BYTES (4 * DF_GIB) /* of one; the largest have 800 MiB */
#define DF_LIMIT_CLI_FILE (32 * DF_KIB)     /* ~/.tofurc: some lines; with the values of its run */
#define DF_LIMIT_LOCKED_PROVIDERS 1000      /* of one module */
#define DF_LIMIT_PROVIDER_ARCHIVE (1 * DF_GIB) /* the largest ones have 150 MiB */
#define DF_LIMIT_MIRROR_INDEX (4 * DF_MIB)     /* all versions of a provider, or its archives */

/* Kubernetes */
#define DF_LIMIT_KUBECONFIG                                                                        \
    (4 * DF_MIB)                     /* one file: hundreds of clusters with their certificates */
#define DF_LIMIT_KUBECONFIG_FILES 64 /* in KUBECONFIG; all are held while one is chosen */
#define DF_LIMIT_KUBE_PEM                                                                          \
    (1 * DF_MIB) /* certificates and keys: a bundle of all public CAs is 250 KiB */
#define DF_LIMIT_KUBE_CREDENTIAL (1 * DF_MIB) /* what an exec plug-in prints */
#define DF_LIMIT_KUBE_OBJECT (4 * DF_MIB)     /* etcd takes 1.5 MiB; escaped as JSON it may grow */
#define DF_LIMIT_KUBE_OBJECTS 100000          /* of one type in memory: ten times what we promise */
#define DF_LIMIT_KUBE_IDLE 32 /* kept connections of a client: the workers of a large spawner */
#define DF_TIMEOUT_KUBE_EXEC_MS 30000 /* of an exec plug-in, which may ask a distant server */

/* Actions on a platform */
#define DF_LIMIT_TERMINATION_LOG ((size_t)4096) /* the kubelet reads no more of it */
#define DF_LIMIT_PLATFORM_REPORT (16 * DF_MIB)  /* as Markdown: thousands of components */
#define DF_LIMIT_SPANS 256 /* sent at once: half a KiB each, and collectors take 4 MiB */
#define DF_LIMIT_METRICS_TEXT (1 * DF_MIB) /* four metrics, of which one has a series a component */
#define DF_LIMIT_SCRAPE_HEAD (4 * DF_KIB)  /* Prometheus asks with 300 bytes */
#define DF_LIMIT_INPUT_FILE (1 * DF_MIB) /* dag.yaml with the values of charts: some hundred KiB */
#define DF_LIMIT_INPUT_FAULTS 100        /* listed at once: more than anybody mends in one go */
#define DF_LIMIT_COMPONENTS 1000 /* of a DAG: an Application each; platforms have some dozens */
#define DF_LIMIT_ATTEMPTS 100    /* of one write or sync; the wait before each doubles */
#define DF_LIMIT_READY_REPLICAS 10000 /* that health.yaml asks for; a cluster has no more pods */
#define DF_LIMIT_WAIT_SECONDS (7 * 24 * 3600) /* of an action, a sync, a wait for health */

/* Times, in milliseconds unless named otherwise */
#define DF_TIMEOUT_CONNECT_MS 10000
#define DF_TIMEOUT_REQUEST_MS 60000
#define DF_TIMEOUT_STATE_SERVICE_MS 10000 /* of a State Service; its answer is a line */
#define DF_TIMEOUT_KEY_COMMAND_MS 30000   /* of blobs.keyCommand, which may ask a distant KMS */
#define DF_TIMEOUT_TERRAKUBE_MS 5000 /* a call of the service to Terrakube: a pass waits for it */
#define DF_TIMEOUT_TELEMETRY_MS 5000 /* spans, metrics, notices: an action has better to do */
#define DF_TIMEOUT_SCRAPE_MS 100     /* for a piece of a scrape's head, and to read its answer */
#define DF_TIMEOUT_SOURCE_MS 5000    /* of a source of secrets: a runner's claim waits for it */
#define DF_TIMEOUT_LAST_REPORTS_MS 5000   /* time for the last reports when the spawner stops */
#define DF_TIMEOUT_RUNNER_EXIT_MS 5000    /* from a runner's result.json to its exit */
#define DF_TIMEOUT_FORGET_SECONDS 60      /* how long an ended step is kept to be reported */
#define DF_TIMEOUT_STEP_SECONDS 3600      /* default of timeouts.plan and timeouts.apply */
#define DF_TIMEOUT_GRACE_SECONDS 900      /* SIGINT to SIGKILL of tofu */
#define DF_TIMEOUT_RESULT_SECONDS 900     /* how long a runner retries to deliver its result */
#define DF_TIMEOUT_LOG_SECONDS 120        /* how long a result waits for the rest of its log */
#define DF_TIMEOUT_STORAGE_SECONDS 300    /* a step without changes fails that waits for so long */
#define DF_TIMEOUT_PENDING_SECONDS 120    /* a step that is never claimed has failed */
#define DF_STANDBY_LIFE_SECONDS 3600      /* how long a standby runner waits for a step */
#define DF_WAIT_TOLD_MS 3000              /* a wait that is shorter is not told */
#define DF_TIMEOUT_MARGIN_SECONDS 30      /* added to a deadline before a process counts as lost */
#define DF_SHOWN_RIPE_SECONDS (12 * 3600) /* AWS gives no keys of a role for longer */
#define DF_PLAN_LIFE_SECONDS (7 * 24 * 3600) /* an approved plan older than this is refused */

/* Counts */
#define DF_LIMIT_STEPS 10000         /* at once: what the service is measured with */
#define DF_LIMIT_PRIORITY 1000       /* and its negative: more levels than anybody needs */
#define DF_LIMIT_WORKERS 256         /* threads; each holds a document or two */
#define DF_LIMIT_SECRETS_MASKED 4096 /* values the redactor searches for in one step */
#define DF_LIMIT_SECRET_VALUE (256 * DF_KIB)
#define DF_LIMIT_SECRET (1 * DF_MIB)  /* all values of a Secret: Kubernetes takes no more */
#define DF_LIMIT_SECRET_EXECUTORS 500 /* that a secret names; fits an annotation of Kubernetes */
#define DF_LIMIT_SECRET_KEY 253       /* length of a key's name, as in Kubernetes */
#define DF_LIMIT_SECRET_KEYS                                                                       \
    256                      /* in one secret: with their values they fit into a step document */
#define DF_LIMIT_GRANTS 1000 /* of the configuration; all are looked at when a person asks */
#define DF_LIMIT_GRANT_NAMES 1000           /* in one list of a grant */
#define DF_LIMIT_SECRET_SOURCES 16          /* each is asked for a list */
#define DF_LIMIT_SOURCE_ANSWER (4 * DF_MIB) /* a secret whose values are escaped, or many names */
#define DF_LIMIT_RUN_SECRETS (256 * DF_KIB) /* the values of one run; stored as one value */
#define DF_RUN_SECRETS_GRACE_SECONDS 600 /* values are kept this long while their run is stored */
#define DF_LIMIT_REDACT_BYTES (64 * DF_MIB) /* the values in all their encodings */
#define DF_LIMIT_REDACT_SPAN                                                                       \
    (16 * DF_KIB) /* text that one value may be spread over: a piece of it, escaped and wrapped */
#define DF_LIMIT_REDACT_PREFIX                                                                     \
    (2 *                                                                                           \
     DF_KIB) /* in front of each line of a provisioner: an address, whose keys have any length */
#define DF_LIMIT_VARIABLES 1000
#define DF_LIMIT_ARGUMENTS 100
#define DF_LIMIT_ENVIRONMENT 500                    /* entries; compared with each other */
#define DF_LIMIT_ENVIRONMENT_VALUE ((int64_t)65536) /* half of what Linux takes in one string */
#define DF_LIMIT_REFERENCES 100                     /* secrets or integrations of one executor */
#define DF_LIMIT_LABELS 100
#define DF_LIMIT_BLOB_HEADS 64     /* of growing blobs and locks, in memory: at most 64 KiB each */
#define DF_LIMIT_BLOB_OUTLINES 256 /* of other blobs: 300 bytes each, of a large one 6 KiB */
#define DF_LIMIT_READ_OUTPUTS 32   /* steps that end at once, and mask their outputs */
#define DF_LIMIT_READ_OUTPUTS_BYTES (32 * DF_KIB) /* of each, in memory */
#define DF_LIMIT_AWAITING 256      /* runs that are woken when their executor comes */
#define DF_LIMIT_WAITS 16384       /* things that fail, of steps at once: 200 bytes each */
#define DF_LIMIT_STANDBY 256       /* runners that wait for a step: a pod each */
#define DF_LIMIT_TOLERATIONS 100   /* of one pod; all levels together */
#define DF_LIMIT_MOUNTS 100        /* volumes of a kind; each is set up by the kubelet */
#define DF_LIMIT_POD_PATCHES 8     /* podTemplate patches; there are three levels */
#define DF_LIMIT_ALLOWED 100       /* names in a list of placement.allow */
#define DF_LIMIT_POD_DEPTH 32      /* a pod's own fields nest 12 deep */
#define DF_LIMIT_STEP_NAMESPACES 4 /* with live steps; three watches each */
#define DF_LIMIT_CA_ANNOTATION (64 * DF_KIB) /* annotations of a pod: 256 KiB in all */
#define DF_LIMIT_POD_TEMPLATE (512 * DF_KIB) /* as text: with the Job below etcd's 1.5 MiB */
#define DF_LIMIT_ANNOTATION ((int64_t)65536)

/* ---- what a step sees (common/process/wall.h) ----
 * Entries of a wall: about 60 are used. Those that show hold a descriptor between fork and exec. */
#define DF_LIMIT_WALL 256
/* The list of mounts (common/process/mounts.h): a line of about 150 bytes for each of them. */
#define DF_LIMIT_MOUNTINFO (4 * DF_MIB)
/* With engine.local.isolation: strict, for each process of the tool. A large module has some dozens
 * of providers with 20 threads each, and needs 2 to 4 GiB in the largest one. */
#define DF_LIMIT_STEP_PROCESSES 8192
#define DF_LIMIT_STEP_MEMORY ((rlim_t)16 * 1024 * DF_MIB)
#define DF_LIMIT_STEP_OPEN_FILES 16384

/* Policies (runner/policies.h). All messages of all of them are in a run's status, where 50 KiB are
 * little; a person reads ten. A program that judges a plan starts few others: opa has 20
 * threads. */
#define DF_LIMIT_POLICIES 16
#define DF_LIMIT_POLICY_MESSAGES 10
#define DF_LIMIT_POLICY_MESSAGE 300
#define DF_LIMIT_POLICY_WORDS 64 /* arguments of a program, or files */
#define DF_LIMIT_POLICY_ANSWER (1 * DF_MIB)
#define DF_LIMIT_POLICY_PROCESSES 1024
#define DF_LIMIT_POLICY_OPEN_FILES 256
#define DF_LIMIT_POLICY_FILE ((rlim_t)64 * DF_MIB)
#define DF_POLICY_SECONDS 60
#define DF_POLICY_MAX_SECONDS 3600
#define DF_POLICY_MIB 1024

/* Platform actions */
#define DF_LIMIT_PLATFORM_LIST 5000      /* objects of one list in memory: some KiB each as trees */
#define DF_LIMIT_PLATFORM_DIAGNOSTICS 40 /* lines about the pods of a component */
#define DF_LIMIT_PLATFORM_OFFENDERS 100  /* objects that break rules, of one kind of rules */
#define DF_LIMIT_PLATFORM_ORPHANS 200    /* listed by a teardown; the others are counted */

/* Retention */
#define DF_AUDIT_LEAST_SECONDS (7 * 24 * 3600) /* no younger entry of the audit trail is removed */
#define DF_ORPHAN_SECONDS (24 * 3600) /* a younger blob may belong to what is being written */
#define DF_LIMIT_ORPHANS 1000         /* listed and removed by one call */

#endif
