//! One module a command.

pub(crate) mod about;
#[cfg(feature = "server")]
mod access;
#[cfg(feature = "agent")]
pub(crate) mod agent;
#[cfg(feature = "server")]
pub(crate) mod backend;
#[cfg(feature = "server")]
pub(crate) mod browser;
pub(crate) mod client;
pub(crate) mod config;
mod config_import;
pub(crate) mod credentials;
#[cfg(feature = "server")]
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod doctor_agent;
#[cfg(feature = "agent")]
mod doctor_text;
#[cfg(feature = "agent")]
pub(crate) mod dump;
pub(crate) mod files;
#[cfg(feature = "agent")]
mod fleet_instance;
#[cfg(feature = "agent")]
mod fleet_node;
#[cfg(feature = "agent")]
pub(crate) mod frame_doctor;
#[cfg(feature = "server")]
pub(crate) mod infra;
#[cfg(feature = "server")]
mod listed_rows;
#[cfg(feature = "agent")]
mod on_demand;
#[cfg(feature = "agent")]
pub(crate) mod preload;
#[cfg(any(feature = "agent", feature = "server"))]
mod private;
#[cfg(feature = "agent")]
mod process_counts;
pub(crate) mod profiles;
#[cfg(feature = "server")]
pub(crate) mod profiling;
pub(crate) mod query;
#[cfg(feature = "agent")]
pub(crate) mod record;
#[cfg(feature = "agent")]
mod record_kinds;
#[cfg(feature = "server")]
mod retention_rules;
#[cfg(feature = "agent")]
mod sample_filters;
#[cfg(feature = "agent")]
pub(crate) mod sampling;
#[cfg(feature = "agent")]
mod scrape_fields;
#[cfg(feature = "agent")]
mod scrape_jobs;
mod secrets;
#[cfg(feature = "server")]
pub(crate) mod self_profile;
#[cfg(feature = "server")]
pub(crate) mod server;
pub(crate) mod signals;
#[cfg(feature = "server")]
pub(crate) mod store;
#[cfg(feature = "agent")]
pub(crate) mod stored_frame_doctor;
#[cfg(feature = "server")]
pub(crate) mod symbols;
#[cfg(feature = "server")]
mod tenant_limits;
#[cfg(any(feature = "agent", feature = "server"))]
mod tls;
#[cfg(feature = "agent")]
pub(crate) mod top;
#[cfg(all(feature = "agent", feature = "server"))]
pub(crate) mod up;

use std::collections::BTreeMap;

use crate::args::GlobalArgs;
use crate::config::Inputs;
use crate::config::Settings;
use crate::errors::CliError;

/// All environment variables that are valid text.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The debuginfod servers of the configuration, else of the environment.
pub(crate) fn debuginfod_urls(settings: &Settings) -> Vec<String> {
    let configured = settings.list("symbols.debuginfod_urls");
    if !configured.is_empty() {
        return configured;
    }
    let environment = environment();
    let urls = environment.get("DEBUGINFOD_URLS").map(String::as_str);
    let urls = urls.unwrap_or_default().split_whitespace();
    urls.map(str::to_owned).collect()
}

/// The configuration with the keys that a command's flags set.
pub(crate) fn settings(
    global: &GlobalArgs,
    flags: Vec<(&'static str, &'static str, String)>,
) -> Result<Settings, CliError> {
    crate::config::load(&Inputs {
        config_flag: global.config.clone(),
        environment: environment(),
        flags,
    })
}
