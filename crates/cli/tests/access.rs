//! The program with tokens, users and TLS: what starts, what is refused, and what its own client
//! makes of it.

use std::path::Path;
use std::process::Output;

use crate::support;
use crate::support::Running;
use rcgen::CertifiedKey;

const CONFIGURATION: &str = "auth:
  tokens:
    - {name: ci, token: sesame-token, rights: [read, write]}
    - {name: writer, token: writer-token, rights: [write]}
  users:
    - {name: ann, password: 'p@ss:word', rights: [read]}
";

/// A folder with a configuration file, the rest of which is `more`.
fn folder(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{CONFIGURATION}{more}");
    std::fs::write(folder.path().join("candela.yaml"), text).unwrap();
    std::fs::write(folder.path().join("token"), "sesame-token\n").unwrap();
    folder
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

fn start(folder: &Path) -> Running {
    let (config, data) = (path(folder, "candela.yaml"), path(folder, "data"));
    Running::start(&[
        "server",
        "--config",
        &config,
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        &data,
    ])
}

fn ask(server: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    support::candela()
        .args(["query", "labels", "--format", "json", "--server", server])
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// Exit code 0 or that of an answer without data.
#[track_caller]
fn expect_answer(output: &Output) {
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 5)),
        "{code:?} {}",
        support::stderr(output)
    );
}

#[track_caller]
fn expect_refusal(output: &Output, part: &str) {
    support::expect_code(output, 6);
    let message = support::stderr(output);
    assert!(message.contains(part), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(
        !message.contains("sesame") && !message.contains("word:"),
        "{message}"
    );
}

#[test]
fn clients_say_who_they_are_in_three_ways() {
    let folder = folder("");
    let server = start(folder.path());
    let url = server.url("");
    let with_user = |user: &str| url.replacen("http://", &format!("http://{user}@"), 1);
    let token_file = path(folder.path(), "token");

    expect_answer(&ask(&url, &["--token-file", &token_file], &[]));
    expect_answer(&ask(&url, &[], &[("CANDELA_TOKEN", "sesame-token")]));
    expect_answer(&ask(&with_user("ann:p%40ss:word"), &[], &[]));
    expect_answer(&ask(&with_user("ci:sesame-token"), &[], &[]));
    // The closer to the command wins.
    let stale = [("CANDELA_TOKEN", "stale")];
    expect_answer(&ask(&url, &["--token-file", &token_file], &stale));
    expect_answer(&ask(&with_user("ann:p%40ss:word"), &[], &stale));

    expect_refusal(&ask(&url, &[], &[]), "--token-file");
    expect_refusal(&ask(&url, &[], &stale), "--token-file");
    expect_refusal(&ask(&with_user("ann:sesame"), &[], &[]), "is wrong");
    let writer = [("CANDELA_TOKEN", "writer-token")];
    expect_refusal(&ask(&url, &[], &writer), "writer has no right to read");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_public_address_without_accounts_is_refused_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = path(folder.path(), "data");
    let arguments = ["server", "--listen", "0.0.0.0:0", "--data-dir", &data];
    let output = support::run(&arguments);
    support::expect_code(&output, 1);
    let message = support::stderr(&output);
    assert!(
        message.contains("0.0.0.0:0 is reachable from other hosts"),
        "{message}"
    );
    assert!(message.contains("--insecure"), "{message}");

    let told = Running::start(&[&arguments[..], &["--insecure"]].concat());
    assert_eq!(told.terminate(), Some(0));
}

#[test]
fn secrets_are_not_shown() {
    let folder = folder("agent:\n  server: http://ann:hidden-password@example:4040\n");
    let config = path(folder.path(), "candela.yaml");
    for arguments in [
        vec!["config", "show", "--config", &config],
        vec!["config", "show", "--json", "--config", &config],
    ] {
        let output = support::run(&arguments);
        support::expect_code(&output, 0);
        let shown = support::stdout(&output);
        assert!(shown.contains("***"), "{shown}");
        for secret in ["sesame", "p@ss", "hidden-password"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

/// A server with a certificate, and what its clients trust.
struct WithTls {
    server: Running,
    certificate: String,
    _folder: tempfile::TempDir,
}

impl WithTls {
    fn start() -> Self {
        let folder = folder("server:\n  tls: {cert_file: TLS/cert.pem, key_file: TLS/key.pem}\n");
        let tls = path(folder.path(), "tls");
        let config = folder.path().join("candela.yaml");
        let text = std::fs::read_to_string(&config)
            .unwrap()
            .replace("TLS", &tls);
        std::fs::write(&config, text).unwrap();
        std::fs::create_dir(&tls).unwrap();
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = format!("{tls}/cert.pem");
        std::fs::write(&certificate, cert.pem()).unwrap();
        std::fs::write(format!("{tls}/key.pem"), signing_key.serialize_pem()).unwrap();
        Self {
            server: start(folder.path()),
            certificate,
            _folder: folder,
        }
    }

    /// For a client that trusts the certificate, and says who it is.
    fn trusted(&self) -> [(&str, &str); 2] {
        [
            ("SSL_CERT_FILE", &self.certificate),
            ("CANDELA_TOKEN", "sesame-token"),
        ]
    }
}

#[test]
fn with_a_certificate_everything_goes_over_tls() {
    let with_tls = WithTls::start();
    let trusted = with_tls.trusted();
    let url = with_tls.server.url("");
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    expect_answer(&ask(&url, &[], &trusted));
    expect_answer(&ask(&url.replace("127.0.0.1", "localhost"), &[], &trusted));
    expect_refusal(&ask(&url, &[], &trusted[..1]), "--token-file");

    let untrusted = ask(&url, &[], &trusted[1..]);
    support::expect_code(&untrusted, 7);
    let plain = ask(&url.replace("https://", "http://"), &[], &trusted);
    support::expect_code(&plain, 7);
    assert_eq!(with_tls.server.terminate(), Some(0));
}

#[test]
fn a_broken_certificate_is_said_at_the_start() {
    let folder = folder("server:\n  tls: {cert_file: /dev/null, key_file: /dev/null}\n");
    let config = path(folder.path(), "candela.yaml");
    let output = support::run(&["config", "check", "--config", &config]);
    support::expect_code(&output, 2);
    let message = support::stderr(&output);
    assert!(
        message.contains("server.tls.cert_file has no certificate"),
        "{message}"
    );
}

mod host {
    use super::*;

    /// The agent's way in, gRPC, goes over the same TLS.
    #[test]
    fn an_agent_sends_over_tls() {
        let test = "an_agent_sends_over_tls";
        if !support::is_root(test) {
            return;
        }
        let with_tls = WithTls::start();
        let trusted = with_tls.trusted();
        let url = with_tls.server.url("");
        let record = |environment: &[(&str, &str)]| {
            let command = ["seq", "3000000"];
            support::candela()
                .args(["record", "-F", "499", "--server", &url, "--"])
                .args(command)
                .envs(environment.iter().copied())
                .output()
                .unwrap()
        };
        support::expect_code(&record(&trusted), 0);
        let found = ask(&url, &[], &trusted);
        support::expect_code(&found, 0);
        let labels = support::stdout(&found);
        assert!(labels.contains("service_name"), "{labels}");

        let stranger = record(&trusted[..1]);
        support::expect_code(&stranger, 6);
        let message = support::stderr(&stranger);
        assert!(message.contains("--token-file"), "{message}");
        assert_eq!(with_tls.server.terminate(), Some(0));
    }
}
