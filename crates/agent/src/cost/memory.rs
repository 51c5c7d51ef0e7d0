//! How much memory this process has.

/// Resident memory of this process (`VmRSS` of proc_pid_status(5)), bytes; 0 where nobody tells.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    resident_of(&status).unwrap_or_default()
}

fn resident_of(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_that_of_the_kernel() {
        let status = "Name:\tcandela\nVmHWM:\t  2000 kB\nVmRSS:\t   1024 kB\n";
        assert_eq!(resident_of(status), Some(1 << 20));
        assert_eq!(resident_of("Name:\tkthreadd\n"), None);
        assert!(resident_bytes() > 1 << 20, "a test program has a megabyte");
    }
}
