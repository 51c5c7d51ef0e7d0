//! `candela infra render kubernetes`: manifests of the document's daemons.

use std::process::ExitCode;

use candela_agent::CAPABILITIES;
use candela_fleet::AcceptedDocument;
use candela_fleet::FleetDocument;
use candela_fleet::Problems;
use candela_fleet::kubernetes::Manifest;
use candela_fleet::kubernetes::ManifestOptions;

use super::DOCUMENT;
use super::document_file::read_document;
use crate::args::GlobalArgs;
use crate::args::infra::RenderArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

const HEADING: &str = "# The daemons of a fleet's document, by `candela infra render kubernetes`:\n\
    #   kubectl apply --prune -l app.kubernetes.io/part-of=candela-fleet --prune-allowlist=apps/v1/DaemonSet -f THIS_FILE\n\
    # What the daemons do is told by the server; render anew when daemons come, go, or are to have other resources.\n";

pub(super) fn kubernetes(
    global: &GlobalArgs,
    arguments: &RenderArgs,
) -> Result<ExitCode, CliError> {
    let (name, read) = document(global, arguments)?;
    let problems = |problems: Problems| {
        output::note(&problems.to_string());
        CliError::failed(format!("{name} cannot be rendered"))
    };
    let accepted = read.map_err(problems)?;
    let manifest = Manifest::render(&accepted.document, &options(global, arguments));
    let manifest = manifest.map_err(problems)?;
    let objects = serde_saphyr::to_string_multiple(&manifest.objects);
    let objects = objects.or_exit(ExitStatus::Failed, "YAML")?;
    let yaml = format!("{HEADING}{objects}");
    match &arguments.output {
        Some(path) => output::write_file(path, yaml.as_bytes())?,
        None => output::print_text(&yaml)?,
    }
    if !global.quiet {
        for note in accepted.notes.iter().chain(&manifest.notes) {
            output::note(&note.to_string());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What it is called in messages, and what it says.
fn document(
    global: &GlobalArgs,
    arguments: &RenderArgs,
) -> Result<(String, Result<AcceptedDocument, Problems>), CliError> {
    if let Some(file) = &arguments.file {
        let (name, text) = read_document(file)?;
        return Ok((name, FleetDocument::read(&text)));
    }
    let answer = Client::new(global)?.get_json(DOCUMENT, &[])?;
    let name = format!("version {} of the server", answer["version"]);
    let text = answer["document"].to_string();
    Ok((name, FleetDocument::read_applied(&text)))
}

fn options(global: &GlobalArgs, arguments: &RenderArgs) -> ManifestOptions {
    let namespace = arguments.namespace.clone();
    let server = arguments.agent_server.clone();
    let capabilities = CAPABILITIES.iter().map(|it| it.name);
    let capabilities = capabilities.map(|name| name.trim_start_matches("CAP_").to_owned());
    ManifestOptions {
        server: server.unwrap_or_else(|| format!("http://candela.{namespace}.svc:4040")),
        namespace,
        image: arguments.image.clone(),
        tenant: global.tenant.clone(),
        token_secret: arguments.token_secret.clone(),
        role_arn: arguments.role_arn.clone(),
        google_service_account: arguments.gcp_service_account.clone(),
        environment: arguments.environment.clone(),
        capabilities: capabilities.collect(),
    }
}
