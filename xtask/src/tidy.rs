//! Rules that a look at the text can check: file lengths, invariants of the house, links.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::opens;
use crate::process::output;
use crate::process::root;
use crate::process::say;
use crate::test_modules;
use crate::walks;

/// No file of code is longer: one idea a file.
const MOST_LINES: usize = 600;

/// Crates that never open a file or socket and never read a clock (invariant 1).
const PURE_CRATES: [&str; 5] = [
    "crates/model/src",
    "crates/formats/src",
    "crates/insight/src",
    "crates/fleet/src",
    "crates/demo/src",
];

/// What a pure crate must not mention.
const IMPURE_WORDS: [&str; 5] = [
    "std::fs",
    "std::net",
    "SystemTime::now",
    "Instant::now",
    "tokio::",
];

/// Crates whose root must forbid unsafe code (invariant 9 names the others).
const SAFE_CRATES: [&str; 15] = [
    "model", "formats", "unwind", "listen", "agent", "store", "insight", "fleet", "daemons",
    "query", "sql", "server", "demo", "cli", "testing",
];

/// Where unsafe code may stand (invariant 9).
const UNSAFE_CRATES: [&str; 3] = ["crates/ebpf", "crates/preload", "crates/symbols"];

/// What unsafe code begins with. In halves, or this file would be a finding.
const UNSAFE_FORMS: [&str; 5] = [
    concat!("unsafe", " {"),
    concat!("unsafe", " fn"),
    concat!("unsafe", " impl"),
    concat!("unsafe", " extern"),
    concat!("#[unsafe", "("),
];

/// The arrow family must have one version each (invariant 11).
const SINGLE_VERSION: [&str; 6] = [
    "arrow",
    "arrow-array",
    "arrow-schema",
    "parquet",
    "object_store",
    "datafusion",
];

/// Runs all checks and reports every finding.
pub(crate) fn tidy() -> Result<(), String> {
    let files = tracked_files()?;
    let mut findings = Vec::new();
    check_lengths(&files, &mut findings);
    check_pure_crates(&files, &mut findings);
    check_safe_crates(&mut findings);
    check_unsafe_code(&files, &mut findings);
    check_single_versions(&mut findings)?;
    check_links(&files, &mut findings);
    check_walks(&files, &mut findings);
    check_test_modules(&files, &mut findings);
    findings.extend(opens::check(&files, read));
    if findings.is_empty() {
        say("tidy: nothing to mend");
        return Ok(());
    }
    Err(findings.join("\n"))
}

fn tracked_files() -> Result<Vec<PathBuf>, String> {
    let list = output(
        "git",
        &["ls-files", "--cached", "--others", "--exclude-standard"],
    )?;
    Ok(list
        .lines()
        .map(PathBuf::from)
        .filter(|path| root().join(path).is_file())
        .collect())
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

fn check_lengths(files: &[PathBuf], findings: &mut Vec<String>) {
    let code = files
        .iter()
        .filter(|path| has_extension(path, &["rs", "ts", "tsx", "c", "h", "css", "mjs"]));
    for path in code {
        let lines = read(path).lines().count();
        if lines > MOST_LINES {
            findings.push(format!(
                "{}: {lines} lines, more than {MOST_LINES}: split it by idea",
                path.display()
            ));
        }
    }
}

fn check_pure_crates(files: &[PathBuf], findings: &mut Vec<String>) {
    let pure = files
        .iter()
        .filter(|path| PURE_CRATES.iter().any(|pure| path.starts_with(pure)))
        // Lists of names are no code.
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    for path in pure {
        let text = read(path);
        // Tests may read the corpus.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in IMPURE_WORDS.iter().filter(|word| code.contains(**word)) {
            findings.push(format!(
                "{}: {word} in a crate without IO and clocks (invariant 1)",
                path.display()
            ));
        }
    }
}

fn check_safe_crates(findings: &mut Vec<String>) {
    for name in SAFE_CRATES {
        let file = if name == "cli" { "main.rs" } else { "lib.rs" };
        let path = PathBuf::from(format!("crates/{name}/src/{file}"));
        if !read(&path).contains("#![forbid(unsafe_code)]") {
            findings.push(format!(
                "{}: lacks #![forbid(unsafe_code)] (invariant 9)",
                path.display()
            ));
        }
    }
}

/// Tests, examples, benches and build scripts are crates of their own, which a root's `forbid` does
/// not reach.
fn check_unsafe_code(files: &[PathBuf], findings: &mut Vec<String>) {
    let is_allowed = |path: &Path| UNSAFE_CRATES.iter().any(|folder| path.starts_with(folder));
    let code = files
        .iter()
        .filter(|path| has_extension(path, &["rs"]) && !is_allowed(path));
    for path in code {
        for (number, line) in (1..).zip(read(path).lines()) {
            let line = line.trim_start();
            let is_unsafe = UNSAFE_FORMS.iter().any(|form| line.contains(form));
            if is_unsafe && !line.starts_with("//") {
                let path = path.display();
                findings.push(format!("{path}:{number}: unsafe code (invariant 9)"));
            }
        }
    }
}

fn check_single_versions(findings: &mut Vec<String>) -> Result<(), String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).map_err(|error| error.to_string())?;
    for name in SINGLE_VERSION {
        let versions = lock
            .lines()
            .filter(|line| *line == format!("name = \"{name}\""))
            .count();
        if versions > 1 {
            findings.push(format!(
                "Cargo.lock: {versions} versions of {name} (invariant 11)"
            ));
        }
    }
    Ok(())
}

/// Relative links of Markdown files must lead somewhere.
fn check_links(files: &[PathBuf], findings: &mut Vec<String>) {
    for path in files.iter().filter(|path| has_extension(path, &["md"])) {
        let text = read(path);
        let folder = path.parent().unwrap_or(Path::new(""));
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets {
            let file = target.split('#').next().unwrap_or_default();
            let is_relative =
                !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:");
            if is_relative
                && !root().join(folder).join(file).is_file()
                && !root().join(folder).join(file).is_dir()
            {
                findings.push(format!(
                    "{}: link to {target} leads nowhere",
                    path.display()
                ));
            }
        }
    }
}

/// A walk in a browser that nothing runs.
fn check_walks(files: &[PathBuf], findings: &mut Vec<String>) {
    for walk in walks::uncalled(files, read) {
        findings.push(format!(
            "{}: no test runs it, no other walk imports it, and no README says how to: call it, or delete it",
            walk.display()
        ));
    }
}

/// A file of tests that never runs.
fn check_test_modules(files: &[PathBuf], findings: &mut Vec<String>) {
    for module in test_modules::undeclared(files, read) {
        let path = module.display();
        findings.push(format!("{path}: no `mod` names it, so it is in no program"));
    }
}
