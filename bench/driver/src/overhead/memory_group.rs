//! Memory of a program with what the kernel holds for it, such as BPF maps, by its cgroup.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

/// Where the hierarchies of version 1 and 2 are mounted everywhere.
const VERSION_1: &str = "/sys/fs/cgroup/memory";
const VERSION_2: &str = "/sys/fs/cgroup";

/// A cgroup of its own; removed when dropped, once its programs have ended.
#[derive(Debug)]
pub(crate) struct MemoryGroup {
    path: PathBuf,
    is_version_2: bool,
}

/// Bytes of a cgroup; the page cache, which goes when somebody needs it, is no part of either.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryUse {
    /// Of processes.
    pub(crate) own: u64,
    /// What the kernel holds for them.
    pub(crate) kernel: u64,
}

// === impl MemoryGroup ===

impl MemoryGroup {
    pub(crate) fn create() -> Result<Self, String> {
        let of_version_1 = Path::new(VERSION_1).join("memory.stat");
        let is_version_2 = !of_version_1
            .try_exists()
            .map_err(|error| format!("{}: {error}", of_version_1.display()))?;
        let root = if is_version_2 { VERSION_2 } else { VERSION_1 };
        let path = Path::new(root).join(format!("candela-overhead-{}", std::process::id()));
        if is_version_2 {
            // Enabled already on most hosts; where it cannot be, the next lines say so.
            let _ = fs::write(Path::new(root).join("cgroup.subtree_control"), "+memory");
        }
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let group = Self { path, is_version_2 };
        group.memory()?;
        Ok(group)
    }

    /// The command, in this group from its first moment: maps belong to the group that they were made in.
    pub(crate) fn enter(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.path.join("cgroup.procs"))
            .arg(command.get_program())
            .args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            shell.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    }

    pub(crate) fn memory(&self) -> Result<MemoryUse, String> {
        let read = |name: &str| {
            let path = self.path.join(name);
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let stat = read("memory.stat")?;
        let field = |name: &str| {
            stat.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
                .ok_or_else(|| format!("no {name} in memory.stat of {}", self.path.display()))
        };
        if self.is_version_2 {
            return Ok(MemoryUse {
                own: field("anon")?,
                kernel: field("kernel")?,
            });
        }
        let kernel = read("memory.kmem.usage_in_bytes")?;
        Ok(MemoryUse {
            own: field("rss")?,
            kernel: kernel
                .trim()
                .parse()
                .map_err(|_| format!("kernel memory is {kernel:?}"))?,
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}
