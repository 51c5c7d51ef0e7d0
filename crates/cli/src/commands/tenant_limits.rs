//! `server.limits` and `server.tenant_limits` as the server takes them.

use std::collections::BTreeMap;

use candela_server::Bound;
use candela_server::TenantLimits;

use crate::config::Settings;
use crate::config::Value;
use crate::config::key_search;
use crate::errors::CliError;

/// What every tenant may send.
pub(crate) fn tenant_limits(settings: &Settings) -> TenantLimits {
    let mut limits = TenantLimits::default();
    for (name, _) in TenantLimits::default().entries() {
        let setting = settings.get(&path_of(name));
        let bound = bound(&setting.value).expect("limits are sizes or numbers, with a default");
        let is_set = limits.set(name, bound);
        debug_assert!(is_set, "{name} is listed");
    }
    limits
}

/// Tenants that may send something else; what is not said of them is as for all.
///
/// # Errors
/// When an entry is no `tenant.limit`, or the limit does not take its value.
pub(crate) fn tenant_overrides(
    settings: &Settings,
) -> Result<BTreeMap<String, TenantLimits>, CliError> {
    let all = tenant_limits(settings);
    let mut overrides = BTreeMap::new();
    for (path, text) in settings.map("server.tenant_limits") {
        let wrong =
            |reason: String| CliError::usage(format!("server.tenant_limits: {path}: {reason}"));
        // Tenants may have points in their names, limits have none.
        let Some((tenant, name)) = path
            .rsplit_once('.')
            .filter(|(tenant, _)| !tenant.is_empty())
        else {
            return Err(wrong(
                "must be a limit below the name of a tenant".to_owned(),
            ));
        };
        let Some(key) = key_search::find(&path_of(name)) else {
            let names = all.entries().map(|(name, _)| name);
            let reason = format!("{name} is no limit; there are {}", names.join(", "));
            return Err(wrong(reason));
        };
        let value = Value::parse(key.kind, &text).map_err(wrong)?;
        let Some(bound) = bound(&value) else {
            return Err(wrong("has no value".to_owned()));
        };
        let limits: &mut TenantLimits = overrides.entry(tenant.to_owned()).or_insert(all);
        let is_set = limits.set(name, bound);
        debug_assert!(is_set, "{name} has a key");
    }
    Ok(overrides)
}

fn path_of(name: &str) -> String {
    format!("server.limits.{name}")
}

fn bound(value: &Value) -> Option<Bound> {
    match value {
        Value::Bytes(bytes) => Some(Bound::new(*bytes)),
        Value::Integer(number) => u64::try_from(*number).ok().map(Bound::new),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;
    use crate::config::load;

    fn settings(values: &[(&str, &str)]) -> Settings {
        let environment = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load(&Inputs {
            environment: environment.collect(),
            ..Inputs::default()
        })
        .expect("valid")
    }

    #[test]
    fn the_defaults_of_the_keys_are_those_of_the_server() {
        let settings = settings(&[]);
        assert_eq!(tenant_limits(&settings), TenantLimits::default());
        let overrides = tenant_overrides(&settings).expect("valid");
        assert_eq!(overrides, BTreeMap::new());
    }

    #[test]
    fn a_tenant_has_its_own_and_else_those_of_all() {
        let settings = settings(&[
            ("CANDELA_SERVER__LIMITS__SERIES", "7"),
            ("CANDELA_SERVER__LIMITS__INGEST_RATE", "0"),
            (
                "CANDELA_SERVER__TENANT_LIMITS",
                "team.a.profile_size=1MiB,team.a.labels_per_sample=0,b.series=9",
            ),
        ]);
        let overrides = tenant_overrides(&settings).expect("valid");
        let all = TenantLimits {
            series: Bound::new(7),
            ingest_rate: Bound::new(0),
            ..TenantLimits::default()
        };
        let of_a = TenantLimits {
            profile_size: Bound::new(1 << 20),
            labels_per_sample: Bound::new(0),
            ..all
        };
        let of_b = TenantLimits {
            series: Bound::new(9),
            ..all
        };
        let expected = BTreeMap::from([("team.a".to_owned(), of_a), ("b".to_owned(), of_b)]);
        assert_eq!(overrides, expected);
    }

    #[test]
    fn what_is_no_limit_is_said() {
        let cases = [
            (
                "a.sereis=1",
                "a.sereis: sereis is no limit; there are ingest_rate",
            ),
            ("a.series=many", "a.series: \"many\" is no whole number"),
            ("a.profile_size=big", "a.profile_size: \"big\" is no size"),
            (
                "series=1",
                "series: must be a limit below the name of a tenant",
            ),
            (".series=1", "must be a limit below the name of a tenant"),
            ("a.series=", "a.series: has no value"),
        ];
        for (text, part) in cases {
            let settings = settings(&[("CANDELA_SERVER__TENANT_LIMITS", text)]);
            let error = tenant_overrides(&settings).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
