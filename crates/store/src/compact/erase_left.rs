//! What an erasure may have left: blocks that cannot be read, files that could not be deleted, and
//! files that nobody reads.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use futures::TryStreamExt;
use object_store::ObjectStore;

use super::erase::Erasure;
use crate::error::StoreError;
use crate::shared::Shared;
use crate::snapshot::QuarantinedBlock;
use crate::storage::Bucket;
use crate::sync::lock;
use crate::sync::read;

/// What a damaged segment of the log is called, so that nobody takes it for one.
const DAMAGED_SEGMENT: &str = ".wal.damaged";

impl Shared {
    /// Whether nothing has what was erased any more.
    ///
    /// A block that was set aside may be whole again tomorrow, when its volume is back, and then
    /// answers: an erasure that passed over it would have said what is not true. To remove it would
    /// take what others stored in it, which can be restored as well. So whoever owns the files has
    /// to say what becomes of them, and until then this is an error. A block whose manifest is
    /// damaged may be anybody's and of any time.
    pub(super) fn check_erased(&self, tenant: &str, erasure: &Erasure) -> Result<(), StoreError> {
        let unread = self.unread_blocks(tenant, erasure);
        if !unread.is_empty() {
            return Err(StoreError::NotErasedIn { blocks: unread });
        }
        // Nobody is in the middle of deleting them.
        let _no_deletion = lock(&self.retention);
        let undeleted = self
            .removed_blocks
            .undeleted(tenant, &|meta| erasure.may_be_in(meta));
        if undeleted.is_empty() {
            return Ok(());
        }
        Err(StoreError::ErasedInFiles { names: undeleted })
    }

    fn unread_blocks(&self, tenant: &str, erasure: &Erasure) -> Vec<QuarantinedBlock> {
        let tenants = read(&self.tenants);
        let quarantined = tenants.get(tenant).into_iter();
        let quarantined = quarantined.flat_map(|state| &state.quarantined);
        let of_tenant = quarantined.filter(|(meta, _)| erasure.may_be_in(meta));
        of_tenant
            .map(QuarantinedBlock::from)
            .chain(self.damaged_manifests.iter().cloned())
            .collect()
    }

    /// Catalogs that were replaced and damaged segments of the log. They were kept because somebody
    /// may want them back, so they are named and not removed.
    pub(super) fn leftover_files(&self) -> Result<Vec<String>, StoreError> {
        let catalog = self.data_dir.catalog();
        let file_name = catalog.file_name().unwrap_or_default().to_string_lossy();
        // Its own two files beside it have a dash in this place.
        let copies = format!("{file_name}.");
        let directory = catalog.parent().unwrap_or(Path::new("."));
        let mut found = files_of(directory, &|name| name.starts_with(&copies))?;
        let is_damaged = |name: &str| name.ends_with(DAMAGED_SEGMENT);
        found.extend(files_of(&self.data_dir.log(), &is_damaged)?);
        if let Some(bucket) = &self.bucket {
            found.extend(damaged_segments_of(&bucket.folder("wal")?)?);
        }
        found.sort();
        Ok(found)
    }
}

fn files_of(directory: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(StoreError::io("read", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read", directory))?;
        if entry.file_name().to_str().is_some_and(is_wanted) {
            found.push(entry.path().display().to_string());
        }
    }
    Ok(found)
}

fn damaged_segments_of(logs: &Bucket) -> Result<Vec<String>, StoreError> {
    let (client, prefix) = (logs.client(), logs.location().prefix.clone());
    let listed = logs.run(async move { client.list(Some(&prefix)).try_collect::<Vec<_>>().await });
    let objects = listed.map_err(|error| logs.error("list", "", &error))?;
    let paths = objects
        .into_iter()
        .map(|object| object.location.to_string());
    Ok(paths
        .filter(|path| path.ends_with(DAMAGED_SEGMENT))
        .collect())
}
