//! Where a server finds the names of stored addresses, from the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use candela_server::SymbolSources;
use candela_symbols::ArchiveLimits;
use candela_symbols::Debuginfod;
use candela_symbols::DebuginfodOptions;
use candela_symbols::SymbolArchive;

use crate::commands::debuginfod_urls;
use crate::commands::environment;
use crate::config::Settings;
use crate::errors::CliError;
use crate::output;

/// The folder of files that were sent, below that of fetched ones.
const UPLOADED: &str = "uploaded";

/// Opens the folder of symbol files, and starts the client of debuginfod servers where there are
/// any.
pub(crate) fn symbol_sources(settings: &Settings) -> Result<SymbolSources, CliError> {
    let limits = ArchiveLimits {
        max_file_bytes: settings.bytes("symbols.max_file_size"),
        max_bytes: settings.bytes("symbols.max_size"),
    };
    let archive = SymbolArchive::open(&uploaded_folder(settings), limits);
    let archive = archive.map_err(|error| CliError::failed(format!("symbols: {error}")))?;
    Ok(SymbolSources {
        archive: Arc::new(archive),
        debuginfod: debuginfod(settings),
    })
}

/// Where files that were sent are kept.
pub(super) fn uploaded_folder(settings: &Settings) -> PathBuf {
    fetched_folder(settings).join(UPLOADED)
}

/// Where files of debuginfod servers are kept.
pub(super) fn fetched_folder(settings: &Settings) -> PathBuf {
    settings.data_dir(&environment()).join("symbols")
}

/// Names that are missing are no reason not to start.
fn debuginfod(settings: &Settings) -> Option<Arc<Debuginfod>> {
    let servers = debuginfod_urls(settings);
    if servers.is_empty() {
        return None;
    }
    let folder = fetched_folder(settings);
    match Debuginfod::start(&DebuginfodOptions::new(servers, folder.clone())) {
        Ok(client) => Some(Arc::new(client)),
        Err(error) => {
            output::note(&format!(
                "going on without debuginfod: {}: {error}",
                folder.display()
            ));
            None
        }
    }
}
