//! Small files that tenants keep beside their profiles: settings, annotations, saved views, and profiles
//! that were uploaded to be looked at. They are where the blocks are, in the data directory or in the bucket, and in no
//! catalog: making that anew from blocks does not touch them.

use std::sync::Arc;

use bytes::Bytes;

use crate::data_dir::is_valid_tenant;
use crate::error::StoreError;
use crate::space::SpaceReserve;
use crate::storage::BlockStorage;

/// Bytes of the longest name: with what stands around it, a file name on every system.
const MOST_NAME_BYTES: usize = 200;
/// What every file is called after its name; a file that is being written is called something else.
const ENDING: &str = ".doc";

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// What a tenant has set.
    Settings,
    /// A profile that was uploaded to be looked at.
    AdHocProfile,
    /// What happened and when: deploys, changes of configuration, notes.
    Annotations,
    /// Views and filters that readers saved under a name.
    Views,
    /// The fleet's configuration: its versions, and a list of them.
    Fleet,
}

/// A document as a list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentMeta {
    /// Its name, one in its kind and tenant.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// A document that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The tenant or the name cannot be a part of a path.
    #[error(
        "{text:?} is no name for a document or its tenant: letters, digits, '-', '_' and '.' make one"
    )]
    Name {
        /// The text.
        text: String,
    },
    /// The volume is full but for the reserve.
    #[error(
        "the volume has {free_bytes} bytes free and {needed_bytes} are needed, the reserve included; \
         free space, or lower store.min_free_space"
    )]
    NoRoom {
        /// Bytes that are free.
        free_bytes: u64,
        /// Bytes that would have to be.
        needed_bytes: u64,
    },
    /// The file system or the bucket failed.
    #[error("cannot read document {path}: {reason}")]
    Unreadable {
        /// The document.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The file system or the bucket failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The documents of all tenants. Calls block, on the network where the blocks are in a bucket.
#[derive(Debug)]
pub struct Documents {
    storage: Arc<dyn BlockStorage>,
    /// `None` where documents do not take the space of this machine.
    reserve: Option<SpaceReserve>,
}

impl DocumentKind {
    /// The folder of all documents of the kind.
    const fn folder(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::AdHocProfile => "adhoc",
            Self::Annotations => "annotations",
            Self::Views => "views",
            Self::Fleet => "fleet",
        }
    }
}

impl Documents {
    pub(crate) fn new(storage: Arc<dyn BlockStorage>, reserve: SpaceReserve) -> Self {
        let reserve = (!storage.is_remote()).then_some(reserve);
        Self { storage, reserve }
    }

    /// Writes a document durably, in the place of the one of that name: after a crash it is the
    /// new one or the old one as a whole.
    ///
    /// # Errors
    /// When the name is none, the volume is full, or the file cannot be written.
    pub fn put(
        &self,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
        content: Bytes,
    ) -> Result<(), DocumentError> {
        let path = path_of(kind, tenant, name)?;
        if let Some(reserve) = &self.reserve {
            reserve
                .check(content.len() as u64)
                .map_err(|shortage| DocumentError::NoRoom {
                    free_bytes: shortage.free_bytes,
                    needed_bytes: shortage.needed_bytes,
                })?;
        }
        Ok(self.storage.put(&path, content)?)
    }

    /// The content of a document; `None` when there is none of that name.
    ///
    /// # Errors
    /// When the name is none, or the file cannot be read.
    pub fn read(
        &self,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
    ) -> Result<Option<Bytes>, DocumentError> {
        let path = path_of(kind, tenant, name)?;
        match self.storage.size(&path) {
            Ok(_) => {}
            // Nothing else says that there is none: who writes in its place would write over it.
            Err(fault) if fault.is_missing => return Ok(None),
            Err(fault) => {
                return Err(DocumentError::Unreadable {
                    path,
                    reason: fault.reason,
                });
            }
        }
        let mut contents = self.storage.read_all(&[&path])?;
        Ok(contents.pop())
    }

    /// Removes a document; that there is none of that name is no error.
    ///
    /// # Errors
    /// When the name is none, or the file cannot be removed.
    pub fn remove(
        &self,
        kind: DocumentKind,
        tenant: &str,
        name: &str,
    ) -> Result<(), DocumentError> {
        let path = path_of(kind, tenant, name)?;
        Ok(self.storage.remove_for_good(&path)?)
    }

    /// A tenant's documents of a kind, by name.
    ///
    /// # Errors
    /// When the tenant's name is none, or the folder cannot be read.
    pub fn list(
        &self,
        kind: DocumentKind,
        tenant: &str,
    ) -> Result<Vec<DocumentMeta>, DocumentError> {
        let folder = folder_of(kind, tenant)?;
        let found = self.storage.list(&folder)?.into_iter();
        let mut documents: Vec<DocumentMeta> = found
            .filter_map(|file| {
                let name = file.path.strip_prefix(&folder)?.strip_prefix('/')?;
                Some(DocumentMeta {
                    name: name.strip_suffix(ENDING)?.to_owned(),
                    bytes: file.bytes,
                })
            })
            .collect();
        documents.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(documents)
    }
}

fn path_of(kind: DocumentKind, tenant: &str, name: &str) -> Result<String, DocumentError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !name.is_empty() && name.len() <= MOST_NAME_BYTES && name.chars().all(is_allowed);
    if !is_name {
        return Err(no_name(name));
    }
    Ok(format!("{}/{name}{ENDING}", folder_of(kind, tenant)?))
}

fn folder_of(kind: DocumentKind, tenant: &str) -> Result<String, DocumentError> {
    if !is_valid_tenant(tenant) {
        return Err(no_name(tenant));
    }
    Ok(format!("{}/tenant={tenant}", kind.folder()))
}

fn no_name(text: &str) -> DocumentError {
    DocumentError::Name {
        text: text.chars().take(MOST_NAME_BYTES).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Backend;
    use crate::ObjectLocation;
    use crate::Store;
    use crate::StoreOptions;
    use crate::block::FileMeta;
    use crate::error::ReadFault;
    use crate::storage::DOCUMENTS_FOLDER;
    use crate::storage::FoundFile;
    use crate::storage::StoredFile;

    const KIND: DocumentKind = DocumentKind::AdHocProfile;

    fn open(directory: &Path, backend: &Backend) -> Store {
        let options = StoreOptions {
            backend: backend.clone(),
            ..StoreOptions::new(directory)
        };
        Store::open(options).expect("the store opens")
    }

    fn names(store: &Store, tenant: &str) -> Vec<String> {
        let listed = store.documents().list(KIND, tenant).expect("a list");
        listed.into_iter().map(|document| document.name).collect()
    }

    #[test]
    fn what_is_written_is_there_after_a_restart_and_a_new_catalog() {
        let bucket = Backend::Object(ObjectLocation {
            store: Arc::new(object_store::memory::InMemory::new()),
            prefix: object_store::path::Path::from("a/b"),
        });
        for backend in [Backend::Filesystem, bucket] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let store = open(directory.path(), &backend);
            let put = |tenant: &str, name: &str, content: &'static [u8]| {
                let content = Bytes::from_static(content);
                let written = store.documents().put(KIND, tenant, name, content);
                written.expect("it is written");
            };
            put("t", "b.tmp", b"old");
            put("t", "b.tmp", b"new");
            put("t", "a", b"");
            put("tt", "c", b"of another tenant");
            drop(store);
            std::fs::remove_file(directory.path().join("catalog.sqlite")).expect("it is there");
            let store = open(directory.path(), &backend);
            assert_eq!(names(&store, "t"), ["a", "b.tmp"]);
            assert_eq!(names(&store, "nobody"), Vec::<String>::new());
            let read = |tenant: &str, name: &str| {
                let content = store.documents().read(KIND, tenant, name);
                content.expect("it is read")
            };
            assert_eq!(read("t", "b.tmp"), Some(Bytes::from_static(b"new")));
            assert_eq!(read("t", "c"), None);
            let settings = store.documents().list(DocumentKind::Settings, "t");
            assert_eq!(settings.expect("a list"), []);
            for name in ["a", "a", "never-there"] {
                let removed = store.documents().remove(KIND, "t", name);
                removed.expect("it is gone");
            }
            assert_eq!(names(&store, "t"), ["b.tmp"]);
        }
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = open(directory.path(), &Backend::Filesystem);
        let long = "x".repeat(MOST_NAME_BYTES + 1);
        for (tenant, name) in [
            ("t", ""),
            ("t", "a/b"),
            ("t", "../a"),
            ("t", "é"),
            ("t", &long),
            ("..", "a"),
            ("a/b", "a"),
        ] {
            let error = store.documents().read(KIND, tenant, name);
            let error = error.expect_err("no name");
            assert!(matches!(error, DocumentError::Name { .. }), "{error}");
        }
        let longest = "x".repeat(MOST_NAME_BYTES);
        let written = store.documents().put(KIND, "t", &longest, Bytes::new());
        written.expect("a name");
        assert!(directory.path().join(DOCUMENTS_FOLDER).is_dir());
    }

    /// A storage that answers every question for a size with one kind of error.
    #[derive(Debug)]
    struct Faulty(std::io::ErrorKind);

    impl BlockStorage for Faulty {
        fn put(&self, _: &str, _: Bytes) -> Result<(), StoreError> {
            unreachable!("nothing is written")
        }

        fn open(&self, _: &FileMeta) -> Result<StoredFile, ReadFault> {
            unreachable!("nothing is opened")
        }

        fn read(&self, _: &FileMeta) -> Result<Bytes, ReadFault> {
            unreachable!("nothing is read")
        }

        fn read_all(&self, _: &[&str]) -> Result<Vec<Bytes>, StoreError> {
            unreachable!("nothing is read")
        }

        fn size(&self, _: &str) -> Result<u64, ReadFault> {
            Err(std::io::Error::from(self.0).into())
        }

        fn remove(&self, _: &str) -> Result<(), StoreError> {
            unreachable!("nothing is removed")
        }

        fn remove_for_good(&self, _: &str) -> Result<(), StoreError> {
            unreachable!("nothing is removed")
        }

        fn list(&self, _: &str) -> Result<Vec<FoundFile>, StoreError> {
            Ok(Vec::new())
        }

        fn is_remote(&self) -> bool {
            true
        }

        fn copied_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn only_what_is_not_there_is_none() {
        use std::io::ErrorKind;
        let read = |kind| {
            let documents = Documents {
                storage: Arc::new(Faulty(kind)),
                reserve: None,
            };
            documents.read(KIND, "t", "a")
        };
        assert_eq!(read(ErrorKind::NotFound).expect("none"), None);
        for kind in [
            ErrorKind::InvalidData,
            ErrorKind::UnexpectedEof,
            ErrorKind::PermissionDenied,
            ErrorKind::Other,
        ] {
            let error = read(kind).expect_err("it may be there");
            assert!(matches!(error, DocumentError::Unreadable { .. }), "{error}");
        }
    }

    #[test]
    fn a_full_volume_takes_no_documents() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = Documents::new(
            Arc::clone(
                &open(directory.path(), &Backend::Filesystem)
                    .documents()
                    .storage,
            ),
            SpaceReserve {
                directory: directory.path().to_owned(),
                min_free_bytes: 0,
            },
        );
        store
            .put(KIND, "t", "a", Bytes::new())
            .expect("it is written");
        store.reserve = Some(SpaceReserve {
            // A file system whose size is none has nothing free.
            directory: "/proc".into(),
            min_free_bytes: 0,
        });
        let error = store.put(KIND, "t", "a", Bytes::from_static(b"x"));
        let error = error.expect_err("nothing is free");
        assert!(matches!(error, DocumentError::NoRoom { .. }), "{error}");
    }
}
