//! Buckets that are tried before a document is applied: with the credentials that the tools of their providers take.
#![cfg(all(feature = "server", feature = "agent"))]

use std::process::Output;

use crate::gcs;
use crate::moto_proxy::MotoProxy;
use crate::s3;
use crate::serve::BUCKET;
use crate::support;
use crate::support::Running;
use serde_json::Value;
use serde_json::json;

struct Fleet {
    server: Running,
    folder: tempfile::TempDir,
}

impl Fleet {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", &data];
        Self {
            server: Running::start(&arguments),
            folder,
        }
    }

    /// Applies a document that exports to these, after a look at their buckets.
    fn apply(&self, export_to: &[&str], environment: &[(&str, &str)]) -> Output {
        let daemons = export_to.iter().map(|bucket| {
            json!({"perf_collector": {"export_to": bucket, "bucket_subdirectory": "perf-data"}})
        });
        let daemons: Vec<Value> = daemons.collect();
        let file = self.folder.path().join("persistence.json");
        std::fs::write(&file, json!({"observability_daemons": daemons}).to_string()).unwrap();
        let mut command = support::candela();
        command
            .args([
                "infra",
                "apply",
                "persistence",
                "--yes",
                "--check-bucket",
                "-f",
            ])
            .arg(file)
            .args(["--server", &self.server.url("")])
            .envs(environment.iter().copied());
        command.output().unwrap()
    }

    fn version(&self) -> u64 {
        let document = support::get_json(&self.server.url("/api/v1/fleet/persistence"));
        document["version"].as_u64().unwrap()
    }
}

#[test]
fn nothing_is_applied_that_could_not_be_written() {
    let fleet = Fleet::start();
    let root = tempfile::tempdir().unwrap();
    let endpoint = s3::start(root.path()).endpoint.unwrap();
    let endpoint = format!("http://{endpoint}");
    let environment = |secret| {
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", s3::KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", secret),
        ]
    };
    let bucket = format!("s3://{BUCKET}");
    let refused = fleet.apply(&[&bucket], &environment("a wrong one"));
    support::expect_code(&refused, 6);
    let messages = support::stderr(&refused);
    for part in [
        "s3://profiles/perf-data/candela-bucket-check/written-by-a-check.txt is refused: ",
        "candela: 1 of 1 buckets cannot be written to from this host; nothing was applied",
    ] {
        assert!(
            messages.lines().any(|line| line.starts_with(part)),
            "{messages}"
        );
    }
    assert_eq!(
        (support::stdout(&refused).as_str(), fleet.version()),
        ("", 0)
    );

    let applied = fleet.apply(&[&bucket], &environment(s3::SECRET));
    support::expect_code(&applied, 0);
    assert_eq!(fleet.version(), 1);
    let left = root
        .path()
        .join(BUCKET)
        .join("perf-data/candela-bucket-check");
    let left = std::fs::read_dir(left).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the check has removed what it wrote");
}

/// Who we are and the way there are mended in two places.
#[test]
fn missing_credentials_are_told_from_a_bucket_that_does_not_answer() {
    let fleet = Fleet::start();
    let root = tempfile::tempdir().unwrap();
    let endpoint = s3::start(root.path()).endpoint.unwrap();
    let endpoint = format!("http://{endpoint}");
    let region = ("AWS_REGION", "eu-central-1");
    let keys = [
        ("AWS_ACCESS_KEY_ID", s3::KEY_ID),
        ("AWS_SECRET_ACCESS_KEY", s3::SECRET),
    ];
    let identity = [
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/profiler"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token"),
    ];
    let at = |endpoint| ("AWS_ENDPOINT_URL", endpoint);
    let there = at(endpoint.as_str());
    let bucket = format!("s3://{BUCKET}");
    let object = format!("{bucket}/perf-data/candela-bucket-check/written-by-a-check.txt");
    for (environment, code, said, advised) in [
        (
            [region, there, identity[0], identity[1]],
            6,
            "there are no credentials for it: ",
            "set keys, a web identity, or the key of a service account",
        ),
        (
            [region, at(support::NOBODY), keys[0], keys[1]],
            7,
            "cannot be written: ",
            "look at the network, the endpoint and the region",
        ),
    ] {
        let refused = fleet.apply(&[&bucket], &environment);
        support::expect_code(&refused, code);
        let messages = support::stderr(&refused);
        let is_said = |line: &str| {
            line.starts_with(&object) && line.contains(said) && line.ends_with(advised)
        };
        assert!(messages.lines().any(is_said), "{said}: {messages}");
    }
    assert_eq!(fleet.version(), 0);
}

#[test]
fn a_bucket_of_google_is_tried_as_nobody() {
    let fleet = Fleet::start();
    let url = gcs::start_at();
    let nobody =
        json!({"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""});
    let account = fleet.folder.path().join("account.json");
    std::fs::write(&account, nobody.to_string()).unwrap();
    let environment = [
        ("GOOGLE_BASE_URL", url.as_str()),
        ("GOOGLE_SERVICE_ACCOUNT", account.to_str().unwrap()),
    ];
    let bucket = format!("gs://{BUCKET}");
    let refused = fleet.apply(&["gs://nobody-made-it"], &environment);
    support::expect_code(&refused, 1);
    let messages = support::stderr(&refused);
    assert!(
        messages.contains("written-by-a-check.txt has no bucket: "),
        "{messages}"
    );
    support::expect_code(&fleet.apply(&[&bucket], &environment), 0);
    assert_eq!(fleet.version(), 1);
}

mod host {
    use super::*;

    /// As EKS gives it to pods: a token in a file, for a role that may write and nothing else.
    #[test]
    fn a_web_identity_takes_its_role_and_needs_only_the_right_to_write() {
        let fleet = Fleet::start();
        let Some(amazon) =
            MotoProxy::start("a_web_identity_takes_its_role_and_needs_only_the_right_to_write")
        else {
            return;
        };
        let role = amazon.bucket_and_role(BUCKET, "s3:PutObject");
        let token = fleet.folder.path().join("token");
        std::fs::write(&token, "of the cluster").unwrap();
        let environment = [
            ("AWS_REGION", "us-east-1"),
            ("AWS_ROLE_ARN", role.as_str()),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
            ("HTTPS_PROXY", amazon.url.as_str()),
            ("NO_PROXY", "127.0.0.1"),
            ("SSL_CERT_FILE", amazon.authority.to_str().unwrap()),
        ];
        let bucket = format!("s3://{BUCKET}");
        let applied = fleet.apply(&[&bucket], &environment);
        let messages = support::stderr(&applied);
        support::expect_code(&applied, 0);
        let part = "which may not remove perf-data/candela-bucket-check/written-by-a-check.txt";
        assert!(messages.contains(part), "{messages}");
        assert_eq!(fleet.version(), 1);
    }
}
