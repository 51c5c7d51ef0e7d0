//! A server whose blocks are in a bucket, from the configuration to the loss of the machine.
#![cfg(feature = "server")]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::s3;
use crate::serve::BUCKET;
use crate::support;
use crate::support::Running;

/// The file of a configuration with this bucket, the secret in a file of its own.
fn configuration(folder: &Path, endpoint: &str, bucket: &str) -> PathBuf {
    let secret = folder.join("secret");
    fs::write(&secret, format!("{}\n", s3::SECRET)).expect("writes");
    let text = format!(
        "storage:\n  backend: s3\n  s3:\n    bucket_name: {bucket}\n    region: eu-central-1\n    \
         endpoint: {endpoint}\n    access_key_id: {}\n    secret_access_key_file: {}\n    \
         insecure: true\n    prefix: prod\n",
        s3::KEY_ID,
        secret.display()
    );
    let path = folder.join(format!("{bucket}.yaml"));
    fs::write(&path, text).expect("writes");
    path
}

fn server(configuration: &Path, data_dir: &Path) -> Result<Running, String> {
    let (file, data_dir) = (configuration.to_str(), data_dir.to_str());
    let arguments = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "--config",
        file.expect("a path"),
        "--data-dir",
        data_dir.expect("a path"),
    ];
    Running::try_start(&arguments, &[])
}

fn total(running: &Running) -> i64 {
    let top = support::get_json(&running.url("/api/v1/top?type=samples&limit=1"));
    top["total"].as_i64().expect("a total")
}

fn parquet_files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| match path.is_dir() {
            true => parquet_files(&path),
            false => usize::from(path.extension().is_some_and(|it| it == "parquet")),
        })
        .sum()
}

#[test]
fn profiles_outlive_the_machine() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let endpoint = s3::start(root.path()).endpoint.expect("an address");
    let configuration = configuration(folder.path(), &endpoint, BUCKET);
    let data_dir = folder.path().join("data");

    let running = server(&configuration, &data_dir).expect("starts");
    let push = |value: i64| {
        let url = running.url("/api/v1/ingest?service=shop");
        let body = format!("main;work_{value} {value}\n");
        let (status, answer) = support::try_post(&url, body.as_bytes()).expect("an answer");
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    };
    push(3);
    push(4);
    assert_eq!(total(&running), 7);
    assert_eq!(running.terminate(), Some(0), "writes a block");
    let in_bucket = root.path().join(BUCKET).join("prod/v1");
    assert_eq!(parquet_files(&in_bucket), 5);
    assert_eq!(parquet_files(&data_dir), 0);

    fs::remove_dir_all(&data_dir).expect("the machine is gone");
    let running = server(&configuration, &data_dir).expect("starts");
    assert_eq!(total(&running), 7);
    let status = support::get_json(&running.url("/api/v1/status"));
    assert_eq!(status["storage"]["blocks"], 1, "{status}");
}

#[test]
fn a_wrong_bucket_is_said_before_anything_starts() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let endpoint = s3::start(root.path()).endpoint.expect("an address");
    let right = configuration(folder.path(), &endpoint, BUCKET);
    let wrong = configuration(folder.path(), &endpoint, "nobody-made-it");
    let check = |file: &Path| {
        support::run(&[
            "--config",
            file.to_str().expect("a path"),
            "config",
            "check",
        ])
    };
    let checked = check(&right);
    support::expect_code(&checked, 0);
    let checked = check(&wrong);
    let message = support::stderr(&checked);
    assert_eq!(checked.status.code(), Some(2), "{message}");
    assert!(message.contains("s3://nobody-made-it/prod"), "{message}");
    assert!(message.contains("the bucket does not exist"), "{message}");
    let messages = match server(&wrong, &folder.path().join("data")) {
        Ok(_) => panic!("a server without a place for blocks"),
        Err(messages) => messages,
    };
    assert!(messages.contains("the bucket does not exist"), "{messages}");
    assert!(!messages.contains(s3::SECRET), "{messages}");
}

#[test]
fn secrets_are_not_shown() {
    let shown = support::candela()
        .args(["config", "show"])
        .env("CANDELA_STORE__S3__SECRET_ACCESS_KEY", "hunter2")
        .env("CANDELA_STORE__GCS__SERVICE_ACCOUNT", "hunter2")
        .output()
        .expect("candela starts");
    let text = support::stdout(&shown);
    assert!(!text.contains("hunter2"), "{text}");
    let secret = text
        .lines()
        .find(|line| line.contains("s3.secret_access_key:"));
    let secret = secret.expect("its line");
    assert!(secret.contains("***"), "{secret}");
    let origin = "environment CANDELA_STORE__S3__SECRET_ACCESS_KEY";
    assert!(secret.contains(origin), "{secret}");
}
