//! What a profile must keep to before it is stored.

use std::time::Duration;

use candela_model::Labels;
use candela_model::ProfileSeries;

use crate::api_error::ApiError;
use crate::options::Limits;
use crate::tenant_limits::TenantLimits;
use crate::tenants::Exceeded;

/// Why a profile was not stored, and never will be as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// For counters.
    pub(crate) reason: &'static str,
    /// For people.
    pub(crate) message: String,
}

/// Whether a series may be stored, which retention keeps for so long.
pub(crate) fn check_series(
    series: &ProfileSeries,
    limits: &Limits,
    tenant_limits: &TenantLimits,
    keep: Option<Duration>,
    now_ns: i64,
) -> Result<(), Refusal> {
    let refuse = |reason, message| Err(Refusal { reason, message });
    check_labels(&series.labels, tenant_limits)?;
    let most = tenant_limits.samples_per_profile.most();
    if series.samples.len() > most {
        let message = format!(
            "{} samples in one profile, at most {most} may be (server.limits.samples_per_profile)",
            series.samples.len()
        );
        return refuse("too_many_samples", message);
    }
    if let Some(sample) = series.samples.iter().find(|sample| sample.value < 0) {
        let message = format!(
            "a sample of {} has the value {}: what is stored is a sum of events, a difference is not",
            series.profile_type, sample.value
        );
        return refuse("negative_value", message);
    }
    let future_ns = i64::try_from(limits.future.as_nanos()).unwrap_or(i64::MAX);
    let ahead_ns = series.start_ns.saturating_sub(now_ns);
    if ahead_ns > future_ns {
        let message = format!(
            "the profile starts {} s in the future, at most {} s may be: check the clock of the sender",
            ahead_ns / 1_000_000_000,
            limits.future.as_secs()
        );
        return refuse("in_the_future", message);
    }
    let age_ns = now_ns.saturating_sub(series.start_ns);
    let max_age_ns = keep.map_or(i64::MAX, |age| {
        i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
    });
    if age_ns > max_age_ns {
        let message = format!(
            "the profile is {} s old and profiles are kept for {} s (store.retention): it would \
             vanish at once",
            age_ns / 1_000_000_000,
            max_age_ns / 1_000_000_000
        );
        return refuse("too_old", message);
    }
    Ok(())
}

/// Whether somebody may give a label this name by hand. Profiles that have others lose or escape them
/// ([`candela_formats::normalize`]), as those who pushed them cannot mend them.
pub(crate) fn check_label_name(name: &str) -> Result<(), Refusal> {
    let problem = if candela_formats::is_reserved_label(name) {
        "is reserved for what is not a label"
    } else if name.contains(candela_formats::breaks_line) {
        "has a control character or a line end"
    } else {
        return Ok(());
    };
    Err(Refusal {
        reason: "bad_label",
        message: format!("label: the name {name:?} {problem}"),
    })
}

/// Whether a series may have these labels.
pub(crate) fn check_labels(labels: &Labels, tenant_limits: &TenantLimits) -> Result<(), Refusal> {
    let refuse = |reason, message| Err(Refusal { reason, message });
    let most = tenant_limits.labels_per_series.most();
    if labels.len() > most {
        let message = format!(
            "{} labels on one series, at most {most} may be (server.limits.labels_per_series)",
            labels.len()
        );
        return refuse("too_many_labels", message);
    }
    let most_of_name = tenant_limits.label_name_length.most();
    let most_of_value = tenant_limits.label_value_length.most();
    for (name, value) in labels.iter() {
        if name.len() > most_of_name {
            let message = format!(
                "a label name of {} bytes, at most {most_of_name} may be \
                 (server.limits.label_name_length)",
                name.len()
            );
            return refuse("label_name_too_long", message);
        }
        if value.len() > most_of_value {
            let message = format!(
                "the value of label {name:?} has {} bytes, at most {most_of_value} may be \
                 (server.limits.label_value_length)",
                value.len()
            );
            return refuse("label_value_too_long", message);
        }
    }
    Ok(())
}

impl From<Exceeded> for Refusal {
    fn from(exceeded: Exceeded) -> Self {
        Self {
            reason: exceeded.reason,
            message: exceeded.message,
        }
    }
}

impl Refusal {
    /// As clients of ways in see it that know no other status for it.
    pub(crate) fn into_bad_request(self) -> ApiError {
        ApiError::bad_request(self.reason, self.message)
    }
}

#[cfg(test)]
mod tests {
    use candela_model::ProfileType;
    use candela_model::Sample;
    use candela_model::StackId;

    use super::*;
    use crate::tenant_limits::Bound;

    fn reason(series: &ProfileSeries) -> Option<&'static str> {
        let limits = TenantLimits::default();
        let refusal = check_series(series, &Limits::default(), &limits, None, 1_000_000_000);
        refusal.err().map(|refusal| refusal.reason)
    }

    #[test]
    fn each_bound_has_its_reason() {
        let profile_type =
            ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds");
        let good = ProfileSeries::new(Labels::from_pairs([("a", "b")]), profile_type);
        assert_eq!(reason(&good), None);

        let many = (0..31).map(|index| (format!("label{index}"), "x"));
        let labels = Labels::from_pairs(many.collect::<Vec<_>>());
        assert_eq!(
            reason(&ProfileSeries {
                labels,
                ..good.clone()
            }),
            Some("too_many_labels")
        );

        let labels = Labels::from_pairs([("n".repeat(1025), "x")]);
        assert_eq!(
            reason(&ProfileSeries {
                labels,
                ..good.clone()
            }),
            Some("label_name_too_long")
        );

        let labels = Labels::from_pairs([("n", "v".repeat(2049))]);
        assert_eq!(
            reason(&ProfileSeries {
                labels,
                ..good.clone()
            }),
            Some("label_value_too_long")
        );

        let start_ns = 602_000_000_000;
        assert_eq!(
            reason(&ProfileSeries {
                start_ns,
                ..good.clone()
            }),
            Some("in_the_future")
        );

        let samples = vec![Sample::new(StackId(0), -1)];
        assert_eq!(
            reason(&ProfileSeries {
                samples,
                ..good.clone()
            }),
            Some("negative_value")
        );

        let samples = vec![Sample::new(StackId(0), 1); 2];
        let full = ProfileSeries { samples, ..good };
        let limits = TenantLimits {
            samples_per_profile: Bound::new(1),
            ..TenantLimits::default()
        };
        let refusal = check_series(&full, &Limits::default(), &limits, None, 0);
        let refusal = refusal.expect_err("two samples");
        assert_eq!(refusal.reason, "too_many_samples");
        assert!(
            refusal
                .message
                .contains("server.limits.samples_per_profile"),
            "{}",
            refusal.message
        );
        let none = TenantLimits {
            samples_per_profile: Bound::new(0),
            ..limits
        };
        assert_eq!(
            check_series(&full, &Limits::default(), &none, None, 0),
            Ok(())
        );
    }

    #[test]
    fn what_retention_would_delete_at_once_is_refused() {
        let series = ProfileSeries::default();
        let limits = Limits::default();
        let tenant = TenantLimits::default();
        let check = |keep, now_ns| check_series(&series, &limits, &tenant, keep, now_ns);
        let keep = Some(Duration::from_secs(10));
        assert_eq!(check(keep, 10_000_000_000), Ok(()));
        let refusal = check(keep, 12_000_000_000).expect_err("12 s old");
        assert_eq!(refusal.reason, "too_old");
        for part in ["12 s old", "10 s", "store.retention"] {
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
        assert_eq!(check(None, i64::MAX), Ok(()));
    }
}
