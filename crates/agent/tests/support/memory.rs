//! What `programs/allocate.c` allocates, and what profiles say of it.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

use crate::support;
use candela_model::Profile;

/// What a function has allocated, and what of it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
    pub(crate) objects_in_use: i64,
    pub(crate) bytes_in_use: i64,
}

/// A program that does something for each line, and ends with the test.
pub(crate) struct Service {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

// === impl Service ===

impl Service {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it was just built");
        let stdout = child.stdout.take().expect("piped");
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout),
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn expect(&mut self, wanted: &str) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        assert_eq!(line, wanted);
    }

    /// Lets it do it once.
    pub(crate) fn go_on(&mut self) {
        let stdin = self.stdin.as_mut().expect("it has not ended");
        stdin.write_all(b"\n").expect("it reads");
        self.expect("done\n");
    }

    /// There are no more lines.
    pub(crate) fn end(&mut self) {
        self.stdin = None;
        let status = self.child.wait().expect("it is our child");
        assert!(status.success(), "{status:?}");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Should it have ended, there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Memory ===

impl Memory {
    pub(crate) fn of(objects: i64, bytes: i64, objects_in_use: i64, bytes_in_use: i64) -> Self {
        Self {
            objects,
            bytes,
            objects_in_use,
            bytes_in_use,
        }
    }
}

/// What is allocated by stacks that begin in `function`: nothing of the library or of `malloc` is left of them.
pub(crate) fn of_function(profile: &Profile, function: &str) -> Memory {
    let sum = |sample_type: &str, unit: &str| {
        let id = format!("memory:{sample_type}:{unit}:space:bytes");
        let series = profile.series.iter();
        let of_type = series.filter(|series| series.profile_type.to_string() == id);
        let samples = of_type.flat_map(|series| &series.samples);
        let of_function = samples.filter(|sample| {
            let leaf = profile.stacks.get(sample.stack).first();
            let mut names = leaf
                .into_iter()
                .flat_map(|&it| support::names_of(profile, it));
            names.any(|name| name == function)
        });
        of_function.map(|sample| sample.value).sum()
    };
    Memory {
        objects: sum("alloc_objects", "count"),
        bytes: sum("alloc_space", "bytes"),
        objects_in_use: sum("inuse_objects", "count"),
        bytes_in_use: sum("inuse_space", "bytes"),
    }
}

pub(crate) fn build(directory: &Path) -> (PathBuf, PathBuf) {
    let (program, plugin) = (directory.join("allocate"), directory.join("plugin.so"));
    let flags = ["-O2", "-g", "-fomit-frame-pointer", "-pthread"];
    let compile = |source: &str, more: &[&str], output: &Path| {
        let mut arguments: Vec<PathBuf> = flags.iter().chain(more).map(PathBuf::from).collect();
        arguments.extend([
            "-o".into(),
            output.to_owned(),
            support::source(source),
            "-ldl".into(),
        ]);
        support::run("gcc", arguments);
    };
    compile("allocate.c", &[], &program);
    compile("allocating_plugin.c", &["-shared", "-fPIC"], &plugin);
    (program, plugin)
}

/// A profile in which all of `few`, without what its children have made, was allocated so often, and in use so often.
#[track_caller]
pub(crate) fn assert_few(profile: &Profile, allocated: i64, in_use: i64) {
    let expected = [
        // The forked process frees its copies of ten of them.
        ("small", Memory::of(20, 20 * 48, 19, 19 * 48)),
        ("grow", Memory::of(10, 55_000, 1, 10_000)),
        (
            "align",
            Memory::of(4, 4096 + 640 + 6400 + 64_000, 3, 4096 + 6400 + 64_000),
        ),
        ("threaded", Memory::of(40, 40 * 70, 36, 36 * 70)),
        ("plug", Memory::of(6, 6 * 90, 5, 5 * 90)),
    ];
    for (function, memory) in expected {
        let expected = Memory::of(
            allocated * memory.objects,
            allocated * memory.bytes,
            in_use * memory.objects_in_use,
            in_use * memory.bytes_in_use,
        );
        assert_eq!(of_function(profile, function), expected, "{function}");
    }
}

/// A profile in which all of `many` was allocated, sampled at this interval.
pub(crate) fn assert_many(profile: &Profile, interval: u32) {
    let functions = [
        ("small", 48, 150_000, 37_500),
        ("medium", 1000, 20_000, 10_000),
        ("large", 30_000, 3000, 0),
    ];
    for (function, size, objects, in_use) in functions {
        let memory = of_function(profile, function);
        let interval = f64::from(interval);
        assert_near(memory.objects, objects, size, interval, 1);
        assert_near(memory.bytes, objects, size, interval, size);
        if in_use == 0 {
            assert_eq!((memory.objects_in_use, memory.bytes_in_use), (0, 0));
            continue;
        }
        assert_near(memory.objects_in_use, in_use, size, interval, 1);
        assert_near(memory.bytes_in_use, in_use, size, interval, size);
    }
}

/// What the sampling error of a sum may be: four standard errors, of objects of one size.
fn assert_near(estimated: i64, objects: i64, size: i64, interval: f64, unit: i64) {
    let chance = 1.0 - (-(size as f64) / interval).exp();
    let samples = objects as f64 * chance;
    let standard_error = ((1.0 - chance) / samples).sqrt();
    let truth = (objects * unit) as f64;
    let off_by = (estimated as f64 - truth) / truth;
    assert!(
        off_by.abs() < 4.0 * standard_error,
        "{estimated} instead of {truth}: off by {off_by:.4}, of {samples:.0} samples of {size} bytes"
    );
}
