//! What the fleet's document asks of this node, beside the agent that always samples.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use candela_agent::AgentOptions;
use candela_agent::SpoolOptions;
use candela_daemons::Bucket;
use candela_daemons::BucketOptions;
use candela_daemons::FleetProfiles;
use candela_daemons::FleetReports;
use candela_daemons::FleetStream;
use candela_daemons::NodeKinds;
use candela_daemons::ObjectSink;
use candela_daemons::OutboxLimits;
use candela_daemons::PodIdentity;
use candela_daemons::ProfileSink;
use candela_daemons::RestartWaits;
use candela_daemons::ServerError;
use candela_daemons::ServerOptions;
use candela_daemons::Supervisor;
use candela_daemons::SupervisorHandle;
use candela_daemons::SupervisorOptions;
use candela_daemons::SupervisorParts;
use candela_daemons::SystemClock;
use candela_daemons::TRIGGER_PORT;
use candela_daemons::TriggerPortOptions;
use candela_fleet::Destination;

use super::credentials::ServerAddress;
use super::fleet_instance::instance;
use super::secrets::itself_or_file;
use crate::args::GlobalArgs;
use crate::config::Settings;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// Below the data directory: the last document, and files that wait for their bucket.
const FOLDER: &str = "fleet";

const OWN_LABELS_FILE: &str = "agent.kubernetes.own_labels_file";
const TRIGGER_LISTEN: &str = "agent.perfetto_trigger.listen";

/// What whoever calls Chalk's daemons is told of them (CH-28), and these may be told, too.
const CHALK_PORT: &str = "CHALK_PERFETTO_DAEMON_PORT";
const CHALK_NAMESPACE: &str = "CHALK_PERFETTO_DAEMON_NAMESPACE";

/// Follows the document of `server`, unless `agent.fleet` is off. A server that is away or knows no fleet stops nothing:
/// the last document holds.
///
/// # Errors
/// When the address cannot be one of HTTP, a credential cannot be read, or the folder cannot be written.
pub(super) fn start(
    global: &GlobalArgs,
    settings: &Settings,
    server: &str,
    agent: &AgentOptions,
) -> Result<Option<SupervisorHandle>, CliError> {
    let daemon = one_daemon(settings);
    if !settings.boolean("agent.fleet") {
        return match daemon {
            None => Ok(None),
            Some(_) => Err(CliError::usage(
                "agent.fleet is off and agent.fleet_daemon names a daemon; remove one of them",
            )),
        };
    }
    let address = ServerAddress::new(global, server)?;
    let node = node_name(settings);
    let environment = &super::environment();
    let folder = settings.data_dir(environment).join(FOLDER);
    let server = ServerOptions {
        url: address.url,
        authorization: address.authorization,
        tenant: global.tenant.clone(),
        node: node.clone(),
        daemon: daemon.clone(),
        instance: Some(instance(&folder)),
    };
    let fleet = |error: &dyn std::fmt::Display| CliError::usage(format!("agent.fleet: {error}"));
    let parts = SupervisorParts {
        kinds: Arc::new(NodeKinds {
            node: node.clone(),
            agent: of_daemons(agent),
            trigger_port: trigger_port(settings, environment)?,
        }),
        connect: Arc::new(|destination: &Destination| {
            let bucket = Bucket::connect(destination, &BucketOptions::default())?;
            Ok(Arc::new(bucket) as Arc<dyn ObjectSink>)
        }),
        source: Box::new(FleetStream::new(&server).map_err(|error| fleet(&error))?),
        sink: Box::new(FleetReports::new(&server).map_err(|error| fleet(&error))?),
        store: store(settings, &server).map_err(|error| fleet(&error))?,
        clock: Arc::new(SystemClock::default()),
    };
    let options = SupervisorOptions {
        node,
        pod: pod(settings, environment),
        pod_labels_file: settings.text(OWN_LABELS_FILE).map(PathBuf::from),
        only: daemon,
        folder,
        limits: OutboxLimits::default(),
        waits: RestartWaits::default(),
    };
    let started = Supervisor::start(options, parts);
    started.map(Some).or_exit(ExitStatus::Failed, "agent.fleet")
}

/// Where dumps and snapshots go beside their bucket.
fn store(
    settings: &Settings,
    server: &ServerOptions,
) -> Result<Option<Box<dyn ProfileSink>>, ServerError> {
    if !settings.boolean("agent.fleet_store") {
        return Ok(None);
    }
    Ok(Some(Box::new(FleetProfiles::new(server)?)))
}

/// The one daemon that this agent is, and nothing besides.
pub(super) fn one_daemon(settings: &Settings) -> Option<String> {
    settings.text("agent.fleet_daemon").map(str::to_owned)
}

/// How daemons name what they sample. Spool and scrapes are the agent's own: nobody sends or asks twice. So is its CPU
/// budget: a daemon has the rate that the document says, within the document's `limit`.
fn of_daemons(agent: &AgentOptions) -> AgentOptions {
    AgentOptions {
        spool: None::<SpoolOptions>,
        scrape: Vec::new(),
        cpu_budget: None,
        ..agent.clone()
    }
}

/// The node of the cluster, or this host.
fn node_name(settings: &Settings) -> String {
    if let Some(node) = settings.text("agent.kubernetes.node") {
        return node.to_owned();
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

/// Where snapshots are asked for on this node, for documents that want it. The port may come from where Chalk's own
/// daemons have it from.
///
/// # Errors
/// When it is no port, the token cannot be read, or is needed and missing.
pub(super) fn trigger_port(
    settings: &Settings,
    environment: &BTreeMap<String, String>,
) -> Result<TriggerPortOptions, CliError> {
    let mut listen = settings.address(TRIGGER_LISTEN);
    // Kubernetes gives every pod `tcp://…` in a variable of this name where a service is called so.
    let is_of_a_service = |port: &&String| port.contains("://");
    if let Some(port) = environment.get(CHALK_PORT)
        && !is_of_a_service(&port)
        && !settings.is_explicit(TRIGGER_LISTEN)
    {
        let number = port.parse();
        let port = number.map_err(|error| {
            CliError::usage(format!(
                "{CHALK_PORT} is {port:?}, which is no port: {error}; write a number, such as {TRIGGER_PORT}, or set {TRIGGER_LISTEN}"
            ))
        })?;
        listen.set_port(port);
    }
    let options = TriggerPortOptions {
        listen,
        token: itself_or_file(settings, "agent.perfetto_trigger.token")?,
        host_names: settings.list("server.allowed_hosts"),
    };
    let checked = options.check();
    checked.map_err(|error| CliError::usage(error.to_string()))?;
    Ok(options)
}

/// Whether `candela agent` could follow a document, ports aside.
///
/// # Errors
/// As [`trigger_port`].
pub(super) fn check(settings: &Settings) -> Result<(), CliError> {
    match settings.boolean("agent.fleet") {
        true => trigger_port(settings, &super::environment()).map(drop),
        false => Ok(()),
    }
}

/// Of the namespace nothing is known but what the environment of Chalk's own daemons says, where it is not configured.
fn pod(settings: &Settings, environment: &BTreeMap<String, String>) -> Option<PodIdentity> {
    let text = |key: &str| settings.text(key).unwrap_or_default().to_owned();
    let namespace = settings.text("agent.kubernetes.namespace");
    let of_chalk = || environment.get(CHALK_NAMESPACE).cloned();
    let namespace = namespace.map(str::to_owned).or_else(of_chalk);
    let pod = PodIdentity {
        namespace: namespace.unwrap_or_default(),
        name: text("agent.kubernetes.pod"),
        ip: text("agent.kubernetes.pod_ip"),
        ..PodIdentity::default()
    };
    (pod != PodIdentity::default()).then_some(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let environment = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let inputs = Inputs {
            environment: environment.collect(),
            ..Inputs::default()
        };
        crate::config::load(&inputs).expect("valid")
    }

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_port_is_the_configured_one_else_that_of_chalk_else_the_usual() {
        let listen = |configured: &[(&str, &str)], chalk: &[(&str, &str)]| {
            let options = trigger_port(&settings(configured), &environment(chalk));
            options.map(|options| options.listen.to_string())
        };
        let ours = ("CANDELA_AGENT__PERFETTO_TRIGGER__LISTEN", "127.0.0.1:1");
        let chalk = (CHALK_PORT, "4000");
        assert_eq!(listen(&[], &[]).expect("valid"), "127.0.0.1:3565");
        assert_eq!(listen(&[], &[chalk]).expect("valid"), "127.0.0.1:4000");
        assert_eq!(listen(&[ours], &[chalk]).expect("valid"), "127.0.0.1:1");
        let error = listen(&[], &[(CHALK_PORT, "many")]).expect_err("no number");
        assert!(
            error.to_string().contains("\"many\", which is no port"),
            "{error}"
        );
        let public = ("CANDELA_AGENT__PERFETTO_TRIGGER__LISTEN", "0.0.0.0:1");
        let error = listen(&[public], &[]).expect_err("no token");
        assert!(
            error.to_string().contains("perfetto_trigger.token"),
            "{error}"
        );
    }

    #[test]
    fn the_namespace_is_the_configured_one_else_that_of_chalk() {
        let chalk = environment(&[(CHALK_NAMESPACE, "shop")]);
        let namespace = |settings: &Settings, environment: &BTreeMap<String, String>| {
            pod(settings, environment).map(|pod| pod.namespace)
        };
        assert_eq!(namespace(&settings(&[]), &BTreeMap::new()), None);
        assert_eq!(namespace(&settings(&[]), &chalk).as_deref(), Some("shop"));
        let ours = settings(&[("CANDELA_AGENT__KUBERNETES__NAMESPACE", "other")]);
        assert_eq!(namespace(&ours, &chalk).as_deref(), Some("other"));
    }
}
