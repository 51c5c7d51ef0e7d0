//! Opening files that somebody else chose: a profiled process, its user, or whoever made a profile.
//!
//! The agent may read every file of its host, and what it reads ends up in profiles that others see. So a path that
//! a process or a user controls is never simply opened: it could lead to a file that this user may not read, to a
//! pipe that never answers, or to a device that acts when it is opened. Each function here is for one kind of
//! path, and says what it asks of the file. All of them find the file without opening it (`O_PATH`), look at what they
//! found, and then open this very file, so that nothing can be swapped in between.
//!
//! Paths that the operator gives, and those of the caller's own folders, are not foreign.

mod process;
mod reader;
mod refusal;
mod walk;

pub use process::{ForeignProcess, MappedFileLine, open_mapped_here};
pub use reader::Reader;
pub use refusal::Refusal;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use std::fs::File;
use std::io;
use std::path::Path;

const ROOT_USER: u32 = 0;

/// How a folder is held without being opened.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A file that was found and not opened.
struct Found {
    place: OwnedFd,
    stat: Stat,
}

/// Opens a regular file, and nothing else, whatever links lead to it. This is for links of the kernel, such as `/proc/PID/exe`
/// and `/proc/PID/map_files/…`: the kernel says which file that is, because the process runs it or has mapped it. It is also
/// for paths whose contents only the operator will see.
///
/// # Errors
/// Why it was not opened.
pub fn open_regular(path: &Path) -> Result<File, Refusal> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Found::of(place)?.regular()?.open()
}

/// Opens a debug file, a list of packages or the like below `root` for `reader`, who must be able to reach and read it
/// without us. The file, and each symbolic link to it, must belong to root, to our own user, to the owner of `root`,
/// to `reader`, or to `owner`, the owner of the file that led here.
///
/// # Errors
/// Why it was not opened.
pub fn open_for(
    reader: Reader,
    root: &Path,
    path: &Path,
    owner: Option<u32>,
) -> Result<File, Refusal> {
    find_for(reader, root, path, owner)?.regular()?.open()
}

/// As [`open_for`], for a folder that everybody may list.
///
/// # Errors
/// Why it was not opened.
pub fn open_public_folder(root: &Path, path: &Path) -> Result<OwnedFd, Refusal> {
    let found = find_for(Reader::Everybody, root, path, None)?;
    if found.kind() != FileType::Directory {
        return Err(Refusal::NotFolder);
    }
    Ok(found.reopen(OFlags::DIRECTORY)?.into())
}

/// Opens a file of this host whose path stands in a profile: one that everybody may reach and read. Whose it is does not
/// matter, so the caller must compare its build id.
///
/// # Errors
/// Why it was not opened.
pub fn open_named_in_profile(path: &Path) -> Result<File, Refusal> {
    let root = open_root(Path::new("/"))?;
    let found = walk::find_through_links(&root, path, Reader::Everybody, &|_| true)?.regular()?;
    Reader::Everybody.check_reads(&found)?;
    found.open()
}

fn find_for(
    reader: Reader,
    root: &Path,
    path: &Path,
    owner: Option<u32>,
) -> Result<Found, Refusal> {
    let root = open_root(root)?;
    let of_root = rustix::fs::fstat(&root)?.st_uid;
    let is_trusted = |user: u32| {
        [ROOT_USER, our_user(), of_root].contains(&user)
            || owner == Some(user)
            || reader.is_user(user)
    };
    let found = walk::find_through_links(&root, path, reader, &is_trusted)?;
    if !is_trusted(found.owner()) {
        return Err(Refusal::UntrustedOwner {
            owner: found.owner(),
        });
    }
    reader.check_reads(&found)?;
    Ok(found)
}

/// Opens what a process that has ended left in a folder where everybody writes, such as our own `/tmp`. Whose process it was
/// is not known any more: the file must belong to root or to our own user, be readable by everybody, have one name
/// only, and be reached without symbolic links.
///
/// # Errors
/// Why it was not opened.
pub fn open_left_behind(path: &Path) -> Result<File, Refusal> {
    let found = find(&open_root(Path::new("/"))?, path)?.regular()?;
    if ![ROOT_USER, our_user()].contains(&found.owner()) {
        return Err(Refusal::UntrustedOwner {
            owner: found.owner(),
        });
    }
    Reader::Everybody.check_reads(&found)?;
    found.check_one_name()?;
    found.open()
}

fn our_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The directory that paths are meant below. Nothing is opened, and so nothing can be in the way.
fn open_root(root: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(root, FOLDER, Mode::empty())?)
}

/// Finds what is at `path`, with `root` as the root directory. Symbolic links on the way are refused; one at its end is what
/// is found.
fn find(root: &OwnedFd, path: &Path) -> Result<Found, Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Found::of(rustix::fs::openat2(
        root,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

// === impl Found ===

impl Found {
    fn of(place: OwnedFd) -> Result<Self, Refusal> {
        let stat = rustix::fs::fstat(&place)?;
        Ok(Self { place, stat })
    }

    fn owner(&self) -> u32 {
        self.stat.st_uid
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// A hard link gives a file of one user a name that another user chose.
    fn check_one_name(&self) -> Result<(), Refusal> {
        match self.stat.st_nlink {
            0 | 1 => Ok(()),
            _ => Err(Refusal::ManyNames),
        }
    }

    fn regular(self) -> Result<Self, Refusal> {
        match self.kind() {
            FileType::RegularFile => Ok(self),
            FileType::Symlink => Err(Refusal::Link),
            _ => Err(Refusal::NotRegular),
        }
    }

    fn open(&self) -> Result<File, Refusal> {
        Ok(self.reopen(OFlags::empty())?)
    }

    /// Opens this very file, whatever is at its path by now.
    fn reopen(&self, more: OFlags) -> io::Result<File> {
        let same = format!("/proc/self/fd/{}", self.place.as_raw_fd());
        // Some files of the kernel are regular and let their readers wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
        Ok(rustix::fs::open(same, flags, Mode::empty())?.into())
    }
}

#[cfg(test)]
mod tests;
