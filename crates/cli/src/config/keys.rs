//! Every configuration key: the one table behind files, environment, `config show` and the docs.

use std::time::Duration;

use super::agent_keys::AGENT_KEYS;
pub(crate) use super::key::Key;
pub(crate) use super::key::Kind;
use super::key::key;

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
/// More than anybody keeps profiles, and far from where sums of times would overflow.
const CENTURY: Duration = Duration::from_secs(36_500 * 24 * 3600);

/// How many of something; 0 is no limit.
const COUNT: Kind = Kind::Integer(0, i64::MAX);

/// Sections that the contract reserves and that have no keys yet.
pub(crate) const RESERVED_SECTIONS: [&str; 1] = ["insight"];

/// All keys, by section.
pub(crate) fn keys() -> impl Iterator<Item = &'static Key> + Clone {
    [SERVER_AND_STORE, AGENT_KEYS, SYMBOLS]
        .into_iter()
        .flatten()
}

const SERVER_AND_STORE: &[Key] = &[
    key(
        "server.listen",
        Kind::Address,
        "127.0.0.1:4040",
        "address of everything over HTTP and gRPC",
    ),
    key(
        "server.otlp_grpc_listen",
        Kind::Address,
        "127.0.0.1:4317",
        "address of OTLP over gRPC alone",
    ),
    key(
        "server.otlp_http_listen",
        Kind::Address,
        "127.0.0.1:4318",
        "address of OTLP over HTTP alone",
    ),
    key(
        "server.http_prefix",
        Kind::List,
        "",
        "further path prefixes under which all routes answer",
    ),
    key(
        "server.allowed_hosts",
        Kind::List,
        "",
        "further host names that requests may carry in Host",
    ),
    key(
        "server.source_roots",
        Kind::List,
        "",
        "folders with the sources of profiled programs, below which the source view may read files that debug information names; FROM=TO where they were built elsewhere",
    ),
    key(
        "server.tls.cert_file",
        Kind::Path,
        "",
        "certificate of all ports in PEM, with those above it; with it they speak TLS only",
    ),
    key("server.tls.key_file", Kind::Path, "", "its private key"),
    key(
        "server.limits.ingest_rate",
        Kind::Size,
        "4MiB",
        "bytes a second that a tenant may send, decompressed and with labels; of this and all limits 0 is none",
    ),
    key(
        "server.limits.ingest_burst",
        Kind::Size,
        "2MiB",
        "bytes that may come at once after a pause; here 0 is no burst",
    ),
    key(
        "server.limits.series",
        COUNT,
        "5000",
        "series of a tenant with profiles in the last hour",
    ),
    key(
        "server.limits.labels_per_series",
        COUNT,
        "30",
        "labels of one series",
    ),
    key(
        "server.limits.label_name_length",
        Kind::Size,
        "1KiB",
        "size of a label's name",
    ),
    key(
        "server.limits.label_value_length",
        Kind::Size,
        "2KiB",
        "size of a label's value",
    ),
    key(
        "server.limits.profile_size",
        Kind::Size,
        "64MiB",
        "size of one profile, decompressed",
    ),
    key(
        "server.limits.samples_per_profile",
        COUNT,
        "1000000",
        "samples of one profile",
    ),
    key(
        "server.limits.labels_per_sample",
        COUNT,
        "100",
        "labels of one sample",
    ),
    key(
        "server.limits.stack_depth",
        COUNT,
        "1000",
        "frames of a stack; deeper ones are cut at the leaf",
    ),
    key(
        "server.limits.string_length",
        Kind::Size,
        "65535B",
        "size of a function's or file's name; longer ones are cut at their end",
    ),
    key(
        "server.limits.body_size",
        Kind::Size,
        "256MiB",
        "size of one request, as sent; and of one with many profiles, decompressed",
    ),
    key(
        "server.limits.profiles_per_request",
        COUNT,
        "10000",
        "profiles of one push that has many",
    ),
    key(
        "server.limits.adhoc_profiles",
        COUNT,
        "1000",
        "uploaded profiles that are kept to be looked at",
    ),
    key(
        "server.limits.adhoc_size",
        Kind::Size,
        "1GiB",
        "size of all of them, as sent",
    ),
    key(
        "server.limits.query_weight",
        COUNT,
        "1",
        "turns of a tenant's queries for one of a tenant with 1 here, while both have some waiting",
    ),
    key(
        "server.tenant_limits",
        Kind::Tables,
        "",
        "limits of single tenants: names as under server.limits below the name of the tenant",
    ),
    key(
        "server.sql_memory",
        Kind::Size,
        "256MiB",
        "most memory of one SQL query",
    ),
    key(
        "server.sql_timeout",
        Kind::Duration(SECOND, HOUR),
        "30s",
        "longest time of one SQL query",
    ),
    key(
        "server.sql_rows",
        Kind::Integer(1, 100_000_000),
        "100000",
        "most rows of an answer to SQL",
    ),
    key(
        "server.query_cache",
        Kind::Size,
        "32MiB",
        "most memory of sums of blocks that are kept for later queries; 0 keeps none",
    ),
    key(
        "server.answers_memory",
        Kind::Size,
        "256MiB",
        "most memory of answers that their clients have not read yet, at least 1MiB; one answer may take half of it",
    ),
    key(
        "server.write_timeout",
        Kind::Duration(SECOND, HOUR),
        "30s",
        "how long a client may read nothing of an answer before its connection is closed",
    ),
    key(
        "auth.tokens",
        Kind::Accounts,
        "",
        "list of name, token or token_file, rights (read, write, admin) and tenant; with one of them or of users nobody else may ask",
    ),
    key(
        "auth.users",
        Kind::Accounts,
        "",
        "list of name, password or password_file, rights and tenant, by default the name",
    ),
    key(
        "auth.multi_tenancy",
        Kind::Boolean,
        "false",
        "X-Scope-OrgID names the tenants that a request is about; without it there is one",
    ),
    key(
        "auth.insecure",
        Kind::Boolean,
        "false",
        "serve addresses that other hosts reach though there are no tokens and users",
    ),
    key(
        "store.backend",
        Kind::Choice(&["filesystem", "s3", "gcs"]),
        "filesystem",
        "where blocks are kept",
    ),
    key(
        "store.data_dir",
        Kind::Path,
        "",
        "folder of blocks, log, symbols, spool and catalog",
    ),
    key(
        "store.log",
        Kind::Choice(&["local", "object"]),
        "local",
        "where the log is kept: the data directory, or the bucket of the blocks",
    ),
    key(
        "store.min_free_space",
        Kind::Size,
        "256MiB",
        "free space of the data directory's volume below which nothing more is taken; on small volumes a twentieth of the volume",
    ),
    key(
        "store.sync",
        Kind::Choice(&["fsync", "os"]),
        "fsync",
        "acknowledge after fdatasync, or after write",
    ),
    key(
        "store.flush_interval",
        Kind::Duration(SECOND, HOUR),
        "60s",
        "longest time a profile stays in memory only",
    ),
    key(
        "store.flush_size",
        Kind::Size,
        "64MiB",
        "size of the memory part that starts a flush",
    ),
    key(
        "store.retention",
        Kind::Duration(HOUR, CENTURY),
        "14d",
        "age at which profiles are deleted",
    ),
    key(
        "store.retention_ten_minutes",
        Kind::Duration(HOUR, CENTURY),
        "90d",
        "age at which sums over ten minutes are deleted",
    ),
    key(
        "store.retention_hourly",
        Kind::Duration(HOUR, CENTURY),
        "400d",
        "age at which sums over an hour are deleted",
    ),
    key(
        "store.retention_rules",
        Kind::Tables,
        "",
        "another age for some: below a name `keep`, and of `selector`, `profile_type`, `tenant` what it is for; the first name that fits counts",
    ),
    key(
        "store.compaction_cpu",
        Kind::Integer(0, 100),
        "50",
        "most of a core, in percent, that merging blocks takes; 0 merges only by `candela store compact`",
    ),
    key(
        "store.max_size",
        Kind::Size,
        "50GB",
        "size of all blocks above which the oldest are deleted; in a bucket only when it is set",
    ),
    key(
        "store.max_volume_percent",
        Kind::Integer(1, 100),
        "20",
        "share of the volume, in percent, that all blocks may take unless they are in a bucket; the smaller of this and max_size counts",
    ),
    key(
        "store.cache_size",
        Kind::Size,
        "1GiB",
        "most disk space in the data directory for copies of blocks that are in a bucket",
    ),
    key(
        "store.s3.bucket_name",
        Kind::Text,
        "",
        "bucket of blocks, with backend s3",
    ),
    key(
        "store.s3.region",
        Kind::Text,
        "",
        "its region; default $AWS_REGION, else that of the endpoint",
    ),
    key(
        "store.s3.endpoint",
        Kind::Text,
        "",
        "host:port or URL of the service; default AWS in the region",
    ),
    key(
        "store.s3.access_key_id",
        Kind::Text,
        "",
        "key; default what AWS programs use: environment, web identity, container, machine",
    ),
    key(
        "store.s3.access_key_id_file",
        Kind::Path,
        "",
        "file that holds it",
    ),
    key(
        "store.s3.secret_access_key",
        Kind::Secret,
        "",
        "secret of the key",
    ),
    key(
        "store.s3.secret_access_key_file",
        Kind::Path,
        "",
        "file that holds it",
    ),
    key("store.s3.insecure", Kind::Boolean, "false", "plain HTTP"),
    key(
        "store.s3.force_path_style",
        Kind::Boolean,
        "false",
        "host/bucket instead of bucket.host at AWS; elsewhere it is always so",
    ),
    key(
        "store.s3.prefix",
        Kind::Text,
        "",
        "folder of the bucket; each server needs its own",
    ),
    key(
        "store.gcs.bucket_name",
        Kind::Text,
        "",
        "bucket of blocks, with backend gcs",
    ),
    key(
        "store.gcs.service_account",
        Kind::Secret,
        "",
        "JSON of a service account's key, or its file; default Google's usual places",
    ),
    key(
        "store.gcs.service_account_file",
        Kind::Path,
        "",
        "file that holds the JSON",
    ),
    key(
        "store.gcs.prefix",
        Kind::Text,
        "",
        "folder of the bucket; each server needs its own",
    ),
];

const SYMBOLS: &[Key] = &[
    key(
        "symbols.debuginfod_urls",
        Kind::List,
        "",
        "debuginfod servers; default $DEBUGINFOD_URLS",
    ),
    key(
        "symbols.max_file_size",
        Kind::Size,
        "2GiB",
        "largest symbol file that is taken by upload",
    ),
    key(
        "symbols.max_size",
        Kind::Size,
        "10GB",
        "most disk space of uploaded symbol files",
    ),
];
