//! Switches of the real kernel.

use crate::support::{PATIENCE, skip, turn};
use candela_ebpf::{SwitchRecorder, capabilities};
use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// So many that a dozen which are missed while somebody else attaches programs are few among them.
const ENOUGH: usize = 1_000;

const SLEEPING: u16 = 1;
const RUNNABLE: [u16; 2] = [0, 0x100];

/// Programs that end with the test, however that ends.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// What is remembered of a switch.
#[derive(Clone, Debug)]
struct Seen {
    time_ns: u64,
    tid: u32,
    pid: u32,
    comm: String,
    previous_tid: u32,
    previous_state: u16,
}

fn recorder() -> Option<SwitchRecorder> {
    let checks = capabilities();
    if let Some(check) = checks.iter().find(|check| check.required && !check.ok) {
        skip(&format!("{} is missing ({})", check.name, check.detail));
        return None;
    }
    Some(SwitchRecorder::start().expect("all required checks passed"))
}

#[test]
fn switches_of_a_cpu_follow_each_other_and_tell_why_a_thread_left() {
    // Its ring must not fill while the other test switches as often as it can.
    let _turn = turn();
    let Some(mut recorder) = recorder() else {
        return;
    };
    // More that want to run than there are CPUs, and one that mostly sleeps.
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    let programs: Vec<Child> = (0..=cpus)
        .map(|_| ("while :; do :; done", "sh"))
        .chain([("while :; do sleep 0.01; done", "sh")])
        .map(|(script, shell)| {
            let mut command = Command::new(shell);
            command.args(["-c", script]).stdout(Stdio::null());
            command.spawn().expect("a shell")
        })
        .collect();
    let programs = Running(programs);
    let busy: Vec<u32> = programs.0[..=cpus].iter().map(Child::id).collect();
    let sleeper = programs.0[cpus + 1].id();

    let mut by_cpu: HashMap<u32, Vec<Seen>> = HashMap::new();
    let began = Instant::now();
    let is_enough = |by_cpu: &HashMap<u32, Vec<Seen>>| {
        let all = || by_cpu.values().flatten();
        let leaves = |tid: u32, states: &[u16]| {
            let left = all().filter(|seen| seen.previous_tid == tid);
            left.filter(|seen| states.contains(&seen.previous_state))
                .count()
        };
        // Until it runs its program it has the name of whoever started it.
        let runs = |tid: u32| all().any(|seen| seen.tid == tid && seen.comm == "sh");
        let are_many = all().count() >= ENOUGH;
        are_many
            && leaves(sleeper, &[SLEEPING]) >= 2
            && busy
                .iter()
                .all(|&pid| runs(pid) && leaves(pid, &RUNNABLE) >= 2)
    };
    while !is_enough(&by_cpu) {
        assert!(began.elapsed() < PATIENCE, "too few switches: {by_cpu:?}");
        std::thread::park_timeout(Duration::from_millis(50));
        recorder.read(&mut |switch| {
            by_cpu.entry(switch.cpu).or_default().push(Seen {
                time_ns: switch.time_ns,
                tid: switch.tid,
                pid: switch.pid,
                comm: switch.comm.to_string_lossy().into_owned(),
                previous_tid: switch.previous_tid,
                previous_state: switch.previous_state,
            });
        });
    }
    drop(programs);

    let lost: u64 = recorder.lost_by_cpu().expect("a map").iter().sum();
    assert_eq!(recorder.undecodable(), 0);
    let (mut pairs, mut gaps) = (0, 0);
    for (cpu, switches) in &by_cpu {
        for pair in switches.windows(2) {
            assert!(pair[0].time_ns <= pair[1].time_ns, "cpu {cpu}: {pair:?}");
            pairs += 1;
            gaps += usize::from(pair[0].tid != pair[1].previous_tid);
        }
    }
    // The kernel's own tracepoint misses a switch now and then, for all who listen to it. What found the ring full is
    // counted.
    let missed = pairs / 20 + usize::try_from(lost).expect("few");
    assert!(
        gaps <= missed,
        "{gaps} gaps in {pairs} switches, {lost} lost"
    );
    let all: Vec<&Seen> = by_cpu.values().flatten().collect();
    for &pid in &busy {
        let came = all.iter().filter(|seen| seen.tid == pid);
        let last = came.max_by_key(|seen| seen.time_ns).expect("it ran");
        assert_eq!((last.pid, last.comm.as_str()), (pid, "sh"));
    }
}

#[test]
fn what_finds_the_ring_full_is_counted() {
    let _turn = turn();
    let Some(mut recorder) = recorder() else {
        return;
    };
    // Two threads that hand each other the turn switch as often as a CPU can.
    let (ping, pinged) = sync_channel::<()>(0);
    let (pong, ponged) = sync_channel::<()>(0);
    let partner = std::thread::spawn(
        move || {
            while pinged.recv().is_ok() && pong.send(()).is_ok() {}
        },
    );
    let lost =
        |recorder: &SwitchRecorder| -> u64 { recorder.lost_by_cpu().expect("a map").iter().sum() };
    let began = Instant::now();
    while lost(&recorder) == 0 {
        assert!(began.elapsed() < PATIENCE, "the ring has room for ever");
        for _ in 0..1000 {
            ping.send(()).expect("it listens");
            ponged.recv().expect("it answers");
        }
    }
    let mut kept = 0_u64;
    recorder.read(&mut |_| kept += 1);
    assert!(kept > 10_000, "{kept} fit");
    let before = lost(&recorder);
    let mut after = 0_u64;
    while after < 1000 {
        assert!(began.elapsed() < PATIENCE, "nothing comes any more");
        ping.send(()).expect("it listens");
        ponged.recv().expect("it answers");
        recorder.read(&mut |_| after += 1);
    }
    assert_eq!(lost(&recorder), before, "who reads loses nothing");
    drop(ping);
    partner.join().expect("no panic");
}
