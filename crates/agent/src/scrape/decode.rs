//! An answer becomes a profile with the labels and the name that its endpoint gives it.

use candela_formats::Limits;
use candela_formats::Note;
use candela_formats::ReadOptions;
use candela_formats::read_pprof;
use candela_model::Profile;

use crate::scrape::endpoint::Endpoint;
use crate::scrape::failure::Failure;
use crate::scrape::failure::FailureReason;

/// What a profile may have, as the server's limits are.
const LIMITS: Limits = Limits {
    max_inflated_bytes: 64 << 20,
    max_samples: 1_000_000,
    max_stack_depth: 1000,
    max_labels_per_sample: 100,
    max_string_bytes: 65_535,
    max_messages: 16_000_000,
};

/// A decoded answer.
#[derive(Debug)]
pub(crate) struct Scraped {
    pub(crate) profile: Profile,
    pub(crate) notes: Vec<Note>,
    pub(crate) bytes: u64,
}

pub(crate) fn decode(bytes: &[u8], endpoint: &Endpoint) -> Result<Scraped, Failure> {
    let options = ReadOptions {
        limits: LIMITS,
        profile_name: Some(endpoint.profile.name.clone()),
        ..ReadOptions::default()
    };
    let read = read_pprof(bytes, &options);
    let (mut profile, report) = read.map_err(|error| {
        let reason = match error {
            candela_formats::ReadError::TooLarge { .. } => FailureReason::TooLarge,
            _ => FailureReason::NotPprof,
        };
        Failure::new(reason, &error.to_string())
    })?;
    for series in &mut profile.series {
        // Neither labels nor names are a target's to choose: what it is called stands in the
        // configuration.
        series.labels = endpoint.labels.clone();
        series.profile_type.name.clone_from(&endpoint.profile.name);
    }
    Ok(Scraped {
        profile,
        notes: report.notes,
        bytes: bytes.len() as u64,
    })
}
