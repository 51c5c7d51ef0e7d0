//! Process life and targets on the real kernel.

use crate::support::{Running, compile, skip, spawn, start, until};
use candela_ebpf::{Error, Event, FileIdentity, Options, Sampler, Target};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);

#[test]
fn fork_exec_mappings_and_exit_are_seen_in_this_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    let Some(mut sampler) = start(&Options::default()) else {
        return;
    };
    let mut running = spawn(&program, &["1", "1"]);
    let pid = running.pid();
    running.0.wait().expect("ends by itself");
    let mut life: Vec<String> = Vec::new();
    let mut times = Vec::new();
    until("its exit", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Fork {
                    pid: child,
                    parent,
                    time_ns,
                } if child == pid => {
                    assert_eq!(parent, std::process::id());
                    life.push("fork".into());
                    times.push(time_ns);
                }
                Event::Exec {
                    pid: executing,
                    time_ns,
                    comm,
                } if executing == pid => {
                    assert_eq!(comm, "recurse");
                    life.push("exec".into());
                    times.push(time_ns);
                }
                Event::Mapped(mapped) if mapped.pid == pid => {
                    if mapped.path == program.as_os_str() {
                        let FileIdentity::Inode { inode, .. } = mapped.file else {
                            panic!("{mapped:?}")
                        };
                        assert_eq!(inode, inode_of(&program));
                        life.push("map".into());
                    }
                    times.push(mapped.time_ns);
                }
                Event::Exit {
                    pid: ended,
                    time_ns,
                } if ended == pid => {
                    life.push("exit".into());
                    times.push(time_ns);
                }
                _ => {}
            })
            .expect("polls");
        life.last().is_some_and(|event| event == "exit")
    });
    assert_eq!(life, ["fork", "exec", "map", "exit"]);
    assert!(times.is_sorted(), "{times:?}");
}

fn inode_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).expect("exists").ino()
}

#[test]
fn mappings_carry_build_ids_when_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile(
        "recurse",
        &["-Wl,--build-id=0x1234567890abcdef"],
        directory.path(),
    ) else {
        return;
    };
    let Some(mut sampler) = start(&Options {
        mapped_build_ids: true,
        ..Options::default()
    }) else {
        return;
    };
    let running = spawn(&program, &["1", "100"]);
    let mut build_id = None;
    until("its mapping", || {
        sampler
            .poll(TICK, &mut |event| {
                if let Event::Mapped(mapped) = event
                    && mapped.pid == running.pid()
                    && mapped.path == program.as_os_str()
                    && let FileIdentity::BuildId(id) = mapped.file
                {
                    build_id = Some(id.to_vec());
                }
            })
            .expect("polls");
        build_id.is_some()
    });
    assert_eq!(
        build_id.as_deref(),
        Some(&[0x12, 0x34, 0x56, 0x78, 0x90, 0xab, 0xcd, 0xef][..])
    );
}

#[test]
fn only_targets_and_their_children_are_sampled() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("recurse", &[], directory.path()) else {
        return;
    };
    // The shell waits for a line, so that the sampler is there before it forks.
    let shell = Command::new("sh")
        .args(["-c", "read line; \"$0\" 5 300; true"])
        .arg(&program)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let mut shell = Running(shell);
    let outsider = spawn(&program, &["5", "5000"]);
    let options = Options {
        rate_hz: 499,
        target: Target::Processes {
            pids: vec![shell.pid()],
            follow_forks: true,
        },
        ..Options::default()
    };
    let Some(mut sampler) = start(&options) else {
        return;
    };
    drop(shell.0.stdin.take());
    let (mut child, mut of_child, mut of_others, mut shell_ended) = (None, 0, 0, false);
    until("the shell's exit", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Fork { pid, parent, .. } => {
                    assert_eq!(parent, shell.pid());
                    child = Some(pid);
                }
                Event::Exec { pid, .. } => assert_eq!(Some(pid), child),
                Event::Mapped(mapped) => {
                    assert!(mapped.pid == shell.pid() || Some(mapped.pid) == child);
                }
                Event::Exit { pid, .. } => shell_ended |= pid == shell.pid(),
                Event::Sample(sample) if Some(sample.pid) == child => of_child += 1,
                Event::Sample(sample) if sample.pid != shell.pid() => of_others += 1,
                _ => {}
            })
            .expect("polls");
        shell_ended
    });
    shell.0.wait().expect("it ended");
    drop(outsider);
    assert!(of_child > 20, "{of_child} samples of the child");
    assert_eq!(of_others, 0);
}

#[test]
fn a_cgroup_is_sampled_with_what_is_below_it() {
    let Some(root) = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .map(Path::new)
        .into_iter()
        .find(|root| std::fs::metadata(root.join("cgroup.controllers")).is_ok())
    else {
        skip("no cgroup v2 hierarchy is mounted");
        return;
    };
    let group = root.join(format!("candela-test-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(group.join("inner")) {
        skip(&format!("cannot create a cgroup ({error})"));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let outcome = compile("recurse", &[], directory.path())
        .and_then(|program| sample_cgroup(&group, &program));
    // A group can be removed once its processes are reaped.
    std::fs::remove_dir(group.join("inner")).expect("empty");
    std::fs::remove_dir(&group).expect("empty");
    let Some((of_member, of_others, cgroup_id)) = outcome else {
        return;
    };
    assert!(of_member > 20, "{of_member} samples");
    assert_eq!(of_others, 0);
    assert_ne!(cgroup_id, 0);
}

fn sample_cgroup(group: &Path, program: &Path) -> Option<(u32, u32, u64)> {
    let outsider = spawn(program, &["5", "5000"]);
    let member = spawn(program, &["5", "5000"]);
    std::fs::write(group.join("inner/cgroup.procs"), member.pid().to_string()).expect("it runs");
    let options = Options {
        rate_hz: 499,
        target: Target::Cgroup(group.to_owned()),
        ..Options::default()
    };
    let mut sampler = start(&options)?;
    let (mut of_member, mut of_others, mut cgroup_id) = (0, 0, 0);
    until("samples of the member", || {
        sampler
            .poll(TICK, &mut |event| match event {
                Event::Sample(sample) if sample.pid == member.pid() => {
                    of_member += 1;
                    cgroup_id = sample.cgroup_id;
                }
                Event::Sample(_) => of_others += 1,
                _ => {}
            })
            .expect("polls");
        of_member > 20
    });
    drop((outsider, member));
    assert_eq!(cgroup_id, inode_of(&group.join("inner")));
    Some((of_member, of_others, cgroup_id))
}

#[test]
fn lost_side_band_records_are_told_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compile("many_maps", &[], directory.path()) else {
        return;
    };
    let Some(mut sampler) = start(&Options::default()) else {
        return;
    };
    // Nobody polls while it fills the side band of its CPU several times over.
    let child = Command::new(&program)
        .arg("5000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("a program that was just compiled starts"));
    let pid = running.pid();
    let mut line = [0; 5];
    let mut stdout = running.0.stdout.take().expect("piped");
    stdout
        .read_exact(&mut line)
        .expect("it tells when it is done");
    let mut mapped = 0;
    let mut lost = 0;
    let mut count = |event: Event<'_>| match event {
        Event::Mapped(event) => mapped += u64::from(event.pid == pid),
        Event::SidebandLost { records } => lost += records,
        _ => {}
    };
    sampler.poll(Duration::ZERO, &mut count).expect("polls");
    // The kernel tells how many it dropped before the next record it writes.
    drop(running.0.stdin.take());
    running.0.wait().expect("ends by itself");
    sampler.poll(TICK, &mut count).expect("polls");
    assert!(mapped > 100, "{mapped} mapped");
    assert!(mapped + lost >= 5000, "{mapped} mapped and {lost} lost");
    assert_eq!(sampler.counters().expect("readable").sideband_lost, lost);
}

/// Whether the sampler is refused for the pids that it would tell, whatever else is wrong with it.
fn is_namespace_refused() -> bool {
    let checks = candela_ebpf::capabilities();
    let namespace = checks.iter().find(|check| check.name == "pid_namespace");
    let refused = namespace.filter(|check| !check.ok);
    if let Some(check) = refused {
        skip(&format!("the pid namespace is {}", check.detail));
    }
    refused.is_some()
}

/// Set in the environment of a test process that has no capabilities.
const WITHOUT_CAPABILITIES: &str = "CANDELA_TEST_WITHOUT_CAPABILITIES";

#[test]
fn without_capabilities_the_missing_one_is_named() {
    if std::env::var_os(WITHOUT_CAPABILITIES).is_some() {
        let error = Sampler::start(&Options::default()).expect_err("nothing is allowed");
        assert!(
            matches!(error, Error::MissingCapability { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains("CAP_BPF"), "{error}");
        assert!(error.is_permission_or_kernel());
        let checks = candela_ebpf::capabilities();
        let programs = checks.iter().find(|check| check.name == "bpf_programs");
        assert!(
            programs.is_some_and(|check| !check.ok && check.fix.is_some()),
            "{checks:?}"
        );
        return;
    }
    if is_namespace_refused() {
        return;
    }
    // The capabilities of a root process are bounded by this set.
    let status = Command::new("setpriv")
        .args(["--bounding-set", "-all", "--inh-caps", "-all"])
        .arg(std::env::current_exe().expect("known"))
        .args([
            "--exact",
            "host::life::without_capabilities_the_missing_one_is_named",
        ])
        .env(WITHOUT_CAPABILITIES, "1")
        .output();
    match status {
        Ok(output) if output.status.code() == Some(127) => {
            skip("setpriv may not drop capabilities");
        }
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout);
            // Where its name is another one, no test runs, and that succeeds.
            let has_run = told.contains(" 1 passed;");
            assert!(output.status.success() && has_run, "{told}");
        }
        Err(error) => skip(&format!("no setpriv ({error})")),
    }
}

#[test]
fn impossible_wishes_are_refused_with_their_values() {
    if is_namespace_refused() {
        return;
    }
    let rate = Sampler::start(&Options {
        rate_hz: 5000,
        ..Options::default()
    });
    let error = rate.expect_err("too fast").to_string();
    assert!(error.contains("5000"), "{error}");

    // Above the largest process id that Linux can give.
    let gone = Target::Processes {
        pids: vec![4_194_305],
        follow_forks: false,
    };
    let error = Sampler::start(&Options {
        target: gone,
        ..Options::default()
    });
    assert!(matches!(
        error,
        Err(Error::NoSuchProcess { pid: 4_194_305 })
    ));

    let nowhere = Target::Cgroup("/nonexistent".into());
    let error = Sampler::start(&Options {
        target: nowhere,
        ..Options::default()
    });
    assert!(
        error
            .expect_err("no such directory")
            .to_string()
            .contains("/nonexistent")
    );
}
