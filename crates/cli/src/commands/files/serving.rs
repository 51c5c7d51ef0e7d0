//! A server of a moment over files: whatever can be asked of a server can be asked of them.

use std::future::Future;
use std::path::Path;

use candela_model::SERVICE_NAME_LABEL;
use candela_query::Engine;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_store::Store;

use super::input::FileProfile;
use super::input::Input;
use super::input::shown_source;
use crate::args::GlobalArgs;
use crate::args::files::ReadingArgs;
use crate::commands::server;
use crate::commands::server::Companions;
use crate::commands::signals;
use crate::config;
use crate::errors;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// The label that tells files apart which are of one service.
const FILE_LABEL: &str = "file";

/// As old as a file may be.
const FOR_EVER: &str = "36500d";

/// The files, each a service where it names none itself.
pub(crate) fn read(
    global: &GlobalArgs,
    reading: &ReadingArgs,
    files: &[String],
) -> Result<Vec<FileProfile>, CliError> {
    let files = files.iter();
    files.map(|file| read_one(global, reading, file)).collect()
}

/// Puts profiles into a store that goes away with the command, and answers questions about them until
/// `until` has come, or somebody interrupts. `ready` is told the address, once it answers.
pub(crate) fn serve(
    files: Vec<FileProfile>,
    listen: Option<&str>,
    until: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce(&str),
) -> Result<(), CliError> {
    let folder = tempfile::Builder::new()
        .prefix("candela-files-")
        .tempdir()
        .or_exit(ExitStatus::Failed, "folder for the files' store")?;
    let settings = config::load_given(&flags(listen, folder.path()))?;
    server::block_on(async {
        let interrupted = signals::stopped()?;
        let stopped = async {
            tokio::select! {
                () = interrupted => {}
                () = until => {}
            }
        };
        let store = server::open_store(&settings)?;
        // Its own ports are of no use here, and another candela may have them.
        let options = ServerOptions {
            otlp_grpc: None,
            otlp_http: None,
            ..server::server_options(&settings, Companions::default())?
        };
        let engine = Engine::with_cache(Store::clone(&store), options.query_cache_bytes);
        let bound = Server::bind(options, Store::clone(&store), engine)
            .await
            .map_err(|error| CliError::failed(error.to_string()))?;
        let ingest = bound.local_ingest();
        for file in files {
            let appended = ingest.append(file.profile).await;
            appended.or_exit(ExitStatus::Failed, "file")?;
        }
        ready(&bound.url());
        let served = bound.run(stopped).await;
        let served = served.or_exit(ExitStatus::Failed, "server");
        errors::all_of([served, server::close(store).await])
    })
}

fn read_one(
    global: &GlobalArgs,
    reading: &ReadingArgs,
    file: &str,
) -> Result<FileProfile, CliError> {
    let shown = shown_source(file);
    let name = Path::new(&shown).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let service = if file == "-" { "stdin" } else { &name };
    let input = Input::new(global, reading).with(|options| {
        service.clone_into(&mut options.default_service);
        options.labels.set(FILE_LABEL, &shown);
    });
    let mut read = input.read_all(&[file])?;
    for series in &mut read.profile.series {
        series.labels.set_default(SERVICE_NAME_LABEL, service);
    }
    Ok(read)
}

/// The keys that make a store and a server of a moment.
fn flags(listen: Option<&str>, folder: &Path) -> Vec<(&'static str, &'static str, String)> {
    let listen = listen.unwrap_or("127.0.0.1:0");
    let mut flags = vec![
        ("store.data_dir", "folder", folder.display().to_string()),
        ("server.listen", "--listen", listen.to_owned()),
        ("store.sync", "sync", "os".to_owned()),
        ("store.max_volume_percent", "share", "100".to_owned()),
        ("store.min_free_space", "space", "0".to_owned()),
        // The limits of a server are for strangers; here somebody asks of his own files.
        ("server.sql_rows", "rows", "100000000".to_owned()),
        ("server.sql_timeout", "time", "1h".to_owned()),
        ("server.sql_memory", "memory", "4GiB".to_owned()),
    ];
    for key in [
        "store.retention",
        "store.retention_ten_minutes",
        "store.retention_hourly",
    ] {
        flags.push((key, "retention", FOR_EVER.to_owned()));
    }
    flags
}
