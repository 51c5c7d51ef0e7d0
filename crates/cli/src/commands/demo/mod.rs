//! `candela demo`: the window over a day that was made up, with planted truths.

mod folder;
mod links;

use std::process::ExitCode;
use std::sync::Arc;

use candela_demo::Demo;
use candela_model::Profile;
use candela_query::Engine;
use candela_server::Annotation;
use candela_server::Server;
use candela_server::ServerOptions;
use candela_store::Clock;
use candela_store::ManualClock;
use candela_store::Store;
use candela_store::StoreOptions;
use candela_store::SystemClock;
use tokio::sync::mpsc;

use self::folder::DemoFolder;
use self::folder::Found;
use super::browser::open_browser;
use super::server;
use super::server::Companions;
use super::signals;
use crate::args::serve::DemoArgs;
use crate::config;
use crate::config::Settings;
use crate::errors;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// Whose profiles they are where nobody has to say who asks.
const TENANT: &str = "anonymous";

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

pub(crate) fn run(arguments: &DemoArgs) -> Result<ExitCode, CliError> {
    let folder = DemoFolder::new(arguments.data_dir.as_deref())?;
    let settings = config::load_given(&flags(arguments, &folder))?;
    server::block_on(serve(arguments, &settings, &folder))?;
    folder.close()?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    arguments: &DemoArgs,
    settings: &Settings,
    folder: &DemoFolder,
) -> Result<(), CliError> {
    let stopped = signals::stopped()?;
    tokio::pin!(stopped);
    let clock = clock_of(arguments);
    let now_ns = clock.now_ns();
    let found = folder.look(arguments.seed, now_ns)?;
    let store = server::open_store_of(StoreOptions {
        clock: Arc::clone(&clock),
        ..server::store_options(settings)?
    })?;
    // The port before the data: when another candela has it, nothing was made in vain.
    let bound = bind(settings, &store, clock).await?;
    let demo = match found {
        Found::Empty => {
            output::note("making up 24 h of profiles");
            let demo = Demo::new(arguments.seed, now_ns);
            folder.mark_begun(arguments.seed, demo.end_ns())?;
            let filled = tokio::select! {
                filled = fill(&store, &demo) => filled,
                () = &mut stopped => Err(CliError::new(
                    ExitStatus::Interrupted,
                    "interrupted before all of the data was there",
                )),
            };
            if let Err(error) = filled {
                drop(bound);
                return errors::all_of([Err(error), server::close(store).await]);
            }
            annotate_deploys(&store, &demo)?;
            folder.mark_whole(arguments.seed, demo.end_ns())?;
            demo
        }
        Found::Whole { end_ns } => Demo::new(arguments.seed, end_ns),
    };
    let url = bound.url();
    output::note(&format!("candela is at {url}"));
    if let Found::Whole { .. } = found {
        let place = folder.path().display();
        output::note(&format!(
            "the data of {place} is less than an hour old and is shown again"
        ));
    }
    output::note(&links::description(&demo, arguments.seed, &url));
    if arguments.open {
        open_browser(&url);
    }
    let served = bound.run(stopped).await;
    let served = served.or_exit(ExitStatus::Failed, "server");
    errors::all_of([served, server::close(store).await])
}

fn clock_of(arguments: &DemoArgs) -> Arc<dyn Clock> {
    match arguments.at {
        Some(seconds) => Arc::new(ManualClock::at(seconds * 1_000_000_000)),
        None => Arc::new(SystemClock),
    }
}

async fn bind(
    settings: &Settings,
    store: &Store,
    clock: Arc<dyn Clock>,
) -> Result<Server, CliError> {
    // Without the ports of collectors, which another candela may have, and without anybody elsewhere
    // who is asked for symbols.
    let options = ServerOptions {
        otlp_grpc: None,
        otlp_http: None,
        clock,
        ..server::server_options(
            settings,
            Companions {
                status: None,
                self_profiler: super::self_profile::profiler(),
            },
        )?
    };
    let engine = Engine::with_cache(store.clone(), options.query_cache_bytes);
    let bound = Server::bind(options, store.clone(), engine).await;
    bound.map_err(|error| CliError::failed(error.to_string()))
}

/// Writes the day to blocks, hour by hour, while the next hour is made on a thread of its own.
async fn fill(store: &Store, demo: &Demo) -> Result<(), CliError> {
    let (sender, mut hours) = mpsc::channel::<Vec<Profile>>(1);
    let making = demo.clone();
    let maker = tokio::task::spawn_blocking(move || {
        for hour in 0..making.hours() {
            // Nobody waits for the rest when this was interrupted.
            if sender.blocking_send(making.profiles_of_hour(hour)).is_err() {
                return;
            }
        }
    });
    while let Some(profiles) = hours.recv().await {
        for profile in profiles {
            let appended = store.append(TENANT, profile).await;
            appended.or_exit(ExitStatus::Failed, "cannot store the data")?;
        }
        let flushed = store.flush().await;
        flushed.or_exit(ExitStatus::Failed, "cannot store the data")?;
    }
    maker
        .await
        .or_exit(ExitStatus::Failed, "cannot make the data")
}

/// The deploys of the day, as who deploys would tell of them.
fn annotate_deploys(store: &Store, demo: &Demo) -> Result<(), CliError> {
    let annotations = demo.deploys().into_iter().map(|deploy| {
        let time_ms = deploy.time_ns / NANOSECONDS_PER_MILLISECOND;
        let labels = [
            ("service_name", deploy.service),
            ("version", deploy.version),
        ];
        Annotation {
            time_ms,
            created_ms: time_ms,
            kind: "deploy".to_owned(),
            text: deploy.text,
            labels: labels
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            author: "demo".to_owned(),
            ..Annotation::default()
        }
    });
    let kept = candela_server::annotate(store, TENANT, annotations);
    kept.or_exit(ExitStatus::Failed, "cannot store the deploys")
}

/// The keys that make a store and a server of it. Files and variables are for servers of real data.
fn flags(arguments: &DemoArgs, folder: &DemoFolder) -> Vec<(&'static str, &'static str, String)> {
    let data_dir = folder.path().display().to_string();
    let mut flags = vec![
        ("store.data_dir", "--data-dir", data_dir),
        ("store.sync", "sync", "os".to_owned()),
        ("store.max_volume_percent", "share", "100".to_owned()),
        ("store.min_free_space", "space", "0".to_owned()),
    ];
    if let Some(listen) = &arguments.listen {
        flags.push(("server.listen", "--listen", listen.clone()));
    }
    if arguments.insecure {
        flags.push(("auth.insecure", "--insecure", "true".to_owned()));
    }
    flags
}
