//! The server, or the agent, under load for as long as it takes to see it grow.

use crate::bench::build_and_run;

/// `soak [--minutes N]`: 100 profiles a second of 1 000 series, with queries, 20 minutes; `soak --agent`: everything
/// sampled while a compiler works, 30 minutes.
pub(crate) fn soak(arguments: &[String]) -> Result<(), String> {
    let mut soak = vec!["soak".to_owned()];
    soak.extend_from_slice(arguments);
    build_and_run(&soak)
}
