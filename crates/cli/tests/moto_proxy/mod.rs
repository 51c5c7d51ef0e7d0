//! Amazon's services at their own addresses, by a proxy that others wrote, in Python.

use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use crate::support;
use crate::support::Program;

/// A start imports all of Amazon.
const START: Duration = Duration::from_secs(60);
/// What is asked before the proxy looks at who asks: for the bucket, for the role, for its policy, and for credentials
/// by a web identity, which nobody signs.
const UNCHECKED: &str = "4";

/// Runs until it is dropped.
pub(crate) struct MotoProxy {
    /// For `HTTPS_PROXY`.
    pub(crate) url: String,
    /// Who vouches for Amazon here.
    pub(crate) authority: PathBuf,
    _program: Program,
}

impl MotoProxy {
    /// `None` where it is not installed, which is said.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let own = std::env::current_exe().unwrap();
        let python = own.ancestors().nth(3).unwrap().join("test-python");
        let program = python.join("bin/moto_proxy");
        if !program.is_file() {
            println!("SKIP {test}: `scripts/install-deps test` installs moto");
            return None;
        }
        if !support::has_tool(test, "curl") {
            return None;
        }
        let find = "import moto.moto_proxy, os; print(os.path.dirname(moto.moto_proxy.__file__))";
        let found = Command::new(python.join("bin/python"))
            .args(["-c", find])
            .output()
            .unwrap();
        let folder = PathBuf::from(support::stdout(&found).trim());
        let started = Program::start(
            Command::new(python.join("bin/python"))
                .arg(program)
                .args(["-H", "127.0.0.1", "-p", "0"])
                .env("INITIAL_NO_AUTH_ACTION_COUNT", UNCHECKED)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let port = support::within(START, "the proxy listens", || {
            support::listening_ports(started.pid()).pop()
        });
        Some(Self {
            url: format!("http://127.0.0.1:{port}"),
            authority: folder.join("ca.crt"),
            _program: started,
        })
    }

    /// Makes a bucket, and a role for which one action is allowed; its name.
    pub(crate) fn bucket_and_role(&self, bucket: &str, action: &str) -> String {
        self.ask(
            "s3",
            &format!("https://{bucket}.s3.us-east-1.amazonaws.com/"),
            &["--request", "PUT"],
        );
        let trust = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Federated": "eks"}, "Action": "sts:AssumeRoleWithWebIdentity"}]}"#;
        let policy = format!(
            r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "{action}", "Resource": "*"}}]}}"#
        );
        let of_role = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
            let arguments: Vec<String> = fields
                .flat_map(|field| ["--data-urlencode".to_owned(), field])
                .collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.ask("iam", "https://iam.amazonaws.com/", &arguments);
        };
        of_role(&[
            ("Action", "CreateRole"),
            ("RoleName", "uploader"),
            ("AssumeRolePolicyDocument", trust),
        ]);
        of_role(&[
            ("Action", "PutRolePolicy"),
            ("RoleName", "uploader"),
            ("PolicyName", "only"),
            ("PolicyDocument", &policy),
        ]);
        "arn:aws:iam::123456789012:role/uploader".to_owned()
    }

    /// As somebody of whom nobody asks who he is.
    fn ask(&self, service: &str, url: &str, arguments: &[&str]) {
        let credential = format!(
            "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=x"
        );
        let asked = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--fail",
                "--max-time",
                "30",
                "--cacert",
            ])
            .arg(&self.authority)
            .args(["--proxy", &self.url, "--header", &credential])
            .args(arguments)
            .arg(url)
            .output()
            .unwrap();
        assert!(asked.status.success(), "{url}: {}", support::stderr(&asked));
    }
}
