//! `candela store`: checks and repairs of a data directory.

use std::process::ExitCode;

use bytesize::ByteSize;
use candela_store::BlockCheck;
use candela_store::Store;
use candela_store::StoreOptions;
use serde_json::Value;
use serde_json::json;

use super::private::keep_private;
use crate::args::GlobalArgs;
use crate::args::store::CompactArgs;
use crate::args::store::StoreArgs;
use crate::args::store::StoreCommand;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// What all blocks together are.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    blocks: u64,
    damaged: u64,
    files: u64,
    bytes: u64,
}

pub(crate) fn run(global: &GlobalArgs, command: &StoreCommand) -> Result<ExitCode, CliError> {
    match command {
        StoreCommand::Verify(arguments) => verify(global, arguments),
        StoreCommand::RebuildCatalog(arguments) => rebuild_catalog(global, arguments),
        StoreCommand::Compact(arguments) => compact(global, arguments),
    }
}

fn verify(global: &GlobalArgs, arguments: &StoreArgs) -> Result<ExitCode, CliError> {
    let options = options(global, arguments)?;
    let mut sums = Sums::default();
    let mut damaged: Vec<BlockCheck> = Vec::new();
    let verified = candela_store::verify_blocks(&options, &mut |check| {
        sums.blocks += 1;
        sums.files += check.files;
        sums.bytes += check.bytes;
        if !check.faults.is_empty() {
            sums.damaged += 1;
            damaged.push(check.clone());
        }
    });
    verified.or_exit(ExitStatus::Failed, "verify")?;
    if arguments.json {
        output::print_json(&verify_json(sums, &damaged))?;
    } else {
        for check in &damaged {
            for fault in &check.faults {
                output::print_text(&format!("block {}: {fault}", check.block_id))?;
            }
        }
        output::print_text(&format!(
            "{} blocks, {} files, {}: {} damaged",
            sums.blocks,
            sums.files,
            ByteSize::b(sums.bytes),
            sums.damaged
        ))?;
    }
    if sums.damaged > 0 {
        return Err(CliError::failed(format!(
            "{} of {} blocks are damaged; restore their files from a backup, or delete the blocks",
            sums.damaged, sums.blocks
        )));
    }
    Ok(ExitCode::SUCCESS)
}

fn verify_json(sums: Sums, damaged: &[BlockCheck]) -> Value {
    let damaged = damaged.iter().map(
        |check| json!({"block": check.block_id, "tenant": check.tenant, "faults": check.faults}),
    );
    json!({
        "schema": "candela/store-verify/v1",
        "blocks": sums.blocks,
        "files": sums.files,
        "bytes": sums.bytes,
        "damaged": damaged.collect::<Vec<Value>>(),
    })
}

fn rebuild_catalog(global: &GlobalArgs, arguments: &StoreArgs) -> Result<ExitCode, CliError> {
    let options = options(global, arguments)?;
    keep_private(&options.data_dir);
    let rebuilt = candela_store::rebuild_catalog(&options);
    let rebuilt = rebuilt.or_exit(ExitStatus::Failed, "rebuild-catalog")?;
    let previous = rebuilt.previous.as_ref().map(|path| path.display());
    if arguments.json {
        let damaged = rebuilt.damaged.iter();
        let damaged = damaged.map(|(block, reason)| json!({"block": block, "reason": reason}));
        output::print_json(&json!({
            "schema": "candela/store-rebuild-catalog/v1",
            "blocks": rebuilt.blocks,
            "tenants": rebuilt.tenants,
            "samples": rebuilt.samples,
            "bytes": rebuilt.bytes,
            "in_log": rebuilt.in_log,
            "damaged": damaged.collect::<Vec<Value>>(),
            "previous": previous.map(|path| path.to_string()),
        }))?;
    } else {
        output::print_text(&format!(
            "{} blocks of {} tenants, {} samples, {}",
            rebuilt.blocks,
            rebuilt.tenants,
            rebuilt.samples,
            ByteSize::b(rebuilt.bytes)
        ))?;
        if rebuilt.in_log > 0 {
            output::note(&format!(
                "{} more are in the log as a whole: the next start reads them from there",
                rebuilt.in_log
            ));
        }
        if let Some(previous) = previous {
            output::note(&format!("the catalog that was there is {previous}"));
        }
    }
    if rebuilt.damaged.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let reasons = rebuilt.damaged.iter();
    let reasons: Vec<String> = reasons
        .map(|(block, reason)| format!("block {block}: {reason}"))
        .collect();
    Err(CliError::failed(format!(
        "not in the catalog: {}; restore the manifests from a backup and run this again",
        reasons.join("; ")
    )))
}

fn compact(global: &GlobalArgs, arguments: &CompactArgs) -> Result<ExitCode, CliError> {
    let mut options = options(global, &arguments.store)?;
    keep_private(&options.data_dir);
    // Nothing is to be merged beside what is asked for.
    options.compaction_cpu_percent = 0;
    let store = Store::open(options).map_err(|error| CliError::failed(error.to_string()))?;
    let before = store.status();
    let merged = if arguments.all {
        store.compact()
    } else {
        store.compact_due()
    };
    let after = store.status();
    super::server::block_on(super::server::close(store))?;
    if arguments.store.json {
        output::print_json(&json!({
            "schema": "candela/store-compact/v1",
            "blocks_before": before.blocks,
            "bytes_before": before.block_bytes,
            "blocks": after.blocks,
            "bytes": after.block_bytes,
            "merged": after.compaction.blocks_read,
            "made": after.compaction.blocks_written,
            "failed_jobs": after.compaction.failed_jobs,
        }))?;
    } else {
        output::print_text(&format!(
            "{} blocks were merged into {}; {} blocks of {} are {} blocks of {}",
            after.compaction.blocks_read,
            after.compaction.blocks_written,
            before.blocks,
            ByteSize::b(before.block_bytes),
            after.blocks,
            ByteSize::b(after.block_bytes)
        ))?;
    }
    merged.or_exit(ExitStatus::Failed, "compact")?;
    Ok(ExitCode::SUCCESS)
}

fn options(global: &GlobalArgs, arguments: &StoreArgs) -> Result<StoreOptions, CliError> {
    let settings = crate::commands::settings(global, arguments.overrides())?;
    super::server::store_options(&settings)
}
