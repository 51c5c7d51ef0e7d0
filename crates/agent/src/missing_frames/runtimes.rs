//! Runtimes that compile or interpret code, and the flags by which their code gets names and frame pointers.

/// A runtime.
#[derive(Debug)]
pub(super) struct Runtime {
    /// What it is called.
    pub(super) name: &'static str,
    /// How the name of its program or of its library begins.
    files: &'static [&'static str],
    /// How its functions get names.
    pub(super) names: &'static str,
    /// The argument that keeps frame pointers, and what to do where it is missing; `None` where they are always kept.
    pub(super) frame_pointers: Option<(&'static str, &'static str)>,
    /// Whether functions are run without being compiled, so that they have no frames.
    pub(super) is_interpreter: bool,
}

/// The more telling first: a JVM may have Python in it, and Node is found in programs of other names by its library.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "Java",
        files: &["libjvm.so", "libj9vm"],
        names: "`jcmd {pid} Compiler.perfmap` writes them now (JDK 17 or newer); at the end of the program: start it with \
                -XX:+DumpPerfMapAtExit",
        frame_pointers: Some((
            "-XX:+PreserveFramePointer",
            "start it with -XX:+PreserveFramePointer (without touching its command: JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer)",
        )),
        is_interpreter: false,
    },
    Runtime {
        name: ".NET",
        files: &["libcoreclr.so"],
        names: "start it with DOTNET_PerfMapEnabled=1 in its environment",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "Erlang",
        files: &["beam.smp", "beam.jit.smp"],
        names: "start it with `erl +JPperf map` (Erlang/OTP 24 or newer; of releases in vm.args)",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "PHP",
        files: &["php", "libphp"],
        names: "start it with -d opcache.jit_debug=0x10",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "Ruby",
        files: &["ruby", "libruby"],
        names: "start it with RUBYOPT='--yjit --yjit-perf=map' in its environment (Ruby 3.3 or newer)",
        frame_pointers: None,
        is_interpreter: true,
    },
    Runtime {
        name: "Node.js",
        files: &["node", "nodejs", "libnode.so"],
        names: "start it with NODE_OPTIONS='--perf-basic-prof-only-functions --interpreted-frames-native-stack' in its \
                environment",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "Deno",
        files: &["deno"],
        names: "start it with --v8-flags=--perf-basic-prof-only-functions,--interpreted-frames-native-stack",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "Chromium",
        files: &["chromium", "chrome", "electron"],
        names: "start it with --no-sandbox --js-flags=--perf-basic-prof-only-functions",
        frame_pointers: None,
        is_interpreter: false,
    },
    Runtime {
        name: "Python",
        files: &["libpython3", "python3", "python"],
        names: "start it with `python3 -X perf` or PYTHONPERFSUPPORT=1 in its environment (Python 3.12 or newer)",
        frame_pointers: None,
        is_interpreter: true,
    },
];

/// What is said of code that nobody knows the compiler of.
pub(super) const UNKNOWN: Runtime = Runtime {
    name: "a runtime",
    files: &[],
    names: "see whether its runtime can write a perf map (/tmp/perf-PID.map)",
    frame_pointers: None,
    is_interpreter: false,
};

/// The runtime that a process runs, by the paths of its files, the program's first.
pub(super) fn runtime_of(paths: &[&str]) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| {
        let mut names = paths
            .iter()
            .map(|path| path.rsplit('/').next().unwrap_or(path));
        names.any(|name| runtime.has(name))
    })
}

impl Runtime {
    /// Libraries are told by how their names begin, programs by their names without the version.
    fn has(&self, file: &str) -> bool {
        self.files.iter().any(|wanted| {
            let rest = file.strip_prefix(wanted);
            let is_version = |rest: &str| {
                rest.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-')
            };
            rest.is_some_and(|rest| wanted.starts_with("lib") || is_version(rest))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_known_by_their_files() {
        let of = |paths: &[&str]| runtime_of(paths).map(|runtime| runtime.name);
        assert_eq!(
            of(&["/usr/bin/java", "/opt/jdk/lib/server/libjvm.so"]),
            Some("Java")
        );
        assert_eq!(of(&["/usr/bin/node"]), Some("Node.js"));
        assert_eq!(
            of(&["/usr/bin/python3.12", "/lib/libc.so.6"]),
            Some("Python")
        );
        assert_eq!(
            of(&["/srv/app", "/lib/libpython3.11.so.1.0"]),
            Some("Python")
        );
        assert_eq!(of(&["/usr/bin/php8.2"]), Some("PHP"));
        assert_eq!(of(&["/usr/bin/node_exporter", "/lib/libc.so.6"]), None);
    }
}
