//! What works on this host, for `candela doctor`.

use std::fs;

use candela_ebpf::Check;
use candela_symbols::kallsyms::KernelSymbols;

/// Probes this host: what `candela-ebpf` needs, and what names need.
#[must_use]
pub fn capabilities() -> Vec<Check> {
    let mut checks = candela_ebpf::capabilities();
    checks.push(kernel_symbols());
    checks.push(mapped_files());
    checks
}

fn kernel_symbols() -> Check {
    let loaded = KernelSymbols::load();
    Check {
        name: "kernel_symbols",
        ok: loaded.is_ok(),
        required: false,
        detail: match &loaded {
            Ok(symbols) => format!("{} functions", symbols.len()),
            Err(error) => error.to_string(),
        },
        fix: loaded
            .is_err()
            .then_some("run as root or with cap_syslog, or: sysctl kernel.kptr_restrict=0"),
    }
}

/// Without `/proc/PID/map_files`, deleted binaries have no names.
fn mapped_files() -> Check {
    let readable = fs::read_dir("/proc/self/map_files")
        .ok()
        .and_then(|mut entries| entries.next()?.ok())
        .is_some_and(|entry| fs::File::open(entry.path()).is_ok());
    let is_there = fs::metadata("/proc/self/map_files").is_ok();
    Check {
        name: "map_files",
        ok: readable,
        required: false,
        detail: match (readable, is_there) {
            (true, _) => "deleted binaries can be read".to_owned(),
            (false, true) => "deleted binaries cannot be read: no permission".to_owned(),
            (false, false) => {
                "deleted binaries cannot be read: the kernel has no map_files".to_owned()
            }
        },
        fix: (!readable).then_some("run as root or with cap_checkpoint_restore"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_what_to_do() {
        for check in capabilities() {
            assert!(!check.detail.is_empty(), "{}", check.name);
            assert!(
                check.ok || check.fix.is_some(),
                "{}: {}",
                check.name,
                check.detail
            );
        }
    }
}
