//! `--check-bucket`: whether the buckets of a document take what daemons would write.

use std::collections::BTreeSet;

use candela_daemons::BucketCheck;
use candela_daemons::BucketCheckError;
use candela_daemons::BucketOptions;
use candela_daemons::check_bucket;
use candela_fleet::Destination;
use candela_fleet::FleetDocument;

use crate::args::GlobalArgs;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// Tries each bucket and folder of a document that the server has accepted, and tells of all before it gives up.
///
/// # Errors
/// When one of them cannot be written to from here; the first has the exit code.
pub(super) fn check_buckets(global: &GlobalArgs, document: &str) -> Result<(), CliError> {
    let accepted = FleetDocument::read(document).map_err(|problems| {
        CliError::failed(format!("this version reads it otherwise: {problems}"))
    })?;
    let mut names = BTreeSet::new();
    let daemons = accepted.document.daemons().iter();
    let destinations: Vec<Destination> = daemons
        .filter_map(|daemon| daemon.body.destination())
        .filter(|destination| names.insert(destination.to_string()))
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_exit(ExitStatus::Failed, "--check-bucket")?;
    let mut failures = Vec::new();
    for destination in &destinations {
        let checked = runtime.block_on(check_bucket(destination, &BucketOptions::default()));
        match checked {
            Ok(_) if global.quiet => {}
            Ok(BucketCheck::Removed) => output::note(&format!(
                "{destination} was written to from this host, with its credentials; nodes have their own"
            )),
            Ok(BucketCheck::Left(key)) => output::note(&format!(
                "{destination} was written to from this host, with its credentials, which may not remove {key}; nodes have their own"
            )),
            Err(error) => {
                output::note(&error.to_string());
                failures.push(status_of(&error));
            }
        }
    }
    let Some(first) = failures.first() else {
        return Ok(());
    };
    Err(CliError::new(
        *first,
        format!(
            "{} of {} buckets cannot be written to from this host; nothing was applied",
            failures.len(),
            destinations.len()
        ),
    ))
}

fn status_of(error: &BucketCheckError) -> ExitStatus {
    match error {
        BucketCheckError::Settings { .. } => ExitStatus::Usage,
        BucketCheckError::NoCredentials { .. } | BucketCheckError::NotAllowed { .. } => {
            ExitStatus::Permission
        }
        BucketCheckError::Unreachable { .. } => ExitStatus::Unreachable,
        BucketCheckError::NoBucket { .. } => ExitStatus::Failed,
    }
}
