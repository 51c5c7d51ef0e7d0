//! What a refusal of the kernel means, and what the user can do about it.

use libbpf_rs::ErrorKind;

use crate::Error;
use crate::host;
use crate::privileges::Capability;

/// The first kernel on which perf events may look into maps that grow. The helper `bpf_loop` is there since 5.17.
pub(crate) const FIRST_KERNEL: (u32, u32) = (6, 1);

/// What the verifier says of a call of the helper `bpf_loop` where there is none, and of a map that grows. The name of
/// the helper alone tells nothing: any log of the verifier has it, whatever was refused.
const WORDS_OF_OLD_KERNELS: [&str; 3] = [
    "unknown#181",
    "invalid func unknown",
    "can only use preallocated hash map",
];

/// What it says of reading the kernel's memory where lockdown forbids it: `bpf_probe_read_kernel`, or what libbpf takes
/// in its place. Both helpers are there on all kernels that have anything of what we need.
const WORDS_OF_LOCKDOWN: [&str; 2] = [
    "unknown func bpf_probe_read",
    "cannot use helper bpf_probe_read",
];

/// How much of the messages an error has: what the verifier minds, its summary, and libbpf's own words.
const KEPT_LINES: usize = 4;

/// What libbpf says before the name of a tracepoint that the kernel does not have.
const NO_SUCH_TRACEPOINT: &str = "failed to find kernel BTF type ID of '";

/// What the kernel's error number does not tell.
#[derive(Debug)]
pub(crate) struct HostFacts {
    pub(crate) kernel_release: String,
    pub(crate) kernel_version: Option<(u32, u32)>,
    pub(crate) missing_capability: Option<&'static str>,
    pub(crate) lockdown_mode: Option<String>,
    pub(crate) locked_memory_limit: String,
}

/// The reason behind an error of libbpf, by its kind, libbpf's messages and the host.
pub(crate) fn explained(source: libbpf_rs::Error, messages: &str, host: &HostFacts) -> Error {
    let too_old = || Error::KernelTooOld {
        release: host.kernel_release.clone(),
        needed: "6.1",
        feature: "walking stacks in BPF (bpf_loop, and maps that grow)",
    };
    let has_one_of = |words: &[&str]| words.iter().any(|text| messages.contains(text));
    if has_one_of(&WORDS_OF_LOCKDOWN) {
        return Error::Lockdown;
    }
    if has_one_of(&WORDS_OF_OLD_KERNELS) {
        return too_old();
    }
    if let Some(name) = missing_tracepoint(messages) {
        return Error::NoTracepoint { name };
    }
    match source.kind() {
        ErrorKind::PermissionDenied => {
            if let Some(capability) = host.missing_capability {
                return Error::MissingCapability {
                    capability,
                    action: "load BPF programs",
                };
            }
            if host.lockdown_mode.as_deref() == Some("confidentiality") {
                return Error::Lockdown;
            }
            not_loaded(source, messages)
        }
        ErrorKind::Unsupported => Error::NoBpf,
        ErrorKind::OutOfMemory => Error::MemoryLock {
            map: messages.split('\'').nth(1).unwrap_or("unknown").to_owned(),
            limit: host.locked_memory_limit.clone(),
        },
        _ if host.kernel_version.is_some_and(|it| it < FIRST_KERNEL) => too_old(),
        _ => not_loaded(source, messages),
    }
}

fn not_loaded(source: libbpf_rs::Error, messages: &str) -> Error {
    Error::Load {
        source,
        messages: last_words(messages),
    }
}

/// One line of what libbpf and the verifier said, which lists the whole program before it comes to the point:
/// instructions begin with their number, source lines with a semicolon.
fn last_words(messages: &str) -> String {
    let is_listed = |first: char| first.is_ascii_digit() || first == ';';
    let is_told = |line: &&str| !line.is_empty() && !line.starts_with(is_listed);
    let lines: Vec<&str> = messages.lines().map(str::trim).filter(is_told).collect();
    lines[lines.len().saturating_sub(KEPT_LINES)..].join("; ")
}

/// The tracepoint that libbpf looked for in vain among the kernel's types.
fn missing_tracepoint(messages: &str) -> Option<String> {
    let (_, after) = messages.split_once(NO_SUCH_TRACEPOINT)?;
    let (name, _) = after.split_once('\'')?;
    Some(name.to_owned())
}

// === impl HostFacts ===

impl HostFacts {
    pub(crate) fn read() -> HostFacts {
        HostFacts {
            kernel_release: host::kernel_release(),
            kernel_version: host::kernel_version(),
            missing_capability: Capability::first_missing(),
            lockdown_mode: host::lockdown_mode(),
            locked_memory_limit: host::locked_memory_limit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current_host() -> HostFacts {
        HostFacts {
            kernel_release: "6.1.0-41-amd64".to_owned(),
            kernel_version: Some((6, 1)),
            missing_capability: None,
            lockdown_mode: Some("none".to_owned()),
            locked_memory_limit: "8388608".to_owned(),
        }
    }

    fn explain(error_number: i32, messages: &str, host: &HostFacts) -> String {
        let source = libbpf_rs::Error::from_raw_os_error(error_number);
        explained(source, messages, host).to_string()
    }

    /// The verifier's words for a helper that this kernel does not have.
    fn words_for_an_unknown_helper() -> Option<String> {
        const CALL: u8 = 0x85;
        const EXIT: u8 = 0x95;
        const NO_SUCH_HELPER: i32 = 100_000;
        let instruction = |code, imm| libbpf_sys::bpf_insn {
            code,
            imm,
            ..Default::default()
        };
        let program = [instruction(CALL, NO_SUCH_HELPER), instruction(EXIT, 0)];
        let mut log = vec![0_u8; 64 * 1024];
        let mut options = libbpf_sys::bpf_prog_load_opts {
            sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as u64,
            log_level: 1,
            log_size: u32::try_from(log.len()).expect("a short log"),
            log_buf: log.as_mut_ptr().cast(),
            ..Default::default()
        };
        // SAFETY: The pointers are of a program of that many instructions, terminated strings and a log
        // buffer of `log_size` bytes, and all of them outlive the call.
        let descriptor = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_TRACEPOINT,
                c"unknown_helper".as_ptr(),
                c"GPL".as_ptr(),
                program.as_ptr(),
                program.len() as u64,
                &mut options,
            )
        };
        assert!(descriptor < 0, "the kernel has helper {NO_SUCH_HELPER}");
        let text = log.split(|&byte| byte == 0).next()?;
        (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
    }

    #[test]
    fn an_old_kernel_is_the_reason_for_what_has_no_other() {
        let old_host = HostFacts {
            kernel_release: "5.10.0".to_owned(),
            kernel_version: Some((5, 10)),
            ..current_host()
        };
        assert!(explain(libc::EINVAL, "", &old_host).contains("5.10.0 is too old"));
        let other = explain(libc::EINVAL, "R1 invalid mem access", &current_host());
        assert!(other.contains("R1 invalid mem access"), "{other}");
    }

    #[test]
    fn of_a_listed_program_only_the_end_is_told() {
        let messages = "libbpf: prog 'growth_end': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\n\
                        ; if (!scratch) @ growth.h:62\n1: (15) if r0 == 0x0 goto pc+1\n\
                        R1 invalid mem access 'scalar'\nprocessed 2 insns (limit 1000000)\n\
                        -- END PROG LOAD LOG --; libbpf: failed to load object";
        let told = explain(libc::EACCES, messages, &current_host());
        let (_, words) = told.split_once("last messages: ").expect("messages");
        assert_eq!(
            words,
            "libbpf: prog 'growth_end': -- BEGIN PROG LOAD LOG --; R1 invalid mem access 'scalar'; processed 2 \
             insns (limit 1000000); -- END PROG LOAD LOG --; libbpf: failed to load object"
        );
    }

    #[test]
    fn a_tracepoint_that_is_not_there_is_named() {
        let messages = "libbpf: prog 'block_io_begin': failed to find kernel BTF type ID of \
                        'block_io_start': -ESRCH; libbpf: failed to load object";
        let told = explain(libc::ESRCH, messages, &current_host());
        assert!(told.contains("no tracepoint block_io_start"), "{told}");
    }

    #[test]
    fn what_is_not_permitted_names_what_is_missing() {
        let unprivileged = HostFacts {
            missing_capability: Some("CAP_BPF"),
            ..current_host()
        };
        assert!(explain(libc::EPERM, "", &unprivileged).contains("CAP_BPF is missing"));
        let locked = HostFacts {
            lockdown_mode: Some("confidentiality".to_owned()),
            ..current_host()
        };
        assert!(explain(libc::EPERM, "", &locked).contains("lockdown=integrity"));
        // As Linux 5.10 to 7.3 say it, and securityfs need not be mounted.
        for words in [
            "unknown func bpf_probe_read_kernel#113",
            "program of this type cannot use helper bpf_probe_read#4",
        ] {
            let messages = format!("R1=ctx()\n{words}\nprocessed 138 insns");
            let told = explain(libc::EINVAL, &messages, &current_host());
            assert!(told.contains("lockdown=integrity"), "{told}");
        }
    }

    #[test]
    fn memory_and_the_system_call_are_told() {
        let messages = "libbpf: map 'tables': failed to create: -ENOMEM";
        let memory = explain(libc::ENOMEM, messages, &current_host());
        assert!(memory.contains("BPF map tables"), "{memory}");
        assert!(memory.contains("8388608"), "{memory}");
        let absent = explain(libc::ENOSYS, "", &current_host());
        assert!(absent.contains("no bpf system call"), "{absent}");
    }

    mod host_tests {
        use super::*;

        #[test]
        fn a_kernel_without_bpf_loop_is_told_by_the_words_of_the_verifier() {
            let Some(words) = words_for_an_unknown_helper() else {
                eprintln!("skipped: this process may not load BPF programs");
                return;
            };
            let old_host = HostFacts {
                kernel_release: "5.15.0-139-generic".to_owned(),
                // An old one would be told even without a word.
                kernel_version: None,
                ..current_host()
            };
            assert_eq!(
                explain(libc::EINVAL, &words, &old_host),
                "kernel 5.15.0-139-generic is too old: walking stacks in BPF (bpf_loop, and maps that grow) \
                 needs Linux 6.1 or newer"
            );
        }
    }
}
