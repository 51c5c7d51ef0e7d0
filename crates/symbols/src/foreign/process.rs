use super::{FOLDER, Reader, Refusal, find, open_root};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A process whose files are opened. It is held: a later process with the same id is never meant.
#[derive(Debug)]
pub struct ForeignProcess {
    /// Its directory in `/proc`.
    directory: OwnedFd,
    innermost_pid: u32,
    user: u32,
}

/// The file of a mapping, as a line of `/proc/PID/maps` has it.
#[derive(Debug, Clone, Copy)]
pub struct MappedFileLine<'a> {
    /// The path. The kernel writes it without symbolic links.
    pub path: &'a Path,
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The inode number.
    pub inode: u64,
}

impl ForeignProcess {
    /// The process of a directory in `/proc`, e.g. `/proc/123`.
    ///
    /// # Errors
    /// The system's reason: most often, that the process has ended.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let directory = open_root(directory)?;
        let (innermost_pid, user) = read_status(&directory)?;
        Ok(Self {
            directory,
            innermost_pid,
            user,
        })
    }

    /// Its effective user.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.user
    }

    /// The pid in the process's own (innermost) pid namespace.
    #[must_use]
    pub fn innermost_pid(&self) -> u32 {
        self.innermost_pid
    }

    /// Opens a file that the process itself wrote, at the path that it knows. It must belong to the process's (effective)
    /// user, be reached without symbolic links, and have one name only. That root owns it is no reason to read it
    /// for another user: that user may have put it there.
    ///
    /// # Errors
    /// Why it was not opened.
    pub fn open_own(&self, path: &Path) -> Result<File, Refusal> {
        let found = find(&self.root()?, path)?.regular()?;
        if found.owner() != self.user {
            return Err(Refusal::Owner {
                owner: found.owner(),
                expected: self.user,
            });
        }
        found.check_one_name()?;
        let file = found.open()?;
        // Between the two looks it may have become another user's, with the root directory of that one.
        match read_status(&self.directory)? {
            (_, user) if user == self.user => Ok(file),
            (_, expected) => Err(Refusal::Owner {
                owner: self.user,
                expected,
            }),
        }
    }

    /// Opens the file of a mapping by its path, for where we may not use the kernel's link to it: as the process sees
    /// it, or else as we do. The process's user must be the reader that [`open_mapped_here`] wants.
    ///
    /// # Errors
    /// Why it was not opened.
    pub fn open_mapped(&self, line: &MappedFileLine<'_>) -> Result<File, Refusal> {
        let reader = Reader::User(self.user);
        self.root()
            .map_err(Refusal::from)
            .and_then(|root| open_same(&root, line, reader))
            .or_else(|_| open_mapped_here(line, reader))
    }

    fn root(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat(
            &self.directory,
            "root",
            FOLDER,
            Mode::empty(),
        )?)
    }
}

/// Opens the file of a mapping by its path in our own root directory, for where its process has ended.
///
/// It must be the file that is mapped, which the process could read. On stacked file systems the device of a mapping
/// is not that of the file, and its inode number may be that of another file as well: there `reader` must be able to
/// read it.
///
/// # Errors
/// Why it was not opened.
pub fn open_mapped_here(line: &MappedFileLine<'_>, reader: Reader) -> Result<File, Refusal> {
    open_same(&open_root(Path::new("/"))?, line, reader)
}

fn open_same(root: &OwnedFd, line: &MappedFileLine<'_>, reader: Reader) -> Result<File, Refusal> {
    let found = find(root, line.path)?.regular()?;
    if found.stat.st_ino != line.inode {
        return Err(Refusal::OtherFile);
    }
    let device = found.stat.st_dev;
    let is_same_device = (rustix::fs::major(device), rustix::fs::minor(device)) == line.device;
    if !is_same_device {
        reader.check_reads(&found)?;
    }
    found.open()
}

/// The pid in the innermost namespace, and the effective user.
fn read_status(directory: &OwnedFd) -> io::Result<(u32, u32)> {
    let read_only = OFlags::RDONLY | OFlags::CLOEXEC;
    let status = rustix::fs::openat(directory, "status", read_only, Mode::empty())?;
    let mut text = Vec::new();
    File::from(status).read_to_end(&mut text)?;
    innermost_pid_and_user(&String::from_utf8_lossy(&text))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no NSpid and Uid lines"))
}

/// From the text of `/proc/PID/status`, which begins with the program's name: that has no line feed.
fn innermost_pid_and_user(status: &str) -> Option<(u32, u32)> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let pids = field("NSpid:").or_else(|| field("Pid:"))?;
    let innermost_pid = pids.split_whitespace().last()?.parse().ok()?;
    let effective = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    Some((innermost_pid, effective))
}
