//! What Telegen's keys are to us.

/// What variables of Telegen's begin with.
pub(super) const PREFIX_OF_VARIABLES: &str = "TELEGEN_";

/// What a key becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The value of a key of ours.
    Key(&'static str),
    /// The address that profiles are sent to.
    Server,
    /// Kinds that are sampled, where the value is true.
    Kinds(&'static [&'static str]),
    /// The same of one kind that is not all that Telegen has: a line says what is missing.
    PartOfKind(&'static str, &'static str),
    /// Values of a label, with `*` for anything: series that have one of them are kept.
    Included(&'static str),
    /// The same: they are left out.
    Excluded(&'static str),
    /// Names of workloads by the label of their kind: series of any of them are kept.
    Workloads(&'static str),
    /// Labels of pods by their keys: series of pods that have all of them are kept.
    PodLabels,
    /// Patterns of functions that are not shown.
    Hidden,
    /// A filter of frames, where the value is this one.
    HiddenIf(&'static str, &'static str),
    /// Nothing where the value is this one, which is what we do, else a line.
    Always(&'static str, &'static str),
    /// The shortest wait that is a sample, in nanoseconds; of several the shortest.
    ShortestWait,
    /// A line.
    Nothing(&'static str),
}

use Meaning::Always;
use Meaning::Excluded;
use Meaning::Hidden;
use Meaning::HiddenIf;
use Meaning::Included;
use Meaning::Key;
use Meaning::Kinds;
use Meaning::Nothing;
use Meaning::PartOfKind;
use Meaning::PodLabels;
use Meaning::Server;
use Meaning::ShortestWait;
use Meaning::Workloads;

/// The keys of the documentation, below `agent.profiling`.
const DOCUMENTED: &[(&str, Meaning)] = &[
    ("enabled", Key("agent.sampling")),
    ("sample_rate", Key("agent.rate")),
    ("duration", Key("agent.interval")),
    ("upload_interval", Nothing(UPLOAD)),
    ("cpu", Kinds(&["cpu"])),
    ("off_cpu", Kinds(&["off-cpu"])),
    ("mutex", Kinds(&["lock"])),
    ("memory", PartOfKind("alloc", MEMORY)),
    ("memory_mode", Nothing(MEMORY)),
    ("block", Always("false", BLOCK)),
    ("goroutine", Always("false", GOROUTINE)),
    ("symbols.demangle_rust", Always("true", DEMANGLING)),
    ("symbols.demangle_cpp", Always("true", DEMANGLING)),
    ("symbols.include_kernel", HiddenIf("false", KERNEL)),
    ("filters.min_samples", Key("agent.min_samples")),
    ("filters.exclude_patterns", Hidden),
    ("java", Nothing(JAVA)),
    ("java_ebpf", Nothing(JAVA)),
    ("python", Nothing(PYTHON)),
];

/// The keys that Telegen's code reads, below `profiling`.
const READ: &[(&str, Meaning)] = &[
    ("enabled", Key("agent.sampling")),
    ("collection_interval", Key("agent.interval")),
    ("upload_interval", Nothing(UPLOAD)),
    ("cpu.enabled", Kinds(&["cpu"])),
    ("cpu.sample_rate", Key("agent.rate")),
    (
        "cpu.max_stack_depth",
        Nothing("stacks have up to 256 frames"),
    ),
    ("off_cpu.enabled", Kinds(&["off-cpu"])),
    ("off_cpu.min_block_time_ns", ShortestWait),
    ("mutex.enabled", Kinds(&["lock"])),
    ("mutex.contention_threshold_ns", ShortestWait),
    ("wall.enabled", Kinds(&["cpu", "off-cpu"])),
    (
        "wall.sample_rate",
        Nothing("time on and off CPU has one rate, agent.rate"),
    ),
    ("memory.enabled", PartOfKind("alloc", MEMORY)),
    ("memory", Nothing(MEMORY)),
    ("block.enabled", Always("false", BLOCK)),
    ("block", Nothing(BLOCK)),
    ("goroutine.enabled", Always("false", GOROUTINE)),
    ("goroutine", Nothing(GOROUTINE)),
    ("java", Nothing(JAVA)),
    ("python", Nothing(PYTHON)),
    ("target_pid", Nothing(PIDS)),
    ("target_pids", Nothing(PIDS)),
    ("target_container_ids", Included("container_id")),
    ("target_process_names", Included("process_executable_name")),
    ("target_executables", Nothing(TARGET)),
    ("target_namespaces", Included("namespace")),
    ("target_deployments", Workloads("k8s.deployment.name")),
    ("target_daemonsets", Workloads("k8s.daemonset.name")),
    ("target_statefulsets", Workloads("k8s.statefulset.name")),
    ("target_labels", PodLabels),
    ("exclude_namespaces", Excluded("namespace")),
    ("exclude_kernel", HiddenIf("true", KERNEL)),
    (
        "exclude_user",
        Always(
            "false",
            "user frames are always kept; a question leaves them out",
        ),
    ),
    (
        "symbols.cache_size",
        Nothing("agent.symbol_cache is a size in bytes, not a count of entries"),
    ),
    (
        "symbols.debug_info_enabled",
        Always("true", "DWARF is always read where it is"),
    ),
    ("symbols.demangling_enabled", Always("true", DEMANGLING)),
    (
        "symbols.go_symbols",
        Always("true", "Go's own tables are always read"),
    ),
    (
        "symbols.kernel_symbols",
        Always("true", "the kernel's frames always have names"),
    ),
    ("symbols.perf_map_paths", Nothing(PERF_MAPS)),
    ("symbols.perf_map_recursive", Always("false", PERF_MAPS)),
    (
        "output_format",
        Always(
            "pprof",
            "the agent sends OTLP; `candela convert` and `record -o` write any format",
        ),
    ),
    (
        "aggregate_stacks",
        Always(
            "true",
            "equal stacks are always added up; agent.timestamps keeps the time of each",
        ),
    ),
    ("metrics_export.enabled", Always("false", METRICS)),
    ("metrics_export", Nothing(METRICS)),
];

/// What else belongs to profiling, at the root.
const ELSEWHERE: &[(&str, Meaning)] = &[
    (
        "otlp.profiles.enabled",
        Always(
            "true",
            "`candela agent` sends what it samples; do not start it, or set agent.sampling to false",
        ),
    ),
    ("otlp.profiles.endpoint", Server),
    ("java_ebpf", Nothing(JAVA)),
    (
        "log_export",
        Nothing("profiles are sent as OTLP profiles, not as log records"),
    ),
    ("profiles.jfr", Nothing(JFR)),
    ("pipelines.jfr", Nothing(JFR)),
];

const UPLOAD: &str = "each profile is sent when it is complete, every agent.interval";
const MEMORY: &str = "kind alloc has the heaps of Go programs, allocated and in use, and those of services that start with the library of `candela preload`; `candela record -e alloc -- CMD` samples other programs; those that offer profiles of their own are scraped, agent.scrape";
const BLOCK: &str = "only the program itself knows: scrape its /debug/pprof/block, agent.scrape; waits of all programs are kind off-cpu";
const GOROUTINE: &str =
    "only the program itself knows: scrape its /debug/pprof/goroutine, agent.scrape";
const DEMANGLING: &str = "names are always demangled";
/// Their time is then that of who called the kernel.
const KERNEL: &str = "kind:kernel";
const TARGET: &str =
    "agent.include takes selectors such as {namespace=\"x\", pod=~\"web-.*\"}: name these there";
pub(super) const WORKLOAD: &str = "set in agent.include; pods have workloads where agent.kubernetes.node is set, in builds with the feature kube";
pub(super) const LABELS: &str = "left out: name the keys in agent.kubernetes.pod_labels and {k8s.pod.label.KEY=\"x\"} in agent.include";
const PIDS: &str =
    "a process is new with each start: agent.include chooses by service, executable or container";
const PERF_MAPS: &str =
    "maps are found where compilers write them, /tmp/perf-PID.map of the process";
const METRICS: &str =
    "there are no metrics made of profiles; `candela query series` has their course";
const JAVA: &str = "Java has no runtime support in this version: its threads are sampled, and named where /tmp/perf-PID.map is written";
const JFR: &str = "recordings are not watched for; `candela push FILE` sends them";
const PYTHON: &str = "Python's own frames come with a later version; its interpreter is sampled";

/// The sections of Telegen's files, and their keys.
const FORMS: [(&str, &[(&str, Meaning)]); 3] = [
    ("agent.profiling.", DOCUMENTED),
    ("profiling.", READ),
    ("", ELSEWHERE),
];

/// What a key is to us; none when it is no key of profiling that is known. A key stands for those below it
/// that are not named.
pub(super) fn meaning(path: &str) -> Option<Meaning> {
    FORMS.iter().find_map(|(prefix, keys)| {
        let path = path.strip_prefix(prefix)?;
        let exact = keys.iter().find(|(key, _)| *key == path);
        let above = || {
            keys.iter().find(|(key, _)| {
                let below = path.strip_prefix(key);
                below.is_some_and(|below| below.starts_with('.'))
            })
        };
        exact.or_else(above).map(|(_, meaning)| *meaning)
    })
}

/// Whether a path that is not known is one of profiling: everything else of a Telegen's file is not ours.
pub(super) fn is_of_profiling(path: &str) -> bool {
    FORMS
        .iter()
        .any(|(prefix, _)| !prefix.is_empty() && path.starts_with(prefix))
}

/// The key that a variable sets: `TELEGEN_AGENT_PROFILING_OFF_CPU` is `agent.profiling.off_cpu`.
pub(super) fn path_of_variable(name: &str) -> Option<String> {
    let paths = FORMS.iter().flat_map(|(prefix, keys)| {
        let keys = keys.iter();
        keys.map(move |(key, _)| format!("{prefix}{key}"))
    });
    let variable = |path: &String| {
        let path = path.replace('.', "_").to_uppercase();
        format!("{PREFIX_OF_VARIABLES}{path}")
    };
    paths.into_iter().find(|path| variable(path) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_for_those_below_them() {
        assert_eq!(
            meaning("profiling.memory.enabled"),
            Some(PartOfKind("alloc", MEMORY))
        );
        assert_eq!(
            meaning("profiling.memory.min_alloc_size"),
            Some(Nothing(MEMORY))
        );
        assert_eq!(
            meaning("agent.profiling.java.jfr_enabled"),
            Some(Nothing(JAVA))
        );
        assert_eq!(meaning("profiling.memory_x"), None);
        assert_eq!(meaning("network.enabled"), None);
        assert!(is_of_profiling("profiling.colour") && !is_of_profiling("network.enabled"));
    }

    #[test]
    fn each_variable_of_telegen_has_its_key() {
        let names = [
            "ENABLED",
            "SAMPLE_RATE",
            "CPU",
            "OFF_CPU",
            "MEMORY",
            "DURATION",
            "UPLOAD_INTERVAL",
        ];
        for name in names {
            let path = path_of_variable(&format!("TELEGEN_AGENT_PROFILING_{name}"));
            let expected = format!("agent.profiling.{}", name.to_lowercase());
            assert_eq!(path, Some(expected), "{name}");
        }
        for name in ["ENABLED", "ENDPOINT"] {
            let path = path_of_variable(&format!("TELEGEN_OTLP_PROFILES_{name}"));
            let expected = format!("otlp.profiles.{}", name.to_lowercase());
            assert_eq!(path, Some(expected), "{name}");
        }
        assert_eq!(path_of_variable("TELEGEN_LOG_LEVEL"), None);
    }

    #[test]
    fn what_keys_become_are_keys() {
        for (_, keys) in FORMS {
            for (name, meaning) in keys {
                if let Key(path) = meaning {
                    assert!(
                        crate::config::key_search::find(path).is_some(),
                        "{name}: {path}"
                    );
                }
            }
        }
    }
}
