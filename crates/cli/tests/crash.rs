//! What can go wrong with the server's surroundings: a directory in use, a taken port, a full disk.

use std::io::Write;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;

use crate::support;
use crate::support::Running;

/// A folded profile made into pprof by nobody but the server: one sample of a known value. No two
/// are equal, or the second would count as sent again.
fn folded(value: i64) -> Vec<u8> {
    static NUMBER: AtomicI64 = AtomicI64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut text = Vec::new();
    writeln!(text, "main;work_{number};leaf {value}").unwrap();
    text
}

/// The sum of all pushes; folded stacks do not tell what they count, so the server is asked.
fn total(candela: &Running) -> i64 {
    const SELECTION: &str = "query=%7Bservice_name%3D%22crash%22%7D&from=now-1h&to=now%2B1h";
    let types = support::get_json(&candela.url(&format!("/api/v1/types?{SELECTION}")));
    let Some(id) = types["types"][0]["id"].as_str() else {
        return 0;
    };
    let top = support::get_json(&candela.url(&format!("/api/v1/top?{SELECTION}&type={id}")));
    top["total"].as_i64().unwrap()
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let _first = Running::start(&arguments);
    let output = support::run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        support::stderr(&output).contains("is in use by another server"),
        "{}",
        support::stderr(&output)
    );
}

#[test]
fn a_taken_port_names_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let first_dir = folder.path().join("first");
    let second_dir = folder.path().join("second");
    let first = Running::start(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        first_dir.to_str().unwrap(),
    ]);
    let address = first.url("").replace("http://", "");
    let output = support::run(&[
        "server",
        "--listen",
        &address,
        "--data-dir",
        second_dir.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let message = support::stderr(&output);
    assert!(message.contains(&format!("{}", first.pid())), "{message}");
    assert!(message.contains("--listen"), "{message}");
}

#[test]
fn an_unwritable_data_directory_is_a_clear_error() {
    let output = support::run(&[
        "server",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        "/proc/candela",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        support::stderr(&output).contains("/proc/candela"),
        "{}",
        support::stderr(&output)
    );
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

mod host {
    use super::*;

    #[test]
    fn a_full_disk_refuses_pushes_and_answers_queries() {
        let test = "a_full_disk_refuses_pushes_and_answers_queries";
        if !support::is_root(test) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=160m", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            println!("SKIP {test}: cannot mount a small file system");
            return;
        }
        let _unmount = Unmount(folder.path().to_owned());
        let data_dir = folder.path().join("data");
        let candela = Running::start(&[
            "server",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            data_dir.to_str().unwrap(),
        ]);
        let url = candela.url("/api/v1/ingest?service=crash");
        assert_eq!(support::try_post(&url, &folded(7)).unwrap().0, 200);
        // The log may have its segment allocated, so fill it too.
        std::fs::write(folder.path().join("filler"), vec![1_u8; 200 << 20])
            .expect_err("the disk is full now");
        let status = support::eventually("a push is refused", || {
            let mut text = folded(1);
            for line in 0..20_000 {
                writeln!(
                    text,
                    "main;work_{line};leaf_{:x} 1",
                    line * 2_654_435_761_u64
                )
                .unwrap();
            }
            let (status, _) = support::try_post(&url, &text).expect("the server lives");
            (status != 200).then_some(status)
        });
        assert_eq!(status, 503);
        assert!(total(&candela) >= 7, "queries go on");
    }
}
