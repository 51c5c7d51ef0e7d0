//! Arguments of `candela infra` and `candela profiling`: what concerns every node.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::Subcommand;

/// `candela infra`
#[derive(Debug, Subcommand)]
pub(crate) enum InfraCommand {
    /// Show what the fleet is configured to do, and what its nodes do
    #[command(subcommand)]
    Describe(DescribeCommand),
    /// Change what the fleet is configured to do
    #[command(subcommand)]
    Apply(ApplyCommand),
    /// Write what others run the fleet's daemons by
    #[command(subcommand)]
    Render(RenderCommand),
}

/// `candela infra describe`
#[derive(Debug, Subcommand)]
pub(crate) enum DescribeCommand {
    /// The document that says which daemons run on every node
    Persistence(DescribeArgs),
    /// The nodes, their daemons and what these failed at
    Nodes {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `candela infra describe persistence`
#[derive(Args, Clone, Debug)]
pub(crate) struct DescribeArgs {
    /// Print the document alone, as it is to be edited and applied
    #[arg(long)]
    pub(crate) json: bool,
    /// An older version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// Who applied which version, and when
    #[arg(long, conflicts_with = "version")]
    pub(crate) history: bool,
}

/// `candela infra apply`
#[derive(Debug, Subcommand)]
pub(crate) enum ApplyCommand {
    /// The document that says which daemons run on every node: shows what changes, and asks
    Persistence(ApplyArgs),
}

/// `candela infra apply persistence`
#[derive(Args, Clone, Debug)]
pub(crate) struct ApplyArgs {
    /// The document; - is standard input
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "rollback",
        conflicts_with = "rollback"
    )]
    pub(crate) file: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Before anything changes, write a small object to each bucket: from this host, with its credentials
    #[arg(long)]
    pub(crate) check_bucket: bool,
    /// Apply this version once more, in the place of a file
    #[arg(long, value_name = "N")]
    pub(crate) rollback: Option<u64>,
}

/// `candela infra render`
#[derive(Debug, Subcommand)]
pub(crate) enum RenderCommand {
    /// Manifests of Kubernetes: a DaemonSet for each daemon of the document
    Kubernetes(Box<RenderArgs>),
}

/// `candela infra render kubernetes`
#[derive(Args, Clone, Debug)]
#[cfg_attr(
    not(feature = "agent"),
    expect(dead_code, reason = "such builds render nothing")
)]
pub(crate) struct RenderArgs {
    /// The document; - is standard input [default: what is applied at the server]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write the manifests there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Where the daemons run
    #[arg(long, value_name = "NAME", value_parser = namespace, default_value = "candela")]
    pub(crate) namespace: String,
    /// The image of daemons without image_override
    #[arg(long, value_name = "IMAGE", default_value = "candela-agent")]
    pub(crate) image: String,
    /// Where pods reach the server [default: port 4040 of the service `candela` in NAMESPACE]
    #[arg(long, value_name = "URL")]
    pub(crate) agent_server: Option<String>,
    /// The Secret whose key `token` is the agents' token
    #[arg(long, value_name = "NAME")]
    pub(crate) token_secret: Option<String>,
    /// The role of Amazon's that the daemons take (IRSA)
    #[arg(long, value_name = "ARN")]
    pub(crate) role_arn: Option<String>,
    /// The account of Google's that the daemons take [default: service_account_name of the document, of its
    /// google_cloud_project]
    #[arg(long, value_name = "EMAIL")]
    pub(crate) gcp_service_account: Option<String>,
    /// A variable of the daemons' environment, such as AWS_REGION=eu-central-1; repeatable
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(String, String)>,
}

/// `candela profiling`
#[derive(Debug, Subcommand)]
pub(crate) enum ProfilingCommand {
    /// Take a Perfetto snapshot on all nodes now, and say what became of each
    PerfettoSnapshot(SnapshotArgs),
}

/// `candela profiling perfetto-snapshot`
#[derive(Args, Clone, Debug)]
pub(crate) struct SnapshotArgs {
    /// Only nodes whose agent's pod has these labels, as in kubectl: app=engine,tier!=test; repeatable, all
    /// count
    #[arg(long = "pod-label", value_name = "SELECTOR")]
    pub(crate) pod_labels: Vec<String>,
    /// Only nodes whose agent's pod has these fields: metadata.namespace=shop; also metadata.name,
    /// spec.nodeName, status.podIP; repeatable, all count
    #[arg(long = "pod-field", value_name = "SELECTOR")]
    pub(crate) pod_fields: Vec<String>,
    /// Only this node; repeatable
    #[arg(long = "node", value_name = "NAME")]
    pub(crate) nodes: Vec<String>,
    /// Of the daemon with this trigger_name [default: the one that waits for its trigger, else the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) trigger: Option<String>,
    /// How long to wait for the nodes
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write for instance 30s or 2m"))
}

fn namespace(text: &str) -> Result<String, String> {
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let is_name = bytes.iter().all(|byte| is_end(*byte) || *byte == b'-')
        && bytes.first().copied().is_some_and(is_end)
        && bytes.last().copied().is_some_and(is_end);
    if is_name && text.len() <= 63 {
        return Ok(text.to_owned());
    }
    Err(
        "no name of a namespace; write 1 to 63 of a-z, 0-9 and '-', a letter or digit at both ends"
            .to_owned(),
    )
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("no NAME=VALUE; write for instance AWS_REGION=eu-central-1".to_owned()),
    }
}
