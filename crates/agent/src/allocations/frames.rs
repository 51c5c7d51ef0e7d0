//! Stacks of allocations begin in who asked for memory.

use std::path::Path;

use crate::processes::Code;
use crate::window::ProcessView;

/// The frames without those of the library that told of the allocation. Where a walk came no further they stay.
pub(crate) fn callers_of_library<'a>(process: &ProcessView, user: &'a [u64]) -> &'a [u64] {
    let is_caller = |&address: &u64| {
        let mapping = process.mappings.find(address);
        match mapping.map(|mapping| &mapping.code) {
            Some(Code::Object(object)) => !is_library(&object.path),
            Some(Code::Anonymous) | None => true,
        }
    };
    let first = user.iter().position(is_caller).unwrap_or_default();
    &user[first..]
}

/// Whether a file is the library, wherever it lies.
pub(crate) fn is_library(path: &str) -> bool {
    Path::new(path).file_name() == Some(candela_preload::FILE_NAME.as_ref())
}
