//! A real API server of Kubernetes with its etcd, built of their published modules.

use std::net::TcpListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::cache::installed;
use crate::cache::program;
use crate::cache::succeed;
use crate::manifest;
use crate::support;
use crate::support::Program;

const PROGRAM: &str = "kube-apiserver";

/// Of everybody's rights.
pub(crate) const ADMIN: &str = "admin";

/// A first start makes keys and thirty kinds of objects.
const START: Duration = Duration::from_secs(120);

const MOST_STARTS: usize = 3;

/// Runs until it is dropped.
pub(crate) struct ApiServer {
    folder: PathBuf,
    url: String,
    program: Program,
}

// === impl ApiServer ===

impl ApiServer {
    /// `None` where it cannot be built, which is said.
    pub(crate) fn start(test: &str, folder: &Path) -> Option<Self> {
        // Five minutes of two cores, once.
        if std::env::var_os("CI").is_none() {
            println!("SKIP {test}: builds an API server; set CI=true");
            return None;
        }
        if !support::has_tool(test, "go") || !support::has_tool(test, "curl") {
            return None;
        }
        let program = build();
        // Somebody may take the port before it does, which ends it.
        let mut starts = (0..MOST_STARTS).map(|_| Self::start_once(&program, folder));
        let server = starts.find_map(|server| server);
        Some(server.unwrap_or_else(|| panic!("the API server ended {MOST_STARTS} times")))
    }

    /// `None` when it ends before it is ready.
    fn start_once(program: &Path, folder: &Path) -> Option<Self> {
        // It takes no port 0.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = port.unwrap().port();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg(folder).arg(port.to_string()).stderr(log);
        let server = Self {
            folder: folder.to_owned(),
            url: format!("https://127.0.0.1:{port}"),
            program: Program::start(&mut command),
        };
        let is_ready = support::within(START, "the API server is ready", || {
            if support::is_zombie(server.program.pid()) {
                return Some(false);
            }
            let has_certificate = server.folder.join("apiserver.crt").is_file();
            let is_ready = has_certificate && server.call(ADMIN, "GET", "/readyz", "").0 == 200;
            is_ready.then_some(true)
        });
        is_ready.then_some(server)
    }

    /// Status and body of a request with a bearer token; 0 while nobody answers. A body may be YAML.
    pub(crate) fn call(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let content_type = match method {
            "PATCH" => "application/strategic-merge-patch+json",
            _ => "application/yaml",
        };
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "30", "--noproxy", "*"])
            .arg("--cacert")
            .arg(self.folder.join("apiserver.crt"))
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(["--header", "Accept: application/json"])
            .args(["--write-out", "\n%{http_code}", "--request", method]);
        if !body.is_empty() {
            curl.args(["--header", &format!("Content-Type: {content_type}")])
                .args(["--data-binary", body]);
        }
        let output = curl.arg(format!("{}{path}", self.url)).output().unwrap();
        let text = support::stdout(&output);
        let (body, status) = text.rsplit_once('\n').unwrap_or_default();
        (status.parse().unwrap_or(0), body.to_owned())
    }

    /// Makes an object, every field of which the server must know.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, object: &str) -> Value {
        let path = format!("{path}?fieldValidation=Strict");
        let (status, body) = self.call(ADMIN, "POST", &path, object);
        assert_eq!(status, 201, "{path}: {body}\n{object}");
        serde_json::from_str(&body).unwrap()
    }

    /// The server takes an object, every field of which it must know, and keeps nothing of it.
    #[track_caller]
    pub(crate) fn dry_run(&self, path: &str, object: &str) {
        let path = format!("{path}?fieldValidation=Strict&dryRun=All");
        let (status, body) = self.call(ADMIN, "POST", &path, object);
        assert_eq!(status, 201, "{path}: {body}\n{object}");
    }

    /// Changes the status of a pod, as its kubelet does.
    #[track_caller]
    pub(crate) fn set_status(&self, namespace: &str, pod: &str, status: &Value) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/status");
        let patch = serde_json::json!({ "status": status }).to_string();
        let (code, body) = self.call(ADMIN, "PATCH", &path, &patch);
        assert_eq!(code, 200, "{body}");
    }

    /// All objects of `deploy/kubernetes`.
    pub(crate) fn apply_manifest(&self) {
        for object in manifest::objects() {
            self.create(manifest::path_of(&object), &object);
        }
    }

    /// A token of the agent's service account, as a pod of it gets.
    pub(crate) fn agent_token(&self) -> String {
        let path = "/api/v1/namespaces/candela/serviceaccounts/candela-agent/token";
        let answer = self.create(path, "{}");
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// The file by which a client with this token finds the server.
    pub(crate) fn kubeconfig(&self, token: &str) -> PathBuf {
        let path = self.folder.join("kubeconfig");
        let certificate = self.folder.join("apiserver.crt");
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": certificate}}],
            "users": [{"name": "agent", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "agent"}}],
            "current-context": "test",
        });
        std::fs::write(&path, text.to_string()).unwrap();
        path
    }
}

/// The program, which the next run finds again.
fn build() -> PathBuf {
    let files = ["go.mod", "go.sum", "main.go"];
    let build = |folder: &Path| {
        let mut command = Command::new("go");
        command
            // It answers few questions; compilers that do not optimize take half the time.
            .args([
                "build",
                "-mod=readonly",
                "-gcflags=all=-N -l",
                "-ldflags=-s -w",
                "-o",
            ])
            .arg(folder.join("program"))
            .arg(".")
            // Distributions turn off what it does by itself: fetch the version that go.mod names.
            .env("GOTOOLCHAIN", "auto")
            .current_dir(program(PROGRAM));
        succeed(&mut command);
    };
    installed(PROGRAM, &files, build).join("program")
}
