//! Allocations of services that were started with the library, in the continuous agent.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::memory;
use crate::memory::Memory;
use crate::memory::Service;
use crate::support;
use crate::support::PATIENCE;
use crate::support::wait_for;
use candela_agent::ALLOCATION_LIBRARY;
use candela_agent::ALLOCATION_LIBRARY_NAME;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::AgentStatus;
use candela_agent::AgentTargets;
use candela_agent::Kind;
use candela_model::Profile;
use candela_model::ProfileSeries;
use object::Object as _;
use object::ObjectSymbol as _;
use tempfile::TempDir;

/// Where nothing is watched the functions of the library begin as they were written.
const NOP: u8 = 0x90;

/// What the kernel puts there: an int3.
const BREAKPOINT: u8 = 0xcc;

/// The program, what it loads, and the library of allocations.
struct Files {
    folder: TempDir,
    program: PathBuf,
    plugin: PathBuf,
    library: PathBuf,
    /// An agent of the host sees the services of all tests.
    _turn: File,
}

// === impl Files ===

impl Files {
    /// `None` where the tests cannot run.
    fn build() -> Option<Self> {
        if support::cannot_sample() || support::lacks("gcc") {
            return None;
        }
        let turn = support::turn();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (program, plugin) = memory::build(folder.path());
        let library = folder.path().join(ALLOCATION_LIBRARY_NAME);
        std::fs::write(&library, ALLOCATION_LIBRARY).expect("written");
        Some(Self {
            folder,
            program,
            plugin,
            library,
            _turn: turn,
        })
    }

    /// A service that goes by this name, of whose allocations each is a sample.
    fn serve(&self, name: &str, library: &Path) -> Service {
        let program = self.folder.path().join(name);
        std::fs::copy(&self.program, &program).expect("copied");
        let mut command = Command::new(program);
        command.arg("served").arg(&self.plugin);
        command.env("LD_PRELOAD", library);
        command.env("CANDELA_ALLOC_INTERVAL", "0");
        let mut service = Service::start(command);
        service.expect("ready\n");
        service
    }
}

fn start_agent(targets: AgentTargets) -> (AgentHandle, Receiver<Profile>) {
    support::start_agent(AgentOptions {
        kinds: [Kind::Alloc].into(),
        targets,
        window: Duration::from_secs(1),
        first_window: Duration::from_secs(1),
        ..AgentOptions::default()
    })
}

fn wait_for_libraries(agent: &AgentHandle, count: usize) {
    wait_for(agent, "the library is watched", |status| {
        status.source.allocation_libraries == count
    });
}

/// What was allocated in all windows together, and what was in use in the last of those that tell it.
fn summed(profiles: &Receiver<Profile>, is_wanted: impl Fn(&ProfileSeries) -> bool) -> Profile {
    let (mut whole, mut in_use) = (Profile::default(), Profile::default());
    for mut profile in profiles.try_iter() {
        assert_eq!(profile.validate(), Ok(()));
        profile.series.retain(&is_wanted);
        match is_of_allocated(&profile) {
            Some(true) => whole.absorb(&profile),
            Some(false) => in_use = profile,
            None => {}
        }
    }
    whole.absorb(&in_use);
    whole
}

/// Whether a window is of what was allocated, and not of what is in use; `None` without samples.
fn is_of_allocated(profile: &Profile) -> Option<bool> {
    let first = profile.series.first()?;
    Some(first.profile_type.sample_type.starts_with("alloc"))
}

fn is_of(name: &str) -> impl Fn(&ProfileSeries) -> bool {
    move |series| series.labels.get("service_name") == Some(name)
}

#[track_caller]
fn assert_nothing_lost(status: &AgentStatus) {
    for reason in [
        "sample_ring_full",
        "sample_lost",
        "alloc_frees_lost",
        "alloc_not_followed",
        "alloc_implausible",
        "alloc_library_refused",
        "symbolizer_behind",
    ] {
        assert_eq!(status.drops[reason], 0, "{reason}: {:?}", status.drops);
    }
    assert_eq!(status.failure, "");
}

/// The first byte of the function that tells of samples, as a process has it.
fn first_instruction(pid: u32) -> u8 {
    let library = object::File::parse(ALLOCATION_LIBRARY).expect("an object file");
    let mut symbols = library.dynamic_symbols();
    let symbol = symbols.find(|it| it.name() == Ok("candela_alloc_sampled"));
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let mut lines = maps.lines();
    let first = lines.find(|line| line.ends_with(ALLOCATION_LIBRARY_NAME));
    let start = first
        .and_then(|line| line.split_once('-'))
        .expect("it has it")
        .0;
    let start = u64::from_str_radix(start, 16).expect("a number");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("it is our child");
    let mut byte = [0];
    let address = start + symbol.expect("it has it").address();
    memory.read_exact_at(&mut byte, address).expect("code");
    byte[0]
}

#[test]
fn a_service_is_sampled_while_there_is_an_agent() {
    let Some(files) = Files::build() else {
        return;
    };
    let mut service = files.serve("served", &files.library);
    for round in 0..2 {
        // Nobody reads: the library runs as it was written, and what is sampled goes nowhere.
        service.go_on();
        assert_eq!(first_instruction(service.pid()), NOP, "round {round}");

        let (agent, profiles) = start_agent(AgentTargets::Pids(vec![service.pid()]));
        wait_for_libraries(&agent, 1);
        assert_eq!(first_instruction(service.pid()), BREAKPOINT);
        service.go_on();
        service.go_on();
        let status = agent.stop().expect("it stops");
        assert_nothing_lost(&status);
        assert_eq!(first_instruction(service.pid()), NOP);
        let profile = summed(&profiles, is_of("served"));
        memory::assert_few(&profile, 2, 2);
        // Of children that have ended nothing is in use.
        let in_child = memory::of_function(&profile, "in_child");
        assert_eq!(in_child, Memory::of(20, 20 * 80, 0, 0));
    }
    service.end();
}

#[test]
fn two_agents_take_nothing_from_each_other() {
    let Some(files) = Files::build() else {
        return;
    };
    let mut service = files.serve("served", &files.library);
    let targets = || AgentTargets::Pids(vec![service.pid()]);
    let agents = [start_agent(targets()), start_agent(targets())];
    for (agent, _) in &agents {
        wait_for_libraries(agent, 1);
    }
    service.go_on();
    for (agent, profiles) in agents {
        assert_nothing_lost(&agent.stop().expect("it stops"));
        memory::assert_few(&summed(&profiles, is_of("served")), 1, 1);
    }
}

#[test]
fn sums_are_right_within_the_sampling_error() {
    const INTERVAL: u32 = 16_384;
    let Some(files) = Files::build() else {
        return;
    };
    let mut command = Command::new(&files.program);
    command.env("LD_PRELOAD", &files.library);
    command.env("CANDELA_ALLOC_INTERVAL", INTERVAL.to_string());
    command.env("CANDELA_ALLOC_SEED", "7");
    let mut service = Service::start(command);
    service.expect("ready\n");
    let (agent, profiles) = start_agent(AgentTargets::Pids(vec![service.pid()]));
    wait_for_libraries(&agent, 1);
    service.go_on();
    assert_nothing_lost(&agent.stop().expect("it stops"));
    memory::assert_many(&summed(&profiles, is_of("allocate")), INTERVAL);
}

#[test]
fn services_that_come_later_are_found_and_what_has_ended_is_not_in_use() {
    let Some(files) = Files::build() else {
        return;
    };
    let (agent, profiles) = start_agent(AgentTargets::Host);
    let mut ending = files.serve("ending", &files.library);
    let mut staying = files.serve("staying", &files.library);
    wait_for_libraries(&agent, 1);
    ending.go_on();
    staying.go_on();
    ending.end();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ended_ns = i64::try_from(now.expect("after 1970").as_nanos()).expect("before 2262");
    let is_late = |profile: &Profile| {
        let is_in_use = is_of_allocated(profile) == Some(false);
        is_in_use && profile.series[0].start_ns > ended_ns
    };
    let mut all = Vec::new();
    while !all.last().is_some_and(is_late) {
        all.push(profiles.recv_timeout(PATIENCE).expect("a window in time"));
    }
    assert_nothing_lost(&agent.stop().expect("it stops"));
    all.extend(profiles.try_iter());
    for name in ["ending", "staying"] {
        let mut allocated = Profile::default();
        for profile in all.iter().filter(|it| is_of_allocated(it) == Some(true)) {
            let mut of_service = profile.clone();
            of_service.series.retain(is_of(name));
            allocated.absorb(&of_service);
        }
        memory::assert_few(&allocated, 1, 0);
    }
    // All windows that have begun since then.
    let late: Vec<&Profile> = all.iter().filter(|profile| is_late(profile)).collect();
    for profile in &late {
        assert!(!profile.series.iter().any(is_of("ending")));
    }
    let mut last = Profile::clone(late.last().expect("one was waited for"));
    last.series.retain(is_of("staying"));
    memory::assert_few(&last, 0, 1);
}

#[test]
fn files_that_only_have_the_name_are_refused() {
    let Some(files) = Files::build() else {
        return;
    };
    let folder = |name: &str| {
        let folder = files.folder.path().join(name);
        std::fs::create_dir(&folder).expect("made");
        folder.join(ALLOCATION_LIBRARY_NAME)
    };
    let without_functions = folder("without");
    std::fs::copy(&files.plugin, &without_functions).expect("copied");
    let with_others = folder("others");
    let source = files.folder.path().join("others.c");
    let text = "int candela_alloc_sampled(int a) { return a + 1; } int candela_alloc_freed(int a) { return a + 2; }";
    std::fs::write(&source, text).expect("written");
    let paths = [source.as_path(), Path::new("-o"), &with_others];
    let flags = ["-shared", "-fPIC"].map(Path::new);
    support::run("gcc", flags.into_iter().chain(paths));
    let cut = folder("cut");
    std::fs::write(&cut, &ALLOCATION_LIBRARY[..ALLOCATION_LIBRARY.len() / 2]).expect("written");
    let garbage = folder("garbage");
    std::fs::write(&garbage, [0xff; 8192]).expect("written");

    // One is there before the agent, the others come later.
    let before = files.serve("before", &without_functions);
    let (agent, profiles) = start_agent(AgentTargets::Host);
    let later = files.serve("later", &with_others);
    let mapping = [&cut, &garbage].map(|file| {
        let mut command = Command::new(&files.program);
        command.arg("maps").arg(file);
        let mut service = Service::start(command);
        service.expect("ready\n");
        service
    });
    let mut genuine = files.serve("genuine", &files.library);
    wait_for_libraries(&agent, 1);
    // What comes before the agent has looked at all processes for the first time may be counted twice.
    wait_for(&agent, "four are refused", |status| {
        status.drops["alloc_library_refused"] >= 4
    });
    genuine.go_on();
    drop((before, later, mapping));
    let status = agent.stop().expect("it stops");
    assert_eq!(status.failure, "");
    memory::assert_few(&summed(&profiles, is_of("genuine")), 1, 1);
}

/// Containers of one image, each with its own processes and mounts: their files are the same ones, under another
/// device each, so that each mount is watched.
#[test]
fn containers_of_one_image_are_counted_once_each() {
    let Some(files) = Files::build() else {
        return;
    };
    let folder = |name: &str| {
        let folder = files.folder.path().join(name);
        std::fs::create_dir(&folder).expect("made");
        folder
    };
    let (image, empty) = (folder("image"), folder("empty"));
    for file in [&files.program, &files.plugin, &files.library] {
        let name = file.file_name().expect("a file");
        std::fs::copy(file, image.join(name)).expect("copied");
    }
    let contain = |place: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        let script = r#"
            mount -t overlay -o "lowerdir=$0:$1" none "$2" || exit 3
            export CANDELA_ALLOC_INTERVAL=0 LD_PRELOAD="$2/libcandela-preload.so"
            exec "$2/allocate" served "$2/plugin.so""#;
        command.args(["sh", "-c", script]);
        command.args([&*image, &*empty, place]);
        command
    };
    let (first, second) = (folder("first"), folder("second"));
    let mut probe = contain(&first);
    let can_mount = probe.stdin(std::process::Stdio::null()).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        support::skipped("no container can be made here");
        return;
    }
    let mut containers = [&first, &second].map(|place| Service::start(contain(place)));
    containers.iter_mut().for_each(|it| it.expect("ready\n"));
    let (agent, profiles) = start_agent(AgentTargets::Host);
    wait_for_libraries(&agent, 2);
    containers.iter_mut().for_each(Service::go_on);
    let status = agent.stop().expect("it stops");
    assert_nothing_lost(&status);
    memory::assert_few(&summed(&profiles, is_of("allocate")), 2, 2);
}
