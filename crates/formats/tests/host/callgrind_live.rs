//! Programs under valgrind, with what callgrind_annotate says of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::callgrind_costs::own_costs;
use crate::common::callgrind_costs::tree;
use crate::common::callgrind_costs::written;
use candela_formats::Format;
use candela_formats::ReadOptions;
use candela_formats::detect;
use candela_formats::read_callgrind;
use candela_model::Profile;

/// Own cost by `file:function` as callgrind_annotate tells it, and the program's total.
fn annotated(file: &Path) -> (BTreeMap<String, Vec<i64>>, Vec<i64>) {
    let output = Command::new("callgrind_annotate")
        .args(["--threshold=100", "--show-percs=no", "--auto=no"])
        .arg(file)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let mut functions: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut totals = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim_start();
        let mut numbers = Vec::new();
        while let Some((word, behind)) = rest.split_once(' ') {
            let number = if word == "." {
                Ok(0)
            } else {
                word.replace(',', "").parse()
            };
            let Ok(number) = number else { break };
            numbers.push(number);
            rest = behind.trim_start();
        }
        if numbers.is_empty() {
            continue;
        }
        if rest.starts_with("PROGRAM TOTALS") {
            totals = numbers;
        } else if rest.contains(':') {
            let name = rest.split(" [").next().unwrap();
            functions.insert(name.to_owned(), numbers);
        }
    }
    functions.retain(|_, values| values.iter().any(|value| *value != 0));
    (functions, totals)
}

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <stdio.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int odd(int n);
static int even(int n) { return n == 0 ? 1 : odd(n - 1); }
static int odd(int n) { return n == 0 ? 0 : even(n - 1); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
  int values[200];
  for (int i = 0; i < 200; i++) values[i] = (i * 7919) % 211;
  qsort(values, 200, sizeof(int), compare);
  printf("%d %d %d\n", fib(12), even(31), values[5]);
  return 0;
}
"#;

#[test]
fn valgrind_and_we_count_the_same() {
    let has_tools = ["valgrind", "callgrind_annotate", "gcc"]
        .iter()
        .all(|tool| Command::new(tool).arg("--version").output().is_ok());
    if !has_tools {
        eprintln!("skipped: valgrind or gcc is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("program.c"), PROGRAM).unwrap();
    let compiled = Command::new("gcc")
        .args(["-g", "-O1", "-fno-inline", "program.c", "-o", "program"])
        .current_dir(folder.path())
        .status();
    assert!(compiled.unwrap().success());
    let variants: [&[&str]; 3] = [
        &[],
        &[
            "--dump-instr=yes",
            "--collect-jumps=yes",
            "--cache-sim=yes",
            "--branch-sim=yes",
        ],
        &[
            "--compress-strings=no",
            "--compress-pos=no",
            "--separate-recs=3",
        ],
    ];
    for (number, variant) in variants.iter().enumerate() {
        let out = path(&format!("callgrind.out.{number}"));
        let run = Command::new("valgrind")
            .arg("--tool=callgrind")
            .arg(format!("--callgrind-out-file={}", out.display()))
            .args(*variant)
            .arg(path("program"))
            .output()
            .unwrap();
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let bytes = std::fs::read(&out).unwrap();
        assert_eq!(detect(&bytes), Some(Format::Callgrind));
        let (profile, report) = read_callgrind(&bytes[..], &ReadOptions::default()).unwrap();
        println!(
            "{variant:?}: {} samples, {:?}",
            profile.sample_count(),
            report.notes
        );
        assert_eq!(report.count("totals_differ"), 0);
        assert_eq!(report.count("lines_not_understood"), 0);
        let (functions, totals) = annotated(&out);
        let ours = own_costs(&profile);
        assert!(functions.len() > 50);
        assert_eq!(ours, functions, "{variant:?}");
        for (series, total) in profile.series.iter().zip(&totals) {
            // callgrind_annotate shows the summary, which counts some exits more than the lines do.
            assert!((series.total() - total).abs() <= 10, "{variant:?}");
        }
        check_inclusive(&profile, &out);
        let again = path(&format!("written.{number}"));
        std::fs::write(&again, written(&profile)).unwrap();
        let (functions_again, totals_again) = annotated(&again);
        assert_eq!(functions_again, functions, "{variant:?}");
        let own_totals: Vec<i64> = profile.series.iter().map(|series| series.total()).collect();
        assert_eq!(totals_again, own_totals);
    }
}

/// Inclusive costs are near to what callgrind_annotate has: what several callers share is divided as
/// their calls cost, not as it was.
fn check_inclusive(profile: &Profile, file: &Path) {
    let output = Command::new("callgrind_annotate")
        .args([
            "--threshold=100",
            "--show-percs=no",
            "--auto=no",
            "--inclusive=yes",
        ])
        .arg(file)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let tree = tree(profile, 0);
    let rows = tree.function_table();
    for name in ["main", "qsort", "fib", "even", "printf"] {
        let line = text.lines().find(|line| {
            let name_and_object = line.rsplit_once(':').map_or("", |(_, name)| name);
            name_and_object.split(' ').next() == Some(name)
        });
        let Some(line) = line else { continue };
        let expected: i64 = line
            .split_whitespace()
            .next()
            .unwrap()
            .replace(',', "")
            .parse()
            .unwrap();
        let found = rows
            .iter()
            .filter(|row| tree.frames.name(row.frame) == name)
            .map(|row| row.total)
            .max();
        let difference = (found.unwrap_or(0) - expected).abs();
        assert!(
            difference * 50 <= expected,
            "{name}: {found:?} of {expected}"
        );
    }
}
