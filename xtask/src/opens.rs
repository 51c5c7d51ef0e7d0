//! Which code of the agent opens files, and who chose their paths. The agent may read every file of its host: a path that a
//! profiled process or a user chose is opened by `candela_symbols::foreign` only.
//!
//! This is a look at the text. It reminds whoever adds an open of the question; it does not keep anybody from evading it.

use std::path::Path;
use std::path::PathBuf;

/// Crates that run with the agent's rights.
const PRIVILEGED: [&str; 4] = [
    "crates/ebpf/src",
    "crates/symbols/src",
    "crates/agent/src",
    "crates/daemons/src",
];

/// The module that opens what others chose: a file and a folder.
const FOREIGN: [&str; 2] = [
    "crates/symbols/src/foreign.rs",
    "crates/symbols/src/foreign",
];

/// How files are opened.
const OPENS: [&str; 15] = [
    "File::open(",
    "File::create",
    "File::options(",
    "OpenOptions",
    "fs::read(",
    "fs::read_to_string(",
    "fs::read_dir(",
    "fs::copy(",
    "fs::open(",
    "fs::openat",
    ".read_dir()",
    "open_in_root(",
    ".open_path(",
    // Names that could stand alone afterwards.
    "use std::fs::read",
    "use rustix::fs::open",
];

/// Entries of `/proc/PID` that lead out of `/proc`, and those that are in the process's memory, which may never answer.
const LINKS_OUT: [&str; 8] = [
    "/exe",
    "/root",
    "/cwd",
    "/fd/",
    "/map_files/",
    "/mem\"",
    "/environ",
    "/cmdline",
];

/// Files of code that open others, and who chose the paths. What stands as `"/proc/…"` or `"/sys/…"` in the call itself needs
/// no entry.
const ALLOWED: [(&str, &str); 39] = [
    ("crates/agent/src/allocations/leftovers.rs", OURS),
    ("crates/agent/src/allocations/library.rs", OURS),
    ("crates/agent/src/allocations/unseen.rs", OPERATOR),
    ("crates/agent/src/doctor/mod.rs", KERNEL),
    ("crates/agent/src/export/spool.rs", OURS),
    ("crates/agent/src/labels/facts.rs", KERNEL),
    ("crates/agent/src/labels/kubernetes.rs", OPERATOR),
    ("crates/agent/src/processes/listing.rs", KERNEL),
    ("crates/agent/src/processes/memory.rs", KERNEL),
    ("crates/agent/src/processes/memory/page_map.rs", KERNEL),
    ("crates/agent/src/processes/tasks.rs", KERNEL),
    ("crates/agent/src/scrape/credentials.rs", OPERATOR),
    ("crates/agent/src/scrape/fetch.rs", OPERATOR),
    ("crates/agent/src/scrape/target_files.rs", OPERATOR),
    ("crates/daemons/src/outbox/folder.rs", OURS),
    ("crates/daemons/src/outbox/mod.rs", OURS),
    ("crates/daemons/src/outbox/writing.rs", OURS),
    ("crates/daemons/src/perf_tool/cgroup.rs", KERNEL),
    ("crates/daemons/src/perf_tool/program.rs", OURS),
    ("crates/daemons/src/perf_tool/recording.rs", OURS),
    ("crates/daemons/src/perf_tool/scripting.rs", OURS),
    ("crates/daemons/src/supervisor/last_document.rs", OURS),
    ("crates/daemons/src/supervisor/outlets.rs", OPERATOR),
    ("crates/daemons/src/supervisor/own_labels.rs", OPERATOR),
    ("crates/ebpf/src/bpf_map.rs", KERNEL),
    ("crates/ebpf/src/sampler.rs", OPERATOR),
    ("crates/ebpf/src/tracefs.rs", KERNEL),
    ("crates/symbols/src/archive.rs", OURS),
    ("crates/symbols/src/archive/incoming.rs", OURS),
    ("crates/symbols/src/archive/record.rs", OURS),
    ("crates/symbols/src/cache.rs", OPERATOR),
    ("crates/symbols/src/debug_files.rs", OPERATOR),
    ("crates/symbols/src/debuginfod/disk.rs", OURS),
    ("crates/symbols/src/kallsyms.rs", KERNEL),
    ("crates/symbols/src/object_file.rs", OPERATOR),
    ("crates/symbols/src/rooted.rs", OPERATOR),
    ("crates/symbols/src/source_roots.rs", OPERATOR),
    ("crates/symbols/src/symbolizer.rs", OURS),
    ("crates/symbols/src/vdso.rs", KERNEL),
];

/// Whoever runs the agent gives the path.
const OPERATOR: &str = "operator";
/// The path is in a folder that only we write to.
const OURS: &str = "ours";
/// The kernel makes the file.
const KERNEL: &str = "kernel";

/// A line of code that opens a file, by its number.
type Open<'a> = (usize, &'a str);

/// Code that opens files and is not in the table, and entries of the table that nothing needs.
pub(crate) fn check(files: &[PathBuf], read: impl Fn(&Path) -> String) -> Vec<String> {
    let is_code = |path: &&PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs")
            && PRIVILEGED.iter().any(|folder| path.starts_with(folder))
            && !FOREIGN.iter().any(|place| path.starts_with(place))
            && !path.ends_with("tests.rs")
    };
    let mut findings = Vec::new();
    let mut unneeded: Vec<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    for path in files.iter().filter(is_code) {
        let text = read(path);
        let opens = opens_in(&text);
        if opens.is_empty() {
            continue;
        }
        let is_allowed = unneeded.len();
        unneeded.retain(|allowed| Path::new(allowed) != path);
        if unneeded.len() < is_allowed {
            continue;
        }
        let path = path.display();
        findings.extend(opens.iter().map(|(number, line)| {
            format!("{path}:{number}: opens a file with the agent's rights: {line}: if others chose its path, use candela_symbols::foreign; else say in xtask/src/opens.rs who did")
        }));
    }
    let unneeded = unneeded.iter();
    findings.extend(unneeded.map(|path| format!("xtask/src/opens.rs: {path} opens no such file")));
    findings
}

fn opens_in(text: &str) -> Vec<Open<'_>> {
    // Tests open what they made; their module is the last of a file.
    let tests = text.rfind("#[cfg(test)]\nmod tests");
    let code = tests.map_or(text, |start| &text[..start]);
    let lines = (1..).zip(code.lines().map(str::trim));
    let is_open = |line: &str| {
        let opens = OPENS.iter().any(|form| line.contains(form)) && !line.starts_with("//");
        opens && !is_of_kernel(line)
    };
    lines.filter(|(_, line)| is_open(line)).collect()
}

fn is_of_kernel(line: &str) -> bool {
    let places = ["\"/proc/", "\"/proc\"", "\"/sys/"];
    let is_in_kernel = places.iter().any(|place| line.contains(place));
    is_in_kernel && !LINKS_OUT.iter().any(|link| line.contains(link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_is_seen_unless_the_kernel_makes_the_file() {
        let opens = |line: &str| !opens_in(line).is_empty();
        assert!(opens("let file = File::open(path)?;"));
        assert!(opens("let object = ObjectFile::open(path)?;"));
        assert!(opens(
            "std::fs::read_to_string(format!(\"/tmp/perf-{pid}.map\"))"
        ));
        assert!(opens("File::open(format!(\"/proc/{pid}/root/tmp/x\"))"));
        assert!(opens("fs::File::open(format!(\"/proc/{pid}/exe\"))"));
        assert!(!opens("fs::read(format!(\"/proc/{pid}/stat\"))"));
        assert!(!opens("fs::read_dir(\"/proc\")"));
        assert!(!opens("// File::open(path)"));
        assert!(opens(
            "#[cfg(test)]\nuse a::B;\nlet file = File::open(path)?;"
        ));
        assert!(!opens(
            "#[cfg(test)]\nmod tests {\nlet file = File::open(path)?;"
        ));
        assert!(opens("cache.open_path(path, root)"));
    }

    #[test]
    fn the_table_is_kept() {
        let files = [
            PathBuf::from("crates/agent/src/new.rs"),
            PathBuf::from(ALLOWED[0].0),
            PathBuf::from("crates/symbols/src/foreign.rs"),
            PathBuf::from("crates/cli/src/any.rs"),
        ];
        let findings = check(&files, |_| "File::open(path)".to_owned());
        let (of_code, of_table): (Vec<_>, Vec<_>) = findings
            .iter()
            .partition(|finding| finding.starts_with("crates/"));
        assert_eq!(of_code.len(), 1, "{of_code:?}");
        assert!(of_code[0].starts_with("crates/agent/src/new.rs:1:"));
        assert_eq!(of_table.len(), ALLOWED.len() - 1);
    }
}
