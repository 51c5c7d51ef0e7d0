//! Programs and libraries whose code can be shown: on this host under the path that a profile has, or
//! sent as symbol files. A file counts only with the build id that the profile has: another build has
//! other code at the same address.

use std::path::Path;
use std::sync::Arc;

use candela_symbols::DebugFileSearch;
use candela_symbols::ObjectFile;
use candela_symbols::Symbolizer;
use candela_symbols::SymbolizerOptions;

use crate::symbolization::Symbolization;

/// Why the code of a binary is not at hand.
pub(crate) struct MissingBinary {
    /// For programs, one word.
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

const UPLOAD_HINT: &str = "run the server where the program is, or send the program itself: candela symbols upload PROGRAM";

pub(crate) fn find_binary(
    symbolization: Option<&Symbolization>,
    path: &str,
    build_id: Option<&str>,
) -> Result<Symbolizer, MissingBinary> {
    let Some(build_id) = build_id.filter(|build_id| !build_id.is_empty()) else {
        return Err(MissingBinary {
            state: "no_build_id",
            message: if path.is_empty() {
                "the profile does not say which program the function is of".to_owned()
            } else {
                format!("the profile has no build id of {path}, so no file is known to be it")
            },
            hint: "link with -Wl,--build-id; code of interpreters and of the kernel is not shown",
        });
    };
    let archive = symbolization.map(|symbolization| &symbolization.sources.archive);
    let mut debug_files = DebugFileSearch::default();
    debug_files
        .directories
        .extend(archive.map(|archive| archive.directory().to_owned()));
    let symbolizer = |object: Arc<ObjectFile>| {
        let options = SymbolizerOptions {
            debug_files: debug_files.clone(),
            debuginfod: None,
        };
        Symbolizer::new(object, options)
    };
    let uploaded = archive.and_then(|archive| archive.open_object(build_id).ok().flatten());
    if let Some(object) = uploaded.filter(|object| object.has_code()) {
        return Ok(symbolizer(object));
    }
    let missing = |state, message| MissingBinary {
        state,
        message,
        hint: UPLOAD_HINT,
    };
    if !path.starts_with('/') {
        let message =
            format!("{path} is no file, and no program with build id {build_id} was sent");
        return Err(missing("missing", message));
    }
    match ObjectFile::open_named_in_profile(Path::new(path)) {
        Ok(object) if object.build_id().to_string() == build_id => Ok(symbolizer(Arc::new(object))),
        // Whoever may send profiles names any path in them: which build is there is not for all to know.
        Ok(_) => Err(missing(
            "other_build",
            format!("{path} is another build here than {build_id}"),
        )),
        Err(_) => Err(missing(
            "missing",
            format!("{path} is not on this host, and no program with build id {build_id} was sent"),
        )),
    }
}
