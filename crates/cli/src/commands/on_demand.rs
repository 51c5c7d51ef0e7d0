//! Profiles on demand beside the agent: what `up` and `agent` share.

use candela_agent::AgentHandle;
use candela_agent::OnDemandError;
use candela_agent::OnDemandHandle;
use candela_agent::OnDemandOptions;
use candela_agent::OnDemandServer;

use super::secrets::itself_or_file;
use super::tls::tls_options;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

const ENABLED: &str = "agent.on_demand.enabled";
const LISTEN: &str = "agent.on_demand.listen";

/// Takes the port, if the endpoint is wanted. A default port that is taken is no reason not to start.
///
/// # Errors
/// When a port that somebody chose is taken or cannot be used, when other hosts could ask without a
/// token, or the token cannot be read.
pub(crate) fn bind(
    settings: &Settings,
    is_on_by_default: bool,
) -> Result<Option<OnDemandServer>, CliError> {
    if !is_wanted(settings, is_on_by_default) {
        return Ok(None);
    }
    match OnDemandServer::bind(options(settings)?) {
        Ok(server) => Ok(Some(server)),
        Err(error @ OnDemandError::PortTaken { .. }) if !settings.is_explicit(LISTEN) => {
            tracing::warn!("{error}; going on without profiles on demand");
            Ok(None)
        }
        Err(error) => Err(CliError::failed(error.to_string())),
    }
}

/// Serves, and says where. Who may not sample for himself may not for others: without an agent there is none.
///
/// # Errors
/// When the system refuses a thread.
pub(crate) fn start(
    server: Option<OnDemandServer>,
    agent: Option<&AgentHandle>,
) -> Result<Option<OnDemandHandle>, CliError> {
    let (Some(server), Some(agent)) = (server, agent) else {
        return Ok(None);
    };
    let handle = server
        .start(agent.observer())
        .or_exit(ExitStatus::Failed, "profiles on demand")?;
    output::note(&format!("profiles on demand are at {}", handle.url()));
    Ok(Some(handle))
}

fn is_wanted(settings: &Settings, is_on_by_default: bool) -> bool {
    match settings.is_explicit(ENABLED) {
        true => settings.boolean(ENABLED),
        false => is_on_by_default || settings.is_explicit(LISTEN),
    }
}

/// Whether the endpoint could be served by `candela up`, ports aside.
///
/// # Errors
/// As [`options`], where it is not switched off.
pub(crate) fn check(settings: &Settings) -> Result<(), CliError> {
    match is_wanted(settings, true) {
        true => options(settings).map(drop),
        false => Ok(()),
    }
}

/// The options of the configuration.
///
/// # Errors
/// When the token cannot be read, or is needed and missing.
fn options(settings: &Settings) -> Result<OnDemandOptions, CliError> {
    let options = OnDemandOptions {
        token: itself_or_file(settings, "agent.on_demand.token")?,
        tls: tls_options(settings, "agent.on_demand.tls")?,
        host_names: settings.list("server.allowed_hosts"),
        ..OnDemandOptions::new(
            settings.address(LISTEN),
            super::sampling::options(settings)?,
        )
    };
    let checked = options.check();
    checked.map_err(|error| CliError::usage(error.to_string()))?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Inputs;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter();
        let environment: BTreeMap<String, String> = pairs
            .map(|(name, value)| {
                let name = format!("CANDELA_AGENT__ON_DEMAND__{name}");
                (name, (*value).to_owned())
            })
            .collect();
        let inputs = Inputs {
            environment,
            ..Inputs::default()
        };
        crate::config::load(&inputs).expect("valid")
    }

    #[test]
    fn it_is_on_where_it_is_wanted() {
        let free = ("LISTEN", "127.0.0.1:0");
        let is_on = |pairs: &[(&str, &str)], is_on_by_default| {
            let bound = bind(&settings(pairs), is_on_by_default);
            bound.expect("a free port").is_some()
        };
        assert!(!is_on(&[], false), "candela agent");
        assert!(is_on(&[free], false), "configured");
        assert!(is_on(&[free], true), "candela up");
        assert!(!is_on(&[free, ("ENABLED", "false")], true));
        assert!(is_on(&[free, ("ENABLED", "true")], false));
    }

    #[test]
    fn a_port_that_was_chosen_and_is_taken_is_an_error() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = taken.local_addr().expect("bound").to_string();
        let error = bind(&settings(&[("LISTEN", &address)]), true).expect_err("taken");
        let holder = format!("(pid {})", std::process::id());
        assert!(error.to_string().contains(&holder), "{error}");
    }

    #[test]
    fn networks_need_a_token() {
        let public = ("LISTEN", "0.0.0.0:0");
        let error = options(&settings(&[public])).expect_err("no token");
        assert!(
            error.to_string().contains("reachable from other hosts"),
            "{error}"
        );
        let guarded = options(&settings(&[public, ("TOKEN", "sesame")])).expect("valid");
        assert_eq!(guarded.token.as_deref(), Some("sesame"));
    }
}
