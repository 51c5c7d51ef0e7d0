//! Where results go: a bucket by its URL, and a folder in it.

use std::fmt;

use crate::fields::Fields;
use crate::report::Report;

/// Longest folder: S3 and Google take object names of 1024 bytes, which hold node and time, too.
const MOST_FOLDER_BYTES: usize = 512;

/// Whose bucket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BucketKind {
    /// `s3://`: Amazon S3 and what speaks its protocol.
    S3,
    /// `gs://`: Google Cloud Storage.
    Gcs,
}

/// A bucket and a folder in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Whose bucket it is.
    pub kind: BucketKind,
    /// The name of the bucket.
    pub bucket: String,
    /// The folder, without slashes at its ends; empty for none.
    pub folder: String,
}

impl Destination {
    /// The bucket of an `export_to` and the folder of a `bucket_subdirectory`.
    ///
    /// # Errors
    /// The first thing that is wrong with either, with its cure.
    pub fn parse(export_to: &str, bucket_subdirectory: Option<&str>) -> Result<Self, String> {
        let (kind, bucket) = parse_bucket(export_to)?;
        let folder = bucket_subdirectory.unwrap_or_default();
        check_folder(folder)?;
        Ok(Self {
            kind,
            bucket: bucket.to_owned(),
            folder: folder.trim_end_matches('/').to_owned(),
        })
    }

    /// The key of an object: `FOLDER/NODE/FILE`.
    #[must_use]
    pub fn object_key(&self, node: &str, file: &str) -> String {
        if self.folder.is_empty() {
            return format!("{node}/{file}");
        }
        format!("{}/{node}/{file}", self.folder)
    }
}

/// `s3://bucket/folder`
impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            BucketKind::S3 => "s3",
            BucketKind::Gcs => "gs",
        };
        write!(formatter, "{scheme}://{}", self.bucket)?;
        if self.folder.is_empty() {
            return Ok(());
        }
        write!(formatter, "/{}", self.folder)
    }
}

/// Takes both fields, each with its own problem.
pub(crate) fn read_destination(
    fields: &Fields<'_>,
    report: &mut Report,
) -> (Option<String>, Option<String>) {
    let export_to = fields.text("export_to", report);
    match &export_to {
        None => report.missing(
            fields.path_of("export_to"),
            "is required: where results go; write s3://BUCKET or gs://BUCKET",
        ),
        Some(url) => {
            if let Err(message) = parse_bucket(url) {
                report.problem(fields.path_of("export_to"), message);
            }
        }
    }
    let folder = fields.text("bucket_subdirectory", report);
    if let Some(Err(message)) = folder.as_deref().map(check_folder) {
        report.problem(fields.path_of("bucket_subdirectory"), message);
    }
    (export_to, folder)
}

fn parse_bucket(url: &str) -> Result<(BucketKind, &str), String> {
    let kinds = [("s3://", BucketKind::S3), ("gs://", BucketKind::Gcs)];
    let found = kinds
        .into_iter()
        .find_map(|(scheme, kind)| Some((kind, url.strip_prefix(scheme)?)));
    let Some((kind, rest)) = found else {
        return Err(format!(
            "{url:?} is neither s3://BUCKET nor gs://BUCKET; results go to these two only"
        ));
    };
    let (bucket, folder) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(format!(
            "{url:?} names no bucket; write its name behind ://"
        ));
    }
    if !is_bucket_name(bucket) {
        return Err(format!(
            "{bucket:?} is not the name of a bucket; write 3 to 222 of a-z, 0-9, '-', '_' and '.', \
             a letter or digit at both ends"
        ));
    }
    if !folder.is_empty() {
        return Err(format!(
            "{url:?} names a folder behind the bucket; write it as bucket_subdirectory"
        ));
    }
    Ok((kind, bucket))
}

/// What either provider takes; each refuses some of it, which `--check-bucket` tells.
fn is_bucket_name(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_inner = |byte: &u8| is_end(Some(byte)) || b"-_.".contains(byte);
    let bytes = name.as_bytes();
    (3..=222).contains(&bytes.len())
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(is_inner)
        && !name.contains("..")
}

fn check_folder(folder: &str) -> Result<(), String> {
    if folder.starts_with('/') {
        return Err(format!(
            "{folder:?} begins with a slash; write it without, it is relative to the bucket"
        ));
    }
    if folder.len() > MOST_FOLDER_BYTES {
        let length = folder.len();
        return Err(format!(
            "has {length} bytes, more than {MOST_FOLDER_BYTES}; choose a shorter folder"
        ));
    }
    let is_odd = |character: char| character.is_control() || character == '\\';
    if folder.contains(is_odd) {
        return Err(format!(
            "{folder:?} has control characters or backslashes; write folders with / between them"
        ));
    }
    let without_end = folder.strip_suffix('/').unwrap_or(folder);
    let is_step = |part: &str| matches!(part, "" | "." | "..");
    if !folder.is_empty() && without_end.split('/').any(is_step) {
        return Err(format!(
            "{folder:?} has an empty part, \".\" or \"..\"; write the folder itself, for example perf-data"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_lie_in_the_folder_of_their_node() {
        let destination = Destination::parse("s3://bucket", Some("perf-data")).unwrap();
        let key =
            destination.object_key("ip-10-0-1-42.ec2.internal", "20260220T153012-perf-data.gz");
        let expected = "perf-data/ip-10-0-1-42.ec2.internal/20260220T153012-perf-data.gz";
        assert_eq!(key, expected);
        assert_eq!(destination.to_string(), "s3://bucket/perf-data");
        let top = Destination::parse("gs://my_bucket.example/", None).unwrap();
        assert_eq!(top.object_key("node", "file"), "node/file");
        assert_eq!(top.to_string(), "gs://my_bucket.example");
        assert_eq!(top.kind, BucketKind::Gcs);
    }

    #[test]
    fn only_two_kinds_of_bucket_are_taken() {
        for url in [
            "",
            "bucket",
            "file:///tmp",
            "S3://bucket",
            "https://bucket",
            "az://bucket",
        ] {
            let message = Destination::parse(url, None).unwrap_err();
            assert!(
                message.contains("neither s3://BUCKET nor gs://BUCKET"),
                "{message}"
            );
        }
        for url in ["s3://", "gs:///folder"] {
            let message = Destination::parse(url, None).unwrap_err();
            assert!(message.contains("names no bucket"), "{message}");
        }
        for url in [
            "s3://ab",
            "s3://Bucket",
            "s3://-bucket",
            "s3://bucket-",
            "s3://a..b",
            "s3://a b",
        ] {
            let message = Destination::parse(url, None).unwrap_err();
            assert!(message.contains("is not the name of a bucket"), "{message}");
        }
    }

    #[test]
    fn folders_stay_in_their_bucket() {
        for folder in ["", "a", "a/b", "a/b/", "year=2026/Ä b"] {
            assert!(
                Destination::parse("s3://bucket", Some(folder)).is_ok(),
                "{folder:?}"
            );
        }
        for folder in [
            "/", "/a", "..", "a/../b", "a//b", "./a", "a//", "a\\b", "a\nb",
        ] {
            assert!(
                Destination::parse("s3://bucket", Some(folder)).is_err(),
                "{folder:?}"
            );
        }
    }
}
