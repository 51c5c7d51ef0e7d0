//! `candela agent`: this host's samples to a server elsewhere.

use std::process::ExitCode;

use candela_agent::Agent;
use candela_agent::AgentOptions;
use candela_agent::Exporter;

use super::fleet_node;
use super::on_demand;
use super::private::keep_private;
use super::sampling;
use crate::args::GlobalArgs;
use crate::args::serve::AgentArgs;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

pub(crate) fn run(global: &GlobalArgs, arguments: &AgentArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, arguments.overrides(global.server.as_deref()))?;
    keep_private(&settings.data_dir(&super::environment()));
    let server = settings
        .text("agent.server")
        .expect("the key has a default")
        .to_owned();
    let address = server;
    if let Some(daemon) = fleet_node::one_daemon(&settings) {
        return run_one_daemon(global, &settings, &address, &daemon);
    }
    let exporter = sampling::exporter(global, &address)?;
    // Without the password that the address may have.
    let server = exporter.name();
    let options = AgentOptions {
        spool: Some(sampling::spool(&settings)),
        ..sampling::options(&settings)?
    };
    let doing = sampling::describe(&options);
    let of_fleet = options.clone();
    let mut stop = super::signals::stop_signal()?;
    // The port before the agent: when somebody has it, nothing was sampled in vain.
    let on_demand = on_demand::bind(&settings, false)?;
    let agent =
        Agent::start(options, Box::new(exporter)).map_err(|error| sampling::failure(&error))?;
    output::note(&format!("{doing}, sending to {server}"));
    sampling::tell_missing(&agent);
    let on_demand = on_demand::start(on_demand, Some(&agent))?;
    let fleet = fleet_node::start(global, &settings, &address, &of_fleet)?;
    stop.wait();
    drop(fleet);
    drop(on_demand);
    let status = agent.stop().or_exit(ExitStatus::Failed, "agent")?;
    if status.delivery.spooled_profiles > 0 {
        output::note(&format!(
            "{} profiles wait in the spool for the next start",
            status.delivery.spooled_profiles
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Nothing is sampled but for one daemon of the fleet's document: there is an agent for each of them, as in the
/// DaemonSets of `candela infra render kubernetes`.
fn run_one_daemon(
    global: &GlobalArgs,
    settings: &Settings,
    address: &str,
    daemon: &str,
) -> Result<ExitCode, CliError> {
    let mut stop = super::signals::stop_signal()?;
    let options = sampling::options(settings)?;
    let fleet = fleet_node::start(global, settings, address, &options)?;
    output::note(&format!(
        "running {daemon} as the fleet's document has it, and nothing else"
    ));
    stop.wait();
    drop(fleet);
    Ok(ExitCode::SUCCESS)
}
