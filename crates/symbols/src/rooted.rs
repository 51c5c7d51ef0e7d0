//! Opening files that the operator chose, by paths that are meant inside of a root directory. For paths that others chose
//! there is [`crate::foreign`].

use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io;
use std::path::Path;

/// Opens `path` for reading as if `root` were the root directory, so that an absolute symlink
/// inside a container leads to the container's file and not to ours.
///
/// Pipes are opened without waiting for a writer; the caller finds out by the file's type.
///
/// # Errors
/// The system's reason, `NotFound` above all.
pub(crate) fn open_in_root(root: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    if root == Path::new("/") {
        return Ok(rustix::fs::open(path, flags, Mode::empty())?.into());
    }
    let directory = rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let opened = rustix::fs::openat2(
        &directory,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::IN_ROOT,
    )?;
    Ok(opened.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn absolute_symlinks_stay_inside_the_root() {
        let root = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(root.path().join("etc")).expect("a directory in it");
        std::fs::write(root.path().join("etc/hostname"), "inside").expect("a file in it");
        symlink("/etc/hostname", root.path().join("link")).expect("a symlink in it");

        let mut text = String::new();
        open_in_root(root.path(), Path::new("/link"))
            .expect("the link resolves inside")
            .read_to_string(&mut text)
            .expect("the file is readable");
        assert_eq!(text, "inside");
        let outside = open_in_root(root.path(), Path::new("/../../../../../proc/self/stat"));
        assert_eq!(
            outside.expect_err("`..` cannot leave the root").kind(),
            io::ErrorKind::NotFound
        );
    }
}
