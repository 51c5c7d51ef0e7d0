//! `candela open`: the window over local files.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SERVICE_NAME_LABEL;
use candela_query::Engine;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_store::Store;

use super::input::Input;
use crate::args::GlobalArgs;
use crate::args::files::OpenArgs;
use crate::commands::browser::open_browser;
use crate::commands::server;
use crate::commands::server::Companions;
use crate::commands::signals;
use crate::config;
use crate::errors;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// The label that tells files apart which are of one service.
const FILE_LABEL: &str = "file";

/// As old as a file may be.
const FOR_EVER: &str = "36500d";

/// Files are put into a store of their own that goes away with the command, so that whatever the window
/// can do with a server it can do with them.
pub(crate) fn run(global: &GlobalArgs, arguments: &OpenArgs) -> Result<ExitCode, CliError> {
    let profiles: Result<Vec<Profile>, CliError> = arguments
        .files
        .iter()
        .map(|file| read(global, arguments, file))
        .collect();
    let profiles = profiles?;
    let link = link_to(&profiles);
    let folder = tempfile::Builder::new()
        .prefix("candela-open-")
        .tempdir()
        .or_exit(ExitStatus::Failed, "folder for the opened files")?;
    let settings = config::load_given(&flags(arguments, folder.path()))?;
    server::block_on(async {
        let stopped = signals::stopped()?;
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
        for profile in profiles {
            let appended = ingest.append(profile).await;
            appended.or_exit(ExitStatus::Failed, "file")?;
        }
        let url = format!("{}/{link}", bound.url());
        output::note(&format!("candela is at {url}"));
        output::note("the files are shown until Ctrl-C");
        if !arguments.no_browser {
            open_browser(&url);
        }
        let served = bound.run(stopped).await;
        let served = served.or_exit(ExitStatus::Failed, "server");
        errors::all_of([served, server::close(store).await])
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read(global: &GlobalArgs, arguments: &OpenArgs, file: &str) -> Result<Profile, CliError> {
    let name = Path::new(file).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let service = if file == "-" { "stdin" } else { &name };
    let input = Input::new(global, &arguments.reading).with(|options| {
        service.clone_into(&mut options.default_service);
        options.labels.set(FILE_LABEL, file);
    });
    let mut profile = input.read_all(&[file])?;
    for series in &mut profile.series {
        series.labels.set_default(SERVICE_NAME_LABEL, service);
    }
    Ok(profile)
}

/// The keys that make a store and a server of a moment.
fn flags(arguments: &OpenArgs, folder: &Path) -> Vec<(&'static str, &'static str, String)> {
    let listen = arguments.listen.as_deref().unwrap_or("127.0.0.1:0");
    let mut flags = vec![
        ("store.data_dir", "folder", folder.display().to_string()),
        ("server.listen", "--listen", listen.to_owned()),
        ("store.sync", "sync", "os".to_owned()),
        ("store.max_volume_percent", "share", "100".to_owned()),
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

/// The address of the window that shows all of it: the time of the profiles and their most telling type.
fn link_to(profiles: &[Profile]) -> String {
    let series = || profiles.iter().flat_map(|profile| &profile.series);
    let starts = series().map(|series| series.start_ns);
    let ends = series().map(|series| series.start_ns.saturating_add(series.duration_ns));
    let from = starts.min().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND;
    // A profile of a moment lies within the next second.
    let to = ends.max().unwrap_or_default() / NANOSECONDS_PER_MILLISECOND + 1_000;
    let mut link = format!("?v=1&live=0&from={from}&to={to}");
    let types = series().map(|series| &series.profile_type);
    if let Some(shown) = types.min_by_key(|profile_type| rank(profile_type)) {
        write!(link, "&type={shown}").expect("a string takes all");
    }
    link
}

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

fn rank(profile_type: &ProfileType) -> usize {
    let order = ["nanoseconds", "bytes"];
    let unit = profile_type.sample_unit.as_str();
    let position = order.iter().position(|known| *known == unit);
    position.unwrap_or(order.len())
}
