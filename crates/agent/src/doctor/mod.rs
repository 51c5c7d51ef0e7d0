//! What works on this host, for `candela doctor`.

mod kinds;

use std::fs;

use candela_ebpf::Check;
use candela_symbols::kallsyms::KernelSymbols;

pub use self::kinds::kind_checks;

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
    let kptr_restrict = fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
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
            .then(|| kernel_symbols_remedy(kptr_restrict.trim())),
    }
}

/// What shows the addresses of functions at a level of `kernel.kptr_restrict`: at 0 perf events of the kernel must be
/// allowed, too, and at 2 nobody sees them (`kallsyms_show_value` of kernel/ksyms_common.c).
fn kernel_symbols_remedy(kptr_restrict: &str) -> &'static str {
    match kptr_restrict {
        "0" => "run as root or with cap_syslog, or: sudo sysctl kernel.perf_event_paranoid=1",
        "2" => "sudo sysctl kernel.kptr_restrict=1, and run as root or with cap_syslog",
        _ => {
            "run as root or with cap_syslog, or: sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
        }
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
    fn what_is_set_already_is_no_remedy() {
        assert!(!kernel_symbols_remedy("0").contains("kptr_restrict"));
        assert!(kernel_symbols_remedy("0").contains("perf_event_paranoid=1"));
        assert!(kernel_symbols_remedy("1").contains("kptr_restrict=0"));
        assert!(kernel_symbols_remedy("2").contains("kptr_restrict=1"));
    }

    mod host_tests {
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
}
