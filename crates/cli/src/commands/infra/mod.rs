//! `candela infra`: what the whole fleet is configured to do.

mod apply;
#[cfg(feature = "agent")]
mod bucket_check;
mod describe;
mod document_file;
mod nodes;
#[cfg(feature = "agent")]
mod render;

use std::process::ExitCode;

use crate::args::GlobalArgs;
use crate::args::infra::ApplyCommand;
use crate::args::infra::DescribeCommand;
use crate::args::infra::InfraCommand;
use crate::args::infra::RenderCommand;
use crate::errors::CliError;

/// Where the document is.
const DOCUMENT: &str = "/api/v1/fleet/persistence";

pub(crate) fn run(global: &GlobalArgs, command: &InfraCommand) -> Result<ExitCode, CliError> {
    match command {
        InfraCommand::Describe(DescribeCommand::Persistence(arguments)) => {
            describe::describe(global, arguments)
        }
        InfraCommand::Describe(DescribeCommand::Nodes { json }) => nodes::nodes(global, *json),
        InfraCommand::Apply(ApplyCommand::Persistence(arguments)) => {
            apply::apply(global, arguments)
        }
        #[cfg(feature = "agent")]
        InfraCommand::Render(RenderCommand::Kubernetes(arguments)) => {
            render::kubernetes(global, arguments)
        }
        #[cfg(not(feature = "agent"))]
        InfraCommand::Render(RenderCommand::Kubernetes(_)) => Err(CliError::failed(
            "this build knows no capabilities of an agent, and renders nothing; take one with the feature `agent`",
        )),
    }
}
