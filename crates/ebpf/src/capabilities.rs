//! What this host allows, for `candela doctor`.

mod perf_events;

use crate::allocations::FunctionLink;
use crate::defect;
use crate::host;
use crate::loader;
use crate::privileges::{CAP_SYS_ADMIN, CAPABILITIES, Capability, GRANT};
use crate::refusal::FIRST_KERNEL;
use std::fs;

/// One thing that sampling depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A stable, short name.
    pub name: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// Whether sampling is impossible without it (otherwise: poorer).
    pub required: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it, where it is not there; `{program}` stands for the path of the program that needs it.
    pub fix: Option<&'static str>,
}

/// Probes this host. Loads the programs once, without attaching them, and opens each perf event once.
pub fn capabilities() -> Vec<Check> {
    let mut checks = vec![kernel(), btf(), lockdown(), jit(), pid_namespace()];
    checks.extend(privileges());
    checks.extend(perf_events::checks());
    checks.push(programs());
    checks.push(probes());
    checks.push(off_cpu());
    checks
}

fn kernel() -> Check {
    let release = host::kernel_release();
    Check {
        name: "kernel",
        ok: host::kernel_version().is_some_and(|version| version >= FIRST_KERNEL),
        // Distributions bring what is missing to older kernels; whether it loads is what counts.
        required: false,
        detail: format!("Linux {release} (walking stacks in BPF needs 6.1)"),
        fix: Some("use Linux 6.1 or newer; older ones sample own processes without BPF"),
    }
    .done()
}

fn btf() -> Check {
    let path = "/sys/kernel/btf/vmlinux";
    let found = host::is_there(path);
    Check {
        name: "btf",
        ok: found,
        required: true,
        detail: format!("{path} {}", if found { "is there" } else { "is missing" }),
        fix: Some("use a kernel built with CONFIG_DEBUG_INFO_BTF=y"),
    }
    .done()
}

fn lockdown() -> Check {
    let mode = host::lockdown_mode();
    Check {
        name: "lockdown",
        ok: mode.as_deref() != Some("confidentiality"),
        required: true,
        detail: mode.unwrap_or_else(|| "not visible (securityfs is not mounted)".to_owned()),
        fix: Some("boot with lockdown=integrity or lockdown=none"),
    }
    .done()
}

fn jit() -> Check {
    // The file is readable by root only; an unreadable one is no reason to alarm.
    let setting = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").ok();
    let setting = setting.as_deref().map(str::trim);
    Check {
        name: "bpf_jit",
        ok: setting != Some("0"),
        required: false,
        detail: format!(
            "net.core.bpf_jit_enable = {}",
            setting.unwrap_or("not readable")
        ),
        fix: Some("sudo sysctl net.core.bpf_jit_enable=1"),
    }
    .done()
}

fn pid_namespace() -> Check {
    let initial = host::in_initial_pid_namespace();
    Check {
        name: "pid_namespace",
        ok: initial != Some(false),
        required: true,
        detail: match initial {
            Some(true) => "the host's".to_owned(),
            Some(false) => "a container's: process ids of events are not those of /proc".to_owned(),
            None => "cannot be told".to_owned(),
        },
        fix: Some("run the container with the host's pid namespace (docker run --pid=host)"),
    }
    .done()
}

fn privileges() -> Vec<Check> {
    let check = |capability: &Capability| {
        let ok = capability.is_held();
        let state = if ok { "held" } else { "missing" };
        Check {
            name: capability.short_name,
            ok,
            required: capability.is_required,
            detail: format!("{state}; to {}", capability.purpose),
            fix: Some(GRANT),
        }
        .done()
    };
    CAPABILITIES.iter().map(check).collect()
}

fn programs() -> Check {
    let loaded = loader::load(&defect::smallest());
    Check {
        name: "bpf_programs",
        ok: loaded.is_ok(),
        required: true,
        detail: loaded
            .err()
            .map_or_else(|| "load and verify".to_owned(), |error| error.to_string()),
        fix: Some("see the message; the checks above name the usual causes"),
    }
    .done()
}

fn probes() -> Check {
    let ok = host::has_capability(CAP_SYS_ADMIN);
    let state = if ok { "held" } else { "missing" };
    let (alloc, fix) = match FunctionLink::of_host() {
        FunctionLink::Bpf => ("", "run these recordings as root"),
        FunctionLink::PerfEvent => (
            "the kind alloc and ",
            "run what is to sample these as root, or use Linux 6.6 or newer for alloc",
        ),
    };
    Check {
        name: "probes",
        ok,
        required: false,
        detail: format!(
            "cap_sys_admin is {state}: {alloc}recordings of uprobe need it, all else does not"
        ),
        fix: Some(fix),
    }
    .done()
}

fn off_cpu() -> Check {
    let ok = loader::can_defer();
    let release = host::kernel_release();
    Check {
        name: "off_cpu",
        ok,
        required: false,
        detail: match ok {
            true => format!("waits have their stacks on Linux {release}"),
            false => format!(
                "waits in system calls have their stacks on Linux {release}; those for memory or a CPU have the \
                 kernel's alone, and each system call costs a little"
            ),
        },
        fix: Some("use Linux 6.18 or newer for the stacks of all waits"),
    }
    .done()
}

// === impl Check ===

impl Check {
    /// Nothing to fix where nothing is wrong.
    fn done(mut self) -> Check {
        if self.ok {
            self.fix = None;
        }
        self
    }
}
