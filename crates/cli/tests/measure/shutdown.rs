//! How long two signals may be apart and still be one wish.

use std::process::Command;

use crate::host::shutdown::server;

/// Whoever sends a signal to a program and to its group sends it twice, as `timeout` does.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let running = server(&folder);
    let pid = running.pid().to_string();
    let both = Command::new("kill").args(["-TERM", &pid, &pid]).status();
    assert!(both.unwrap().success());
    assert_eq!(running.wait(), Some(0));
}
