//! Finding the separate debug file of a stripped object: by build id, by `.gnu_debuglink`, and its
//! `dwz` supplement.

use crate::build_id::BuildId;
use crate::foreign::{Reader, Refusal, open_for};
use crate::object_file::{ObjectFile, Origin};
use crate::rooted::open_in_root;
use object::Object;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The most that is summed to compare a debug file with its link: a sparse file can have any length.
const LARGEST_SUMMED: usize = 256 << 20;

/// Where separate debug files are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugFileSearch {
    /// Directories as gdb's `debug-file-directory`; `/usr/lib/debug` by default.
    pub directories: Vec<PathBuf>,
}

impl Default for DebugFileSearch {
    fn default() -> Self {
        Self {
            directories: vec![PathBuf::from("/usr/lib/debug")],
        }
    }
}

impl DebugFileSearch {
    /// The separate debug file of `object`: first in its own root directory, then on the host; in
    /// each by debuglink, then by build id. A file is only taken when its build id equals the
    /// object's, or, where one of the two has none, when its CRC equals that of the debuglink. The
    /// first with DWARF wins, else the first with a symbol table.
    ///
    /// Whoever made the object chose the name of its debug file, and perhaps all that is in its root directory. So the user
    /// of the process that led to the object, or everybody where a profile did, must be able to read the debug file
    /// ([`open_for`]). The operator chose the host's files by build id.
    pub fn find(&self, object: &ObjectFile) -> Option<Arc<ObjectFile>> {
        let link = Debuglink::of(object);
        let roots = object.root().into_iter().chain([Path::new("/")]);
        let candidates = roots.flat_map(|root| {
            let linked = link.iter().flat_map(move |link| {
                self.link_candidates(object, link)
                    .into_iter()
                    .filter_map(move |path| open_foreign(root, &path, object))
                    .filter(|found| matches_link(object, found, link.crc))
            });
            linked.chain(self.by_build_id(object, root))
        });
        let mut without_dwarf = None;
        for found in candidates {
            // A debuglink may have the name of the program that it stands in.
            if found.key().is_some() && found.key() == object.key() {
                continue;
            }
            if found.contents().dwarf {
                return Some(found);
            }
            without_dwarf.get_or_insert(found);
        }
        without_dwarf
    }

    /// The file that `dwz` moved shared debug information to, named in `.gnu_debugaltlink` with its
    /// build id.
    pub fn find_supplement(&self, debug_file: &ObjectFile) -> Option<Arc<ObjectFile>> {
        let (name, wanted) = supplement_link(debug_file)?;
        let beside = debug_file.path().parent()?.join(name);
        let by_id = self
            .directories
            .iter()
            .filter_map(|directory| build_id_path(directory, &wanted));
        let candidates: Vec<_> = std::iter::once(beside).chain(by_id).collect();
        let roots: Vec<_> = debug_file
            .root()
            .into_iter()
            .chain([Path::new("/")])
            .collect();
        let pairs = roots
            .iter()
            .flat_map(|root| candidates.iter().map(move |path| (*root, path)));
        pairs.into_iter().find_map(|(root, path)| {
            let supplement = open_foreign(root, path, debug_file)?;
            (*supplement.build_id() == wanted).then_some(supplement)
        })
    }

    /// The debug file with this build id in the directories of the host. As with
    /// [`find`](Self::find), the first with DWARF wins.
    pub fn find_build_id(&self, id: &BuildId) -> Option<Arc<ObjectFile>> {
        let mut without_dwarf = None;
        for directory in &self.directories {
            let Some(found) = open_ours(&build_id_path(directory, id)?) else {
                continue;
            };
            if found.build_id() != id {
                continue;
            }
            if found.contents().dwarf {
                return Some(found);
            }
            without_dwarf.get_or_insert(found);
        }
        without_dwarf
    }

    fn by_build_id(&self, object: &ObjectFile, root: &Path) -> Option<Arc<ObjectFile>> {
        self.directories.iter().find_map(|directory| {
            let path = build_id_path(directory, object.build_id())?;
            let found = match root == Path::new("/") {
                true => open_ours(&path),
                false => open_foreign(root, &path, object),
            }?;
            (found.build_id() == object.build_id()).then_some(found)
        })
    }

    /// The paths that a debuglink may mean.
    fn link_candidates(&self, object: &ObjectFile, link: &Debuglink) -> Vec<PathBuf> {
        let Some(beside) = object.path().parent() else {
            return Vec::new();
        };
        let inside = beside.strip_prefix("/").unwrap_or(beside);
        let in_directories = self
            .directories
            .iter()
            .map(|directory| directory.join(inside).join(&link.name));
        let near = [
            beside.join(&link.name),
            beside.join(".debug").join(&link.name),
        ];
        near.into_iter().chain(in_directories).collect()
    }
}

/// What `.gnu_debuglink` says.
struct Debuglink {
    name: PathBuf,
    crc: u32,
}

impl Debuglink {
    fn of(object: &ObjectFile) -> Option<Self> {
        let elf = object.elf()?;
        let (name, crc) = elf.gnu_debuglink().ok()??;
        // The link is a bare file name; anything with a directory in it was not written by a
        // linker.
        let name = Path::new(OsStr::from_bytes(name));
        let is_bare = name.components().count() == 1
            && matches!(name.components().next(), Some(Component::Normal(_)));
        is_bare.then(|| Self {
            name: name.into(),
            crc,
        })
    }
}

/// Name and build id of the supplement that `debug_file` refers to in `.gnu_debugaltlink`.
pub(crate) fn supplement_link(debug_file: &ObjectFile) -> Option<(PathBuf, BuildId)> {
    let elf = debug_file.elf()?;
    let (name, build_id) = elf.gnu_debugaltlink().ok()??;
    let name = Path::new(OsStr::from_bytes(name));
    let is_named = !name.as_os_str().is_empty();
    is_named.then(|| (name.into(), BuildId::Gnu(build_id.into())))
}

/// `DIRECTORY/.build-id/ab/cdef….debug`.
pub(crate) fn build_id_path(directory: &Path, id: &BuildId) -> Option<PathBuf> {
    let digits = id.gnu_hex()?;
    let (first, rest) = digits.split_at_checked(2)?;
    Some(
        directory
            .join(".build-id")
            .join(first)
            .join(format!("{rest}.debug")),
    )
}

/// Equal build ids say more than a CRC and cost nothing; only without them the whole file is
/// summed.
fn matches_link(object: &ObjectFile, found: &ObjectFile, crc: u32) -> bool {
    match (object.build_id(), found.build_id()) {
        (BuildId::Gnu(wanted), BuildId::Gnu(given)) => wanted == given,
        _ => found.data().len() <= LARGEST_SUMMED && crc32fast::hash(found.data()) == crc,
    }
}

/// A debug file at a path that the operator chose.
fn open_ours(path: &Path) -> Option<Arc<ObjectFile>> {
    let root = Path::new("/");
    debug_file(
        &open_in_root(root, path).ok()?,
        root,
        path,
        Origin::Operator,
    )
}

/// A debug file at a path that `led_here` chose, or in a root directory whose files others made.
fn open_foreign(root: &Path, path: &Path, led_here: &ObjectFile) -> Option<Arc<ObjectFile>> {
    let origin = led_here.origin();
    let opened = match origin {
        Origin::Operator => open_in_root(root, path).map_err(Refusal::from),
        Origin::Foreign(reader) => open_for(reader, root, path, led_here.owner()),
    };
    match opened {
        Ok(file) => debug_file(&file, root, path, origin),
        Err(refusal) => {
            if !refusal.is_not_found() {
                let path = path.display();
                tracing::debug!(%path, "a debug file is not read: {refusal}");
            }
            None
        }
    }
}

/// A debug file that carries names; the object itself may lie under the same name and carries none.
fn debug_file(file: &File, root: &Path, path: &Path, origin: Origin) -> Option<Arc<ObjectFile>> {
    let object = ObjectFile::from_file(file, path)
        .ok()?
        .with_root(root.into(), Reader::Everybody)
        .with_origin(origin);
    let contents = object.contents();
    (contents.dwarf || contents.symtab).then(|| Arc::new(object))
}
