//! `candela store`: damaged files are named, a catalog is made again.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and a skipped one says why"
)]

use std::fs;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use crate::support;
use crate::support::Running;
use serde_json::Value;

fn start(data_dir: &str) -> Running {
    Running::start(&["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir])
}

/// A directory with two blocks, of profiles of one moment: those of two hours would be merged otherwise.
fn fill(data_dir: &str) {
    let now = SystemTime::now();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stacks.folded");
    for (service, stacks) in [("a", "main;read 3\n"), ("b", "main;write 70\n")] {
        let running = start(data_dir);
        fs::write(&path, stacks).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(now).unwrap();
        let (path, url) = (path.to_str().unwrap(), running.url(""));
        let arguments = ["push", path, "--service", service, "--server", &url];
        support::expect_code(&support::run(&arguments), 0);
        assert_eq!(running.terminate(), Some(0), "writes a block");
    }
}

fn total_of(running: &Running) -> i64 {
    let top = support::get_json(&running.url("/api/v1/top?type=samples"));
    top["total"].as_i64().unwrap()
}

fn total(data_dir: &str) -> i64 {
    let running = start(data_dir);
    let total = total_of(&running);
    assert_eq!(running.terminate(), Some(0));
    total
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn verify_names_the_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    fill(data_dir);
    let verify = ["store", "verify", "--data-dir", data_dir];
    let output = support::run(&verify);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    assert!(text.starts_with("2 blocks, 10 files, "), "{text}");
    assert!(text.trim_end().ends_with(": 0 damaged"), "{text}");

    let tables = folder.path().join("blocks/v1");
    let damaged = files_below(&tables.join("locations"), "parquet").remove(0);
    let mut content = fs::read(&damaged).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&damaged, content).unwrap();
    // A server that runs is no reason not to look.
    let running = start(data_dir);
    let output = support::run(&verify);
    assert_eq!(output.status.code(), Some(1));
    let name = damaged.strip_prefix(&tables).unwrap().to_str().unwrap();
    assert!(
        support::stdout(&output).contains(name),
        "{}",
        support::stdout(&output)
    );
    assert!(
        support::stderr(&output).contains("1 of 2 blocks"),
        "{}",
        support::stderr(&output)
    );
    assert_eq!(running.terminate(), Some(0));

    fs::remove_file(&damaged).unwrap();
    let output = support::run(&[&verify[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "candela/store-verify/v1");
    assert_eq!(report["blocks"], 2);
    let fault = report["damaged"][0]["faults"][0].as_str().unwrap();
    assert!(fault.contains(name), "{fault}");
}

#[test]
fn a_catalog_is_made_again_from_the_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    fill(data_dir);
    assert_eq!(total(data_dir), 73);
    let catalog = folder.path().join("catalog.sqlite");
    fs::write(
        &catalog,
        "no database at all, and more than a hundred bytes of it ".repeat(9),
    )
    .unwrap();
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let output = support::run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let message = support::stderr(&output);
    assert!(message.contains("catalog.sqlite is damaged"), "{message}");
    assert!(
        message.contains("candela store rebuild-catalog"),
        "{message}"
    );

    let rebuild = ["store", "rebuild-catalog", "--data-dir", data_dir];
    let output = support::run(&rebuild);
    support::expect_code(&output, 0);
    let text = support::stdout(&output);
    assert!(
        text.starts_with("1 blocks of 1 tenants, 1 samples, "),
        "{text}"
    );
    // The log keeps its last segment.
    let notes = support::stderr(&output);
    assert!(notes.contains("1 more are in the log"), "{notes}");
    assert!(folder.path().join("catalog.sqlite.old").is_file());
    assert_eq!(total(data_dir), 73);

    let running = start(data_dir);
    let output = support::run(&rebuild);
    assert_eq!(output.status.code(), Some(1));
    let message = support::stderr(&output);
    assert!(message.contains("in use by another server"), "{message}");
    assert_eq!(running.terminate(), Some(0));

    // That of the block which the log has not any more.
    let manifests = files_below(&folder.path().join("blocks/v1/_blocks"), "json").into_iter();
    let mut manifests = manifests.map(|path| (fs::read_to_string(&path).unwrap(), path));
    let (content, manifest) = manifests
        .find(|(content, _)| content.contains(r#""service": "a""#))
        .unwrap();
    fs::write(&manifest, content.replacen("\"rows\": 1", "\"rows\": 7", 1)).unwrap();
    let output = support::run(&[&rebuild[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["blocks"], &report["in_log"]),
        (&0.into(), &1.into())
    );
    let reason = report["damaged"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("checksum"), "{reason}");
    let message = support::stderr(&output);
    assert!(message.contains("restore the manifests"), "{message}");
}

/// A volume of its own, until it is dropped.
struct Volume(PathBuf);

impl Volume {
    /// `None` where only root may mount.
    fn mount(path: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", "size=200m", "tmpfs"])
            .arg(path)
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("skipped: mounting a small tmpfs needs root");
            return None;
        }
        Some(Self(path.to_owned()))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn compact_merges_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    fill(data_dir);
    let compact = ["store", "compact", "--all", "--data-dir", data_dir];
    let running = start(data_dir);
    let output = support::run(&compact);
    assert_eq!(output.status.code(), Some(1), "a server runs");
    let error = support::stderr(&output);
    assert!(error.contains("in use by another server"), "{error}");
    assert_eq!(running.terminate(), Some(0));

    let output = support::run(&compact);
    let text = support::stdout(&output);
    let error = support::stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(
        text.starts_with("2 blocks were merged into 3; 2 blocks of"),
        "{text}"
    );
    assert_eq!(total(data_dir), 73);
}

mod host {
    use super::*;

    #[test]
    fn a_full_volume_answers_503_and_goes_on_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let Some(volume) = Volume::mount(folder.path()) else {
            return;
        };
        let running = start(volume.0.to_str().unwrap());
        let push = |stacks: &str| {
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .build()
                .into();
            let mut response = agent
                .post(running.url("/api/v1/ingest?service=a"))
                .send(stacks.as_bytes())
                .unwrap();
            let retry_after = response.headers().get("retry-after").cloned();
            let body = response.body_mut().read_to_string().unwrap();
            (response.status().as_u16(), retry_after, body)
        };
        assert_eq!(push("main;read 3\n").0, 200);
        let ballast = volume.0.join("ballast");
        let free = Command::new("stat")
            .args(["--file-system", "--format", "%a %S"])
            .arg(&volume.0)
            .output()
            .unwrap();
        let text = support::stdout(&free);
        let (blocks, size) = text.trim().split_once(' ').unwrap();
        let free: u64 = blocks.parse::<u64>().unwrap() * size.parse::<u64>().unwrap();
        // Room enough for the profile, less than the twentieth that is kept.
        fs::write(&ballast, vec![1; (free - (6 << 20)) as usize]).unwrap();
        let (status, retry_after, body) = push("main;write 70\n");
        assert_eq!(status, 503, "{body}");
        assert!(retry_after.is_some());
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], "disk_full");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("bytes free"), "{message}");
        assert!(message.contains("store.min_free_space"), "{message}");
        let path = volume.0.to_str().unwrap();
        assert!(!message.contains(path), "{message}");
        assert_eq!(total_of(&running), 3, "queries go on");
        fs::remove_file(&ballast).unwrap();
        assert_eq!(push("main;write 70\n").0, 200);
        assert_eq!(total_of(&running), 73);
        assert_eq!(running.terminate(), Some(0));
    }
}

/// A folder and everything below it, each with its permission bits for group and others.
fn bits_for_others(folder: &Path) -> Vec<(PathBuf, u32)> {
    let metadata = fs::symlink_metadata(folder).unwrap();
    let mut found = vec![(folder.to_owned(), metadata.permissions().mode() & 0o077)];
    if metadata.is_dir() {
        for entry in fs::read_dir(folder).unwrap() {
            found.extend(bits_for_others(&entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn the_data_directory_is_private_whatever_the_umask() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let mut command = support::in_clean_environment("sh");
    command
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(support::candela().get_program())
        .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data_dir)
        .env("CANDELA_SERVER__OTLP_GRPC_LISTEN", "127.0.0.1:0")
        .env("CANDELA_SERVER__OTLP_HTTP_LISTEN", "127.0.0.1:0");
    let running = Running::launch(&mut command).unwrap();
    let stacks = folder.path().join("stacks.folded");
    fs::write(&stacks, "main;read 3\n").unwrap();
    let url = running.url("");
    let arguments = [
        "push",
        stacks.to_str().unwrap(),
        "--service",
        "a",
        "--server",
        &url,
    ];
    support::expect_code(&support::run(&arguments), 0);
    assert_eq!(running.terminate(), Some(0), "writes a block");

    let found = bits_for_others(&data_dir);
    assert!(!files_below(&data_dir, "parquet").is_empty());
    let open: Vec<_> = found.iter().filter(|(_, bits)| *bits != 0).collect();
    assert!(open.is_empty(), "{open:#?}");
}

/// As an older version left it. What it does not know in it, it would leave open.
#[test]
fn a_data_directory_that_others_may_read_is_restricted_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let path = data_dir.to_str().unwrap();
    fill(path);
    let rebuilt = support::run(&["store", "rebuild-catalog", "--data-dir", path]);
    support::expect_code(&rebuilt, 0);
    for start_again in [
        &["server", "--listen", "127.0.0.1:0", "--data-dir", path][..],
        #[cfg(feature = "agent")]
        &[
            "up",
            "--no-agent",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            path,
        ],
    ] {
        fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o755)).unwrap();
        let running = Running::start(start_again);
        assert_eq!(running.terminate(), Some(0));
        let mode = fs::metadata(&data_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{start_again:?}");
    }
    for store in ["compact", "rebuild-catalog"] {
        fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o755)).unwrap();
        let output = support::run(&["store", store, "--data-dir", path]);
        support::expect_code(&output, 0);
        let mode = fs::metadata(&data_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{store}");
    }
}
