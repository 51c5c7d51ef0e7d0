//! `candela up`: agent, server and window in one process.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;

use candela_agent::Agent;
use candela_agent::AgentHandle;
use candela_agent::AgentObserver;
use candela_agent::ExportError;
use candela_agent::InProcess;
use candela_agent::OnDemandHandle;
use candela_server::LocalIngest;
use candela_server::Server;
use candela_server::StatusSource;
use candela_server::TenantName;
use candela_store::AppendError;
use tokio::runtime::Handle;

use super::backend;
use super::browser::open_browser;
use super::on_demand;
use super::private::keep_private;
use super::sampling;
use super::server;
use super::server::Companions;
use crate::args::GlobalArgs;
use crate::args::serve::UpArgs;
use crate::config::Settings;
use crate::errors;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, arguments: &UpArgs) -> Result<ExitCode, CliError> {
    let mut flags = arguments.server.overrides();
    flags.extend(arguments.sampling.overrides());
    let settings = super::settings(global, flags)?;
    keep_private(&settings.data_dir(&super::environment()));
    server::block_on(async {
        let stopped = super::signals::stopped()?;
        let store = server::open_store(&settings)?;
        let figures = Arc::new(AgentFigures::default());
        let status: Arc<dyn StatusSource> = Arc::<AgentFigures>::clone(&figures);
        let companions = Companions {
            status: Some(status),
            self_profiler: super::self_profile::profiler(),
        };
        // The port before the agent: when another candela has it, nothing was sampled in vain.
        let bound = server::bind(&settings, &store, companions).await?;
        let on_demand = match arguments.no_agent {
            true => None,
            false => on_demand::bind(&settings, settings.boolean("agent.sampling"))?,
        };
        let agent = if arguments.no_agent {
            None
        } else {
            start_agent(&settings, local_ingest(global, &settings, &bound)?)
        };
        let url = bound.url();
        output::note(&format!("candela is at {url}"));
        let data_dir = settings.data_dir(&super::environment());
        let place = backend::place(&settings, &data_dir);
        output::note(&format!("profiles are kept in {place}"));
        if let Some(agent) = &agent {
            figures.show(agent.observer());
            sampling::tell_missing(agent);
            let doing = sampling::describe(&sampling::options(&settings)?);
            output::note(&format!(
                "{doing}; the first profiles are there in 3 s; Ctrl-C ends it"
            ));
        }
        let on_demand = on_demand::start(on_demand, agent.as_ref())?;
        if arguments.open {
            open_browser(&url);
        }
        let served = bound.run(stopped).await;
        // Each of these loses data when it is left out, so no failure of another skips it.
        let served = served.or_exit(ExitStatus::Failed, "server");
        let agent_stopped = stop_agent(agent, on_demand).await;
        let closed = server::close(store).await;
        errors::all_of([served, agent_stopped, closed])
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What this host's agent measures is of the tenant of `--tenant`, where there are several.
fn local_ingest(
    global: &GlobalArgs,
    settings: &Settings,
    server: &Server,
) -> Result<LocalIngest, CliError> {
    let ingest = server.local_ingest();
    let tenant = global.tenant.as_ref();
    let Some(tenant) = tenant.filter(|_| settings.boolean("auth.multi_tenancy")) else {
        return Ok(ingest);
    };
    let tenant = TenantName::new(tenant);
    let tenant = tenant.map_err(|error| CliError::usage(format!("--tenant: {error}")))?;
    Ok(ingest.of_tenant(tenant))
}

/// The agent, or a clear word on why there is none: history can be looked at without one, and other
/// profilers can push, so its absence is no reason to refuse the rest.
fn start_agent(settings: &Settings, ingest: LocalIngest) -> Option<AgentHandle> {
    let started = sampling::options(settings).and_then(|options| {
        let exporter = Box::new(store_exporter(ingest, Handle::current()));
        Agent::start(options, exporter).map_err(|error| sampling::failure(&error))
    });
    match started {
        Ok(agent) => Some(agent),
        Err(error) => {
            output::print_error(&error);
            output::note(
                "going on without the agent: nothing of this host is sampled; `candela doctor` tells more",
            );
            None
        }
    }
}

/// The agent's profiles go where everybody's go: through the limits and the durable log.
fn store_exporter(ingest: LocalIngest, runtime: Handle) -> InProcess {
    InProcess::new(move |profile| {
        let appended = runtime.block_on(ingest.append(profile.clone()));
        appended.map_err(|error| {
            let reason = error.to_string();
            match error {
                AppendError::DiskFull { .. }
                | AppendError::Overloaded { .. }
                | AppendError::Log { .. }
                | AppendError::Fenced { .. } => ExportError::Unavailable { reason },
                _ => ExportError::Rejected { reason },
            }
        })
    })
}

/// The last window still goes into the store, so the agent stops before the store does. It blocks,
/// and the store needs this runtime meanwhile.
async fn stop_agent(
    agent: Option<AgentHandle>,
    on_demand: Option<OnDemandHandle>,
) -> Result<(), CliError> {
    let Some(agent) = agent else {
        return Ok(());
    };
    let stopped = tokio::task::spawn_blocking(move || {
        drop(on_demand);
        agent.stop()
    });
    let stopped = stopped.await;
    let stopped = stopped.or_exit(ExitStatus::Failed, "agent")?;
    stopped.map(drop).or_exit(ExitStatus::Failed, "agent")
}

/// Tells the server about the agent, which starts after the server has its port.
#[derive(Default)]
struct AgentFigures(OnceLock<AgentObserver>);

impl AgentFigures {
    fn show(&self, observer: AgentObserver) {
        // There is one agent a process.
        let _ = self.0.set(observer);
    }
}

impl StatusSource for AgentFigures {
    fn status_json(&self) -> serde_json::Value {
        let Some(observer) = self.0.get() else {
            return serde_json::Value::Null;
        };
        serde_json::to_value(observer.status()).expect("counts under texts are always JSON")
    }

    fn metrics(&self, out: &mut String) {
        if let Some(observer) = self.0.get() {
            observer.status().write_metrics(out);
        }
    }
}
