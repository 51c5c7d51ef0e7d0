//! Where the configuration wants blocks.

use std::path::Path;

use candela_store::Backend;
use candela_store::GcsOptions;
use candela_store::S3Options;
use candela_store::Secret;

use super::secrets::itself_or_file;
use crate::config::Settings;
use crate::errors::CliError;

/// The backend of the configuration, with secrets read from their files.
///
/// # Errors
/// When a file cannot be read, or a value is given both itself and by a file.
pub(crate) fn backend(settings: &Settings) -> Result<Backend, CliError> {
    let text = |path: &str| settings.text(path).map(str::to_owned);
    match settings.text("store.backend") {
        Some("s3") => Ok(Backend::S3(S3Options {
            bucket_name: text("store.s3.bucket_name").unwrap_or_default(),
            region: text("store.s3.region"),
            endpoint: text("store.s3.endpoint"),
            access_key_id: itself_or_file(settings, "store.s3.access_key_id")?,
            secret_access_key: secret(settings, "store.s3.secret_access_key")?,
            insecure: settings.boolean("store.s3.insecure"),
            force_path_style: settings.boolean("store.s3.force_path_style"),
            prefix: prefix(settings, "store.s3.prefix"),
        })),
        Some("gcs") => Ok(Backend::Gcs(GcsOptions {
            bucket_name: text("store.gcs.bucket_name").unwrap_or_default(),
            service_account: secret(settings, "store.gcs.service_account")?,
            prefix: prefix(settings, "store.gcs.prefix"),
        })),
        _ => Ok(Backend::Filesystem),
    }
}

/// Where blocks are kept, for people: the URL of the bucket, or the folder as it is called without links
/// on its way.
pub(crate) fn place(settings: &Settings, data_dir: &Path) -> String {
    let url = |scheme: &str, kind: &str| {
        let bucket_name = settings.text(&format!("store.{kind}.bucket_name"));
        let prefix = prefix(settings, &format!("store.{kind}.prefix"));
        let url = format!("{scheme}://{}/{prefix}", bucket_name.unwrap_or_default());
        url.trim_end_matches('/').to_owned()
    };
    match settings.text("store.backend") {
        Some("s3") => url("s3", "s3"),
        Some("gcs") => url("gs", "gcs"),
        _ => {
            let folder = data_dir.canonicalize();
            let folder = folder.unwrap_or_else(|_| data_dir.to_owned());
            folder.display().to_string()
        }
    }
}

/// The most that all blocks may take, bytes. The default is for disks: what is in a bucket goes by
/// its age, unless somebody says how large it may be.
pub(crate) fn max_bytes(settings: &Settings) -> Option<u64> {
    let is_here = settings.text("store.backend") == Some("filesystem");
    let is_wanted = is_here || settings.is_explicit("store.max_size");
    is_wanted.then(|| settings.bytes("store.max_size"))
}

fn prefix(settings: &Settings, path: &str) -> String {
    let prefix = settings.text(path).unwrap_or_default();
    prefix.trim_matches('/').to_owned()
}

fn secret(settings: &Settings, path: &str) -> Result<Option<Secret>, CliError> {
    let text = itself_or_file(settings, path)?;
    Ok(text.as_deref().map(Secret::new))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use super::*;
    use crate::config::Inputs;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter();
        let environment: BTreeMap<String, String> = pairs
            .map(|(name, value)| (format!("CANDELA_STORE__{name}"), (*value).to_owned()))
            .collect();
        let inputs = Inputs {
            environment,
            ..Inputs::default()
        };
        crate::config::load(&inputs).expect("valid")
    }

    #[test]
    fn keys_of_s3_become_options() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"hunter2\n").expect("writes");
        let file = file.path().to_str().expect("a path");
        let found = backend(&settings(&[
            ("BACKEND", "s3"),
            ("S3__BUCKET_NAME", "profiles"),
            ("S3__REGION", "eu-central-1"),
            ("S3__ENDPOINT", "minio:9000"),
            ("S3__ACCESS_KEY_ID", "AKID"),
            ("S3__SECRET_ACCESS_KEY_FILE", file),
            ("S3__INSECURE", "true"),
            ("S3__FORCE_PATH_STYLE", "true"),
            ("S3__PREFIX", "/prod/"),
        ]));
        let Backend::S3(found) = found.expect("valid") else {
            panic!("not S3");
        };
        let expected = S3Options {
            bucket_name: "profiles".to_owned(),
            region: Some("eu-central-1".to_owned()),
            endpoint: Some("minio:9000".to_owned()),
            access_key_id: Some("AKID".to_owned()),
            secret_access_key: Some(Secret::new("hunter2")),
            insecure: true,
            force_path_style: true,
            prefix: "prod".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn without_keys_the_usual_places_are_asked() {
        let found = backend(&settings(&[
            ("BACKEND", "gcs"),
            ("GCS__BUCKET_NAME", "profiles"),
        ]));
        let Backend::Gcs(found) = found.expect("valid") else {
            panic!("not GCS");
        };
        assert_eq!(found.service_account, None);
        assert!(matches!(backend(&settings(&[])), Ok(Backend::Filesystem)));
    }

    #[test]
    fn a_bucket_is_told_by_its_url() {
        let place_of = |pairs: &[(&str, &str)]| place(&settings(pairs), Path::new("/"));
        let s3 = [("BACKEND", "s3"), ("S3__BUCKET_NAME", "profiles")];
        assert_eq!(place_of(&s3), "s3://profiles");
        let with_prefix = [s3[0], s3[1], ("S3__PREFIX", "/prod/")];
        assert_eq!(place_of(&with_prefix), "s3://profiles/prod");
        let gcs = [("BACKEND", "gcs"), ("GCS__BUCKET_NAME", "profiles")];
        assert_eq!(place_of(&gcs), "gs://profiles");
        assert_eq!(place_of(&[]), "/");
    }

    #[test]
    fn buckets_are_as_large_as_somebody_says() {
        assert_eq!(max_bytes(&settings(&[])), Some(50_000_000_000));
        assert_eq!(max_bytes(&settings(&[("BACKEND", "s3")])), None);
        let said = settings(&[("BACKEND", "s3"), ("MAX_SIZE", "1TB")]);
        assert_eq!(max_bytes(&said), Some(1_000_000_000_000));
    }

    #[test]
    fn a_secret_given_twice_or_not_at_all_is_refused() {
        let twice = settings(&[
            ("BACKEND", "gcs"),
            ("GCS__SERVICE_ACCOUNT", "{\"private_key\": \"hunter2\"}"),
            ("GCS__SERVICE_ACCOUNT_FILE", "/etc/key.json"),
        ]);
        let error = backend(&twice).expect_err("twice").to_string();
        assert!(error.contains("are both set; drop one"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let missing = settings(&[
            ("BACKEND", "s3"),
            ("S3__SECRET_ACCESS_KEY_FILE", "/nonexistent"),
        ]);
        let error = backend(&missing).expect_err("no file").to_string();
        assert!(
            error.contains("secret_access_key_file /nonexistent"),
            "{error}"
        );
    }
}
