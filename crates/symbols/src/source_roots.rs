//! Source files that debug information names, read only below folders that somebody configured.
//!
//! A profile comes from whoever may push, so a name in it is no reason to read a file: it counts
//! only when it leads, after all links are followed, to a regular file below one of the folders.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The largest file that is read, bytes: generated sources are larger than what people write.
const MOST_BYTES: u64 = 4 << 20;

/// Folders with sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceRoots {
    roots: Vec<SourceRoot>,
}

/// One of them: names that begin with `from` are looked for below `folder`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceRoot {
    from: PathBuf,
    folder: PathBuf,
}

/// The text of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// Where it was found, links followed.
    pub path: PathBuf,
    /// Its bytes; what is no UTF-8 in them is replaced.
    pub text: String,
}

/// A folder that cannot be one of sources.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is no folder of sources: {reason}")]
pub struct SourceRootError {
    text: String,
    reason: &'static str,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceFileError {
    /// Nobody has said where sources are.
    #[error("no folder of sources is configured")]
    NoRoots,
    /// The name leads out of all folders.
    #[error("{name} is in none of the configured folders of sources")]
    Outside {
        /// As debug information has it.
        name: String,
    },
    /// The folder that it belongs to does not have it.
    #[error("{name} is not there")]
    Missing {
        /// As debug information has it.
        name: String,
    },
    /// It is there, and no text.
    #[error("{name} is {what}")]
    NotText {
        /// As debug information has it.
        name: String,
        /// What it is.
        what: String,
    },
    /// The system does not let us read it.
    #[error("{name} cannot be read: {source}")]
    Unreadable {
        /// As debug information has it.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl SourceRoots {
    /// Folders as they are configured: `/src/shop`, or `/builds/shop=/src/shop` for programs that
    /// were built elsewhere.
    ///
    /// # Errors
    /// When one of them cannot be a folder.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, SourceRootError> {
        let roots = texts.iter().map(|text| SourceRoot::parse(text.as_ref()));
        Ok(Self {
            roots: roots.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there is no folder.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The file that debug information names so, in the first folder that has it.
    ///
    /// # Errors
    /// As [`SourceFileError`] says.
    pub fn read(&self, name: &str) -> Result<SourceText, SourceFileError> {
        if self.roots.is_empty() {
            return Err(SourceFileError::NoRoots);
        }
        let mut failure = SourceFileError::Outside { name: name.into() };
        for root in &self.roots {
            let Some(below) = root.below(name) else {
                continue;
            };
            match read_below(&root.folder, &below, name) {
                Ok(found) => return Ok(found),
                // What is said of the folder that should have it tells more than that others do not.
                Err(error) if matches!(failure, SourceFileError::Outside { .. }) => failure = error,
                Err(_) => {}
            }
        }
        Err(failure)
    }
}

impl SourceRoot {
    fn parse(text: &str) -> Result<Self, SourceRootError> {
        let bad = |reason| SourceRootError {
            text: text.to_owned(),
            reason,
        };
        // A folder may have `=` in its name; what stands behind that of a pair is a whole path.
        let pair = text
            .split_once('=')
            .filter(|(_, folder)| folder.starts_with('/'));
        let (from, folder) = pair.unwrap_or((text, text));
        if from.is_empty() {
            return Err(bad(
                "before = stands the beginning of the names, /builds/shop=/src/shop",
            ));
        }
        if !folder.starts_with('/') {
            return Err(bad("a folder is named from the root on, /src/shop"));
        }
        Ok(Self {
            from: PathBuf::from(from),
            folder: PathBuf::from(folder),
        })
    }

    /// The way from the folder to the file of this name; `None` where it is not in it.
    fn below(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(name);
        let below = match path.strip_prefix(&self.from) {
            Ok(below) => below,
            Err(_) if path.is_relative() && !name.is_empty() && self.from == self.folder => path,
            Err(_) => return None,
        };
        stays_inside(below).then(|| below.to_owned())
    }
}

/// Whether no `..` leads out at any moment: what is outside must not even be looked for.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    depth > 0
}

fn read_below(folder: &Path, below: &Path, name: &str) -> Result<SourceText, SourceFileError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SourceFileError::Missing { name: name.into() }
        }
        _ => SourceFileError::Unreadable {
            name: name.into(),
            source,
        },
    };
    let not_text = |what: String| SourceFileError::NotText {
        name: name.into(),
        what,
    };
    let folder = folder.canonicalize().map_err(unreadable)?;
    let path = folder.join(below).canonicalize().map_err(unreadable)?;
    if !path.starts_with(&folder) {
        return Err(SourceFileError::Outside { name: name.into() });
    }
    // Without waiting: a pipe must not hold up who asks.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = rustix::fs::open(&path, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| unreadable(error.into()))?);
    // The way may have changed since it was followed: what counts is what is open.
    let open_path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    if !open_path.map_err(unreadable)?.starts_with(&folder) {
        return Err(SourceFileError::Outside { name: name.into() });
    }
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(not_text("no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(not_text(format!("larger than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(SourceText {
        path,
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkfifoat};
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A folder of sources beside a file that is none of its business.
    struct Place {
        outer: tempfile::TempDir,
        roots: SourceRoots,
    }

    impl Place {
        fn new() -> Self {
            let outer = tempfile::tempdir().expect("a temporary directory");
            let sources = outer.path().join("sources");
            fs::create_dir_all(sources.join("lib")).expect("folders");
            fs::write(sources.join("lib/a.c"), "int a;\n").expect("a file");
            fs::write(sources.join("lib/b.c"), b"int b; // \xff\n").expect("a file");
            fs::write(outer.path().join("secret"), "secret").expect("a file");
            symlink(outer.path().join("secret"), sources.join("leak.c")).expect("a link");
            symlink(outer.path(), sources.join("up")).expect("a link");
            symlink("lib/a.c", sources.join("same.c")).expect("a link");
            let texts = [
                sources.to_str().expect("text").to_owned(),
                format!("/builds/shop={}", sources.display()),
            ];
            let roots = SourceRoots::parse(&texts).expect("folders");
            Self { outer, roots }
        }

        fn path(&self, below: &str) -> String {
            let path = self.outer.path().join("sources").join(below);
            path.to_str().expect("text").to_owned()
        }

        fn refused(&self, name: &str) -> SourceFileError {
            self.roots.read(name).expect_err(name)
        }
    }

    #[test]
    fn files_are_found_by_their_names_and_where_they_were_built() {
        let place = Place::new();
        let names = [
            place.path("lib/a.c"),
            "/builds/shop/lib/a.c".to_owned(),
            "/builds/shop/lib/../lib/./a.c".to_owned(),
            "lib/a.c".to_owned(),
            "same.c".to_owned(),
        ];
        for name in names {
            let found = place.roots.read(&name).expect(&name);
            assert!(found.path.ends_with("sources/lib/a.c"), "{found:?}");
            assert!(found.text.starts_with("int a;"), "{found:?}");
        }
        let found = place.roots.read("lib/b.c").expect("a file");
        assert_eq!(found.text, "int b; // \u{fffd}\n");
    }

    #[test]
    fn nothing_leads_out_of_the_folders() {
        let place = Place::new();
        let secret = place.outer.path().join("secret");
        let names = [
            "/etc/passwd",
            "../secret",
            "lib/../../secret",
            "/builds/shop/../../etc/passwd",
            "/builds/shopping/a.c",
            "leak.c",
            "up/secret",
            secret.to_str().expect("text"),
            "",
            ".",
            "/",
        ];
        for name in names {
            let error = place.refused(name);
            assert!(
                matches!(error, SourceFileError::Outside { .. }),
                "{name}: {error}"
            );
        }
        let through = place.path("../secret");
        assert!(matches!(
            place.refused(&through),
            SourceFileError::Outside { .. }
        ));
    }

    #[test]
    fn folders_are_named_from_the_root_on() {
        for text in ["src", "a=b", "=/src", ""] {
            SourceRoots::parse(&[text]).expect_err(text);
        }
        let roots = SourceRoots::parse(&["/a=b/c"]).expect("a folder");
        assert_eq!(roots.roots[0].folder, Path::new("/a=b/c"));
        let none = SourceRoots::default().read("/a.c").expect_err("no folder");
        assert!(matches!(none, SourceFileError::NoRoots));
    }

    #[test]
    fn what_is_no_text_is_refused_with_the_reason() {
        let place = Place::new();
        assert!(matches!(
            place.refused("lib/c.c"),
            SourceFileError::Missing { .. }
        ));
        assert!(matches!(
            place.refused("lib/a.c/x"),
            SourceFileError::Missing { .. }
        ));
        assert_eq!(place.refused("lib").to_string(), "lib is no regular file");
        let large = File::create(place.path("large.c")).expect("a file");
        large.set_len(MOST_BYTES + 1).expect("a sparse file");
        assert_eq!(
            place.refused("large.c").to_string(),
            "large.c is larger than 4 MiB"
        );
        let made = mkfifoat(CWD, place.path("pipe.c"), Mode::RWXU);
        made.expect("a pipe");
        assert_eq!(
            place.refused("pipe.c").to_string(),
            "pipe.c is no regular file"
        );
    }
}
