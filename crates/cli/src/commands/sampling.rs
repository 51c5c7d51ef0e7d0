//! What `up`, `agent` and `record` share: the agent's options from the configuration.

use candela_agent::AgentError;
use candela_agent::AgentHandle;
use candela_agent::AgentOptions;
use candela_agent::ContainerSocket;
use candela_agent::ExplicitEvent;
use candela_agent::Kinds;
use candela_agent::KubernetesOptions;
use candela_agent::OtlpGrpc;
use candela_agent::OtlpGrpcOptions;
use candela_agent::ServiceRule;
use candela_agent::SpoolOptions;
use candela_agent::Wakers;
use candela_model::Labels;

use crate::args::GlobalArgs;
use crate::commands::credentials::ServerAddress;
use crate::commands::record_kinds;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::ExitStatus;
use crate::output;

fn wakers(settings: &Settings) -> Wakers {
    match settings.text("agent.wakers") {
        Some("stack") => Wakers::Stacks,
        Some("true") => Wakers::Names,
        _ => Wakers::Untold,
    }
}

/// The options of the configuration, without a spool.
pub(crate) fn options(settings: &Settings) -> Result<AgentOptions, CliError> {
    let environment = super::environment();
    let service_rules = settings
        .map("agent.service_rules")
        .iter()
        .map(|(service, pattern)| ServiceRule::new(service)?.with_command_line(pattern))
        .collect::<Result<Vec<_>, AgentError>>()
        .map_err(|error| CliError::usage(format!("agent.service_rules: {error}")))?;
    let (kinds, events) = kinds(settings)?;
    let options = AgentOptions {
        kinds,
        events,
        rate_hz: u32::try_from(settings.integer("agent.rate"))
            .expect("the key's range is 1 to 1000"),
        cpu_budget: settings.core_share("agent.cpu_budget").cores(),
        window: settings.duration("agent.interval"),
        first_window: settings
            .duration("agent.interval")
            .min(AgentOptions::default().first_window),
        wakers: wakers(settings),
        min_block_time: settings.duration("agent.min_block_time"),
        timestamps: settings.boolean("agent.timestamps"),
        table_budget_bytes: settings.bytes("agent.table_budget"),
        symbol_cache_bytes: usize::try_from(settings.bytes("agent.symbol_cache"))
            .unwrap_or(usize::MAX),
        extra_labels: Labels::from_pairs(settings.map("agent.labels")),
        service_rules,
        container_sockets: container_sockets(settings)?,
        kubernetes: kubernetes(settings),
        filters: super::sample_filters::sample_filters(settings)?,
        sampling: settings.boolean("agent.sampling"),
        scrape: super::scrape_jobs::scrape_jobs(settings)?,
        debuginfod_urls: super::debuginfod_urls(settings),
        debuginfod_cache: Some(settings.data_dir(&environment).join("symbols")),
        ..AgentOptions::default()
    };
    options
        .check()
        .map_err(|error| CliError::usage(format!("agent: {error}")))?;
    Ok(options)
}

fn container_sockets(settings: &Settings) -> Result<Vec<ContainerSocket>, CliError> {
    const KEY: &str = "agent.container_sockets";
    let sockets = settings.list(KEY);
    let sockets = sockets.iter().map(|socket| socket.parse());
    let sockets: Result<Vec<ContainerSocket>, AgentError> = sockets.collect();
    sockets.map_err(|error| CliError::usage(format!("{KEY}: {error}")))
}

fn kubernetes(settings: &Settings) -> KubernetesOptions {
    KubernetesOptions {
        node: settings.text("agent.kubernetes.node").map(str::to_owned),
        pod_labels: settings.list("agent.kubernetes.pod_labels"),
        pod_annotations: settings.list("agent.kubernetes.pod_annotations"),
    }
}

/// The kinds, and the events that are named beside them.
fn kinds(settings: &Settings) -> Result<(Kinds, Vec<ExplicitEvent>), CliError> {
    let refused = |error| CliError::usage(format!("agent.kinds: {error}"));
    let kinds = record_kinds::parse(&settings.list("agent.kinds")).map_err(refused)?;
    if kinds.contains(&record_kinds::Kind::Wall) {
        let error = "\"wall\" is what cpu and off-cpu are together: name these two";
        return Err(refused(error.to_owned()));
    }
    let events = record_kinds::events(&kinds).map_err(refused)?;
    Ok((record_kinds::to_agent(&kinds), events))
}

/// What an agent with these options does, for people.
pub(crate) fn describe(options: &AgentOptions) -> String {
    let sampling = format!("sampling this host at {} Hz", options.rate_hz);
    let jobs = options.scrape.iter().map(|job| job.name.as_str());
    let scraping = format!("scraping {}", jobs.collect::<Vec<_>>().join(", "));
    match (options.sampling, options.scrape.is_empty()) {
        (true, true) => sampling,
        (true, false) => format!("{sampling}, {scraping}"),
        (false, _) => scraping,
    }
}

/// Whether `agent.server` is an address that can be sent to.
pub(crate) fn check_server(settings: &Settings) -> Result<(), CliError> {
    let server = settings
        .text("agent.server")
        .expect("the key has a default");
    let server = ServerAddress::without_token(server)
        .map_err(|error| CliError::usage(format!("agent.server: {error}")))?;
    OtlpGrpc::new(&OtlpGrpcOptions::new(&server.url))
        .map(drop)
        .map_err(|error| CliError::usage(format!("agent.server: {error}")))
}

/// Where profiles wait while a server is away.
pub(crate) fn spool(settings: &Settings) -> SpoolOptions {
    SpoolOptions {
        directory: settings.data_dir(&super::environment()).join("spool"),
        max_bytes: settings.bytes("agent.spool_size"),
    }
}

/// A sender to a server, with the token and tenant of the global flags.
pub(crate) fn exporter(global: &GlobalArgs, server: &str) -> Result<OtlpGrpc, CliError> {
    let server = ServerAddress::new(global, server)?;
    let options = OtlpGrpcOptions {
        authorization: server.authorization,
        tenant: global.tenant.clone(),
        ..OtlpGrpcOptions::new(&server.url)
    };
    OtlpGrpc::new(&options).map_err(|error| CliError::usage(error.to_string()))
}

/// Says once what of its kinds an agent does without.
pub(crate) fn tell_missing(agent: &AgentHandle) {
    for missing in agent.status().missing {
        output::note(&missing.to_string());
    }
}

/// The agent's own sentence, with the exit code that it deserves.
pub(crate) fn failure(error: &AgentError) -> CliError {
    let status = match error {
        AgentError::StoppedEarly => ExitStatus::Interrupted,
        AgentError::NotPreloaded => ExitStatus::Usage,
        AgentError::UnseenAllocations { .. } => ExitStatus::NoData,
        AgentError::GoHeap { .. } if !error.is_permission_or_kernel() => ExitStatus::NoData,
        error if error.is_permission_or_kernel() => ExitStatus::Permission,
        _ => ExitStatus::Failed,
    };
    CliError::new(status, error.to_string())
}
