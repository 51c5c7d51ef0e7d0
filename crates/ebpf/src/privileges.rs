//! The capabilities of capabilities(7) that take root's place. The units, images and tables of `deploy/` and
//! `docs/` name exactly these.

use std::path::PathBuf;

use crate::host;

/// What `candela doctor` says about every one of [`CAPABILITIES`]; `{program}` stands for the path of the program.
pub const GRANT: &str = "run as root, or: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog,cap_checkpoint_restore=ep {program}";

/// Its number, of linux/capability.h. It implies CAP_BPF and CAP_PERFMON, and alone lets watch functions of programs:
/// the kernel opens perf events of uprobes for no lesser one.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;

/// One of root's privileges that sampling needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// As in capabilities(7).
    pub name: &'static str,
    /// In lower case, as setcap(8) and `candela doctor` have it.
    pub short_name: &'static str,
    /// Its bit in the sets of /proc/PID/status.
    pub number: u32,
    /// Whether BPF is impossible without it (otherwise: what it shows is poorer).
    pub is_required: bool,
    /// What it is for.
    pub purpose: &'static str,
}

/// Every capability that `candela agent` uses and no other, each found by taking it away
/// (`crates/cli/tests/host/privileges.rs`). Recordings that watch functions of programs need CAP_SYS_ADMIN. What root has besides
/// is a turn before others on an overloaded host ([`Precedence`](crate::Precedence)), which a unit gets by `LimitNICE=`.
pub const CAPABILITIES: [Capability; 6] = [
    Capability {
        name: "CAP_BPF",
        short_name: "cap_bpf",
        number: 39,
        is_required: true,
        purpose: "load BPF programs",
    },
    Capability {
        name: "CAP_PERFMON",
        short_name: "cap_perfmon",
        number: 38,
        is_required: true,
        purpose: "observe all processes",
    },
    Capability {
        name: "CAP_SYS_PTRACE",
        short_name: "cap_sys_ptrace",
        number: 19,
        is_required: false,
        purpose: "open binaries of other users that have no path here (containers, deleted ones)",
    },
    Capability {
        name: "CAP_DAC_READ_SEARCH",
        short_name: "cap_dac_read_search",
        number: 2,
        is_required: false,
        purpose: "open binaries in folders that only other users may enter, and deleted ones",
    },
    Capability {
        name: "CAP_SYSLOG",
        short_name: "cap_syslog",
        number: 34,
        is_required: false,
        purpose: "name kernel functions",
    },
    Capability {
        name: "CAP_CHECKPOINT_RESTORE",
        short_name: "cap_checkpoint_restore",
        number: 40,
        is_required: false,
        purpose: "open deleted binaries",
    },
];

/// The command that grants our program all [`CAPABILITIES`] and what it needs `besides`.
pub(crate) fn grant_command(besides: &[&str]) -> String {
    let always = CAPABILITIES.iter().map(|it| it.short_name);
    let names: Vec<&str> = always.chain(besides.iter().copied()).collect();
    let program = std::env::current_exe();
    let program = program.unwrap_or_else(|_| PathBuf::from("candela"));
    format!("sudo setcap {}=ep {}", names.join(","), program.display())
}

// === impl Capability ===

impl Capability {
    /// What lets observe all processes.
    pub(crate) const PERFMON: Capability = CAPABILITIES[1];

    /// Whether the calling process has it, or one that implies it.
    pub fn is_held(&self) -> bool {
        host::has_capability(self.number) || self.is_required && host::has_capability(CAP_SYS_ADMIN)
    }

    /// The first that BPF needs and we lack.
    pub(crate) fn first_missing() -> Option<&'static str> {
        let required = CAPABILITIES.iter().filter(|it| it.is_required);
        let mut missing = required.filter(|it| !it.is_held());
        missing.next().map(|it| it.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn what_is_to_be_granted_is_what_is_needed() {
        let names: Vec<&str> = CAPABILITIES.iter().map(|it| it.short_name).collect();
        let list = format!("{}=ep", names.join(","));
        assert!(GRANT.contains(&list), "{GRANT}");
        let refusal = Error::MissingCapability {
            capability: "CAP_BPF",
            action: "load BPF programs",
        };
        assert!(refusal.to_string().contains(&list), "{refusal}");
        let own = std::env::current_exe().expect("our own path");
        let command = format!("sudo setcap {list} {}", own.display());
        assert!(refusal.to_string().ends_with(&command), "{refusal}");
        let besides = format!("{},cap_sys_admin=ep", names.join(","));
        let refusal = Error::ProbesForbidden.to_string();
        assert!(refusal.contains(&besides), "{refusal}");
    }

    #[test]
    fn names_are_those_of_the_manual() {
        assert_eq!(Capability::PERFMON.name, "CAP_PERFMON");
        for capability in CAPABILITIES {
            assert_eq!(capability.name.to_lowercase(), capability.short_name);
        }
    }
}
