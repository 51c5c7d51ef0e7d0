//! Following a path name by name. The kernel follows all symbolic links or none, and asks only whether we may enter a
//! folder, which we always may.

use super::{FOLDER, Found, Reader, Refusal};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// As many as the kernel follows on one path.
const MOST_LINKS: u32 = 40;

/// Names on one path, and folders that are held at a time. The kernel would refuse longer paths, too.
const MOST_NAMES: u32 = 1024;
const MOST_FOLDERS: usize = 128;

/// Finds what `path` leads to, with `root` as the root directory: through folders that `reader` may search, and symbolic
/// links of users that are trusted.
///
/// Each folder is held while the next name is looked up in it, so that nothing changes between check and use.
pub(super) fn find_through_links(
    root: &OwnedFd,
    path: &Path,
    reader: Reader,
    is_trusted: &dyn Fn(u32) -> bool,
) -> Result<Found, Refusal> {
    let mut folders: Vec<Found> = Vec::new();
    let mut ahead = Vec::new();
    push_names(&mut ahead, path);
    let (mut links, mut names) = (0, 0);
    while let Some(name) = ahead.pop() {
        names += 1;
        if names > MOST_NAMES || folders.len() > MOST_FOLDERS {
            return Err(rustix::io::Errno::NAMETOOLONG.into());
        }
        if name == ".." {
            folders.pop();
            continue;
        }
        let folder = folders.last().map_or(root, |found| &found.place);
        let found = find_name(folder, &name)?;
        match found.kind() {
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS || !is_trusted(found.owner()) {
                    return Err(Refusal::Link);
                }
                let target = rustix::fs::readlinkat(&found.place, "", Vec::new())?;
                let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                if target.is_absolute() {
                    folders.clear();
                }
                push_names(&mut ahead, target);
            }
            FileType::Directory => {
                reader.check_searches(&found)?;
                folders.push(found);
            }
            // More names behind it make no sense, as the kernel says, too.
            _ if ahead.is_empty() => return Ok(found),
            _ => return Err(rustix::io::Errno::NOTDIR.into()),
        }
    }
    match folders.pop() {
        Some(folder) => Ok(folder),
        None => Found::of(rustix::fs::openat(root, ".", FOLDER, Mode::empty())?),
    }
}

/// What has this name in a folder; a symbolic link is found itself.
fn find_name(folder: &OwnedFd, name: &OsStr) -> Result<Found, Refusal> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let place = rustix::fs::openat2(folder, name, flags, Mode::empty(), resolve)?;
    Found::of(place)
}

/// Puts the names of a path on a stack, the first on top.
fn push_names(stack: &mut Vec<OsString>, path: &Path) {
    let names = path
        .components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
    stack.extend(names);
}
