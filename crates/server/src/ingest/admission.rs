//! What of a profile may be stored: one policy for every way in, as docs/api.md ("One way in") states it.

use candela_formats::NormalizeOptions;
use candela_formats::Report;
use candela_model::Profile;
use candela_model::ProfileSeries;

use crate::app::App;
use crate::auth::TenantName;
use crate::ingest::body::BodyBounds;
use crate::ingest::limits::Refusal;
use crate::ingest::limits::check_series;
use crate::ingest::read::read_options;
use crate::tenants::SeriesKey;

/// Names the client that sampled, as Pyroscope's clients do.
const SPY_LABEL: &str = "pyroscope_spy";

/// The profile as it is stored: [normalized](candela_formats::normalize), and without the series that may not be. Each of
/// those goes to `refuse`, with its position in the profile; the others lose nothing by it. A series without samples is left out and not refused: idle programs send those.
/// What was repaired or left out is added to `report`.
pub(crate) fn admit(
    app: &App,
    tenant: &TenantName,
    profile: Profile,
    report: &mut Report,
    mut refuse: impl FnMut(usize, &ProfileSeries, Refusal),
) -> Profile {
    let limits = app.tenants.limits(tenant);
    let options = NormalizeOptions {
        spy: spy_of(&profile).to_owned(),
        limits: read_options(app, &limits, BodyBounds::profile(&limits)).limits,
    };
    let mut profile = candela_formats::normalize(profile, &options, report);
    let now_ns = app.clock.now_ns();
    let mut positions = 0..;
    profile.series.retain(|series| {
        let position = positions.next().unwrap_or(usize::MAX);
        if series.samples.is_empty() {
            return false;
        }
        let keep = app.keep_of(tenant, series);
        let checked = check_series(series, &app.limits, &limits, keep, now_ns);
        checked
            .map_err(|refusal| refuse(position, series, refusal))
            .is_ok()
    });
    profile
}

/// The client that sampled, where one sampled all of it.
fn spy_of(profile: &Profile) -> &str {
    let mut spies = profile
        .series
        .iter()
        .map(|series| series.labels.get(SPY_LABEL).unwrap_or(""));
    let first = spies.next().unwrap_or("");
    match spies.all(|spy| spy == first) {
        true => first,
        false => "",
    }
}

/// The same where the tenant's limit of series, too, costs the series beyond it alone. That is for senders who are told in
/// passing, or cannot be told at all: a collector that hears 429 sends all of it again, and again, and nothing else.
pub(crate) fn admit_each(
    app: &App,
    tenant: &TenantName,
    profile: Profile,
    report: &mut Report,
    mut refuse: impl FnMut(&ProfileSeries, Refusal),
) -> Profile {
    let mut profile = admit(app, tenant, profile, report, |_, series, refusal| {
        refuse(series, refusal);
    });
    profile.series.retain(|series| {
        let admitted = app.tenants.admit_series(tenant, &[SeriesKey::of(series)]);
        admitted
            .map_err(|exceeded| refuse(series, exceeded.into()))
            .is_ok()
    });
    profile
}
