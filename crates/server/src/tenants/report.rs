//! Tenants in `/api/v1/status` and `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::TenantUsage;
use super::Tenants;
use crate::app::DEFAULT_TENANT;
use crate::auth::Caller;
use crate::metrics::Refused;
use crate::metrics::head;

/// `tenants` of the status answer: what each that the caller sees may send, has sent, and was
/// refused. Tenants without limits of their own that have sent nothing are left out, but for those
/// that the caller names and the one that everybody is.
pub(crate) fn tenants_json(tenants: &Tenants, refused: &[Refused], caller: &Caller) -> Value {
    let mut answer = Map::new();
    let mut names = shown(tenants);
    names.extend(caller.tenants().iter().map(ToString::to_string));
    names.retain(|name| caller.sees(name));
    names.sort();
    names.dedup();
    for name in names {
        let TenantUsage {
            series,
            accepted,
            erased,
        } = tenants.usage_of(&name);
        let limits = tenants.limits(&name).entries();
        let limits = limits.map(|(name, bound)| (name, bound.get()));
        let refused = refused.iter().filter(|refused| refused.tenant == name);
        let refused = refused.map(|refused| (refused.reason.as_str(), refused.count));
        let value = json!({
            "series": series,
            "profiles": accepted.profiles,
            "samples": accepted.samples,
            "bytes": accepted.bytes,
            "erased": {
                "requests": erased.requests,
                "profiles": erased.profiles,
                "samples": erased.samples,
            },
            "refused": refused.collect::<BTreeMap<&str, u64>>(),
            "limits": limits.into_iter().collect::<BTreeMap<&str, u64>>(),
        });
        answer.insert(name, value);
    }
    Value::Object(answer)
}

/// A column of a tenant's figures: family, kind, help, value.
type Family = (
    &'static str,
    &'static str,
    &'static str,
    fn(&TenantUsage) -> u64,
);

/// Families of the tenants in the Prometheus text format.
pub(crate) fn write_tenant_metrics(tenants: &Tenants, out: &mut String) {
    let names = shown(tenants);
    let families: [Family; 5] = [
        (
            "candela_tenant_series",
            "gauge",
            "Active series.",
            |usage| usage.series as u64,
        ),
        (
            "candela_tenant_profiles_total",
            "counter",
            "Stored profiles.",
            |usage| usage.accepted.profiles,
        ),
        (
            "candela_tenant_samples_total",
            "counter",
            "Stored samples.",
            |usage| usage.accepted.samples,
        ),
        (
            "candela_tenant_bytes_total",
            "counter",
            "Bytes of accepted profiles, decompressed and with labels.",
            |usage| usage.accepted.bytes,
        ),
        (
            "candela_tenant_erased_profiles_total",
            "counter",
            "Profiles erased by request.",
            |usage| usage.erased.profiles,
        ),
    ];
    for (family, kind, help, value) in families {
        head(out, family, kind, help);
        for name in &names {
            let value = value(&tenants.usage_of(name));
            let _ = writeln!(out, "{family}{{tenant={name:?}}} {value}");
        }
    }
    let family = "candela_tenant_limit";
    head(
        out,
        family,
        "gauge",
        "What a tenant may send; 0 is no limit.",
    );
    for name in &names {
        for (limit, bound) in tenants.limits(name).entries() {
            let labels = format!("tenant={name:?},limit=\"{limit}\"");
            let _ = writeln!(out, "{family}{{{labels}}} {}", bound.get());
        }
    }
}

fn shown(tenants: &Tenants) -> Vec<String> {
    let mut names = tenants.names();
    if !names.iter().any(|name| name == DEFAULT_TENANT) {
        names.push(DEFAULT_TENANT.to_owned());
        names.sort();
    }
    names
}
