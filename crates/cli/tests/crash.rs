//! `kill -9` during pushes: everything acknowledged is there after a restart, totals exact.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::io::Write;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;

use support::Running;

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
fn what_was_acknowledged_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let arguments = ["server", "--listen", "127.0.0.1:0", "--data-dir", data_dir];
    let mut acknowledged_before = 0;
    for round in 0..3 {
        let candela = Running::start(&arguments);
        assert_eq!(
            total(&candela),
            acknowledged_before,
            "round {round}: totals are exact after kill -9"
        );
        let acknowledged = AtomicI64::new(0);
        let unanswered = AtomicI64::new(0);
        let is_over = AtomicBool::new(false);
        let url = candela.url("/api/v1/ingest?service=crash");
        std::thread::scope(|scope| {
            for pusher in 0..4 {
                let (url, acknowledged, unanswered, is_over) =
                    (&url, &acknowledged, &unanswered, &is_over);
                scope.spawn(move || {
                    for push in 0.. {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        let value = 1 + pusher + push % 7;
                        match support::try_post(url, &folded(value)) {
                            Some((200, _)) => acknowledged.fetch_add(value, Ordering::SeqCst),
                            Some((status, body)) => {
                                panic!("{status}: {}", String::from_utf8_lossy(&body))
                            }
                            // Sent and not answered: the server may have it or not.
                            None => unanswered.fetch_add(value, Ordering::SeqCst),
                        };
                    }
                });
            }
            support::eventually("some pushes are acknowledged", || {
                (acknowledged.load(Ordering::SeqCst) > 200).then_some(())
            });
            is_over.store(true, Ordering::SeqCst);
            support::signal(candela.pid(), "KILL");
        });
        candela.kill();
        let acknowledged = acknowledged_before + acknowledged.load(Ordering::SeqCst);
        let candela = Running::start(&arguments);
        let found = total(&candela);
        let most = acknowledged + unanswered.load(Ordering::SeqCst);
        assert!(
            (acknowledged..=most).contains(&found),
            "{acknowledged} <= {found} <= {most}"
        );
        acknowledged_before = found;
        candela.kill();
    }
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

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
