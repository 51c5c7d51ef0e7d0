//! Which labels name an instance: what is independent of the other instances of a service.

use crate::SERVICE_NAME_LABEL;
use crate::labels::Labels;

/// Labels that say on which machine something runs.
const MACHINES: [&str; 4] = ["host", "hostname", "node", "instance"];
/// Labels that tell instances of one service apart.
const INSTANCES: [&str; 9] = [
    "host",
    "hostname",
    "node",
    "instance",
    "pod",
    "container_id",
    "service.instance.id",
    "service_instance_id",
    "run",
];

/// The labels that tell instances apart among these series; each item is the series of one side of a
/// comparison.
///
/// Several services share hosts, and a function is in one of them: instances would then differ by what
/// they are. Hosts that run the same differ by chance.
#[must_use]
pub fn instance_labels<'a, Side>(sides: impl IntoIterator<Item = Side>) -> &'static [&'static str]
where
    Side: IntoIterator<Item = &'a Labels>,
{
    let has_one_service = |side: Side| {
        let mut services = side
            .into_iter()
            .map(|labels| labels.get(SERVICE_NAME_LABEL));
        let first = services.next();
        services.all(|service| Some(service) == first)
    };
    if sides.into_iter().all(has_one_service) {
        &INSTANCES
    } else {
        &MACHINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_services_have_machines_in_common_only() {
        let of = |service: &str, pod: &str| {
            Labels::from_pairs([(SERVICE_NAME_LABEL, service), ("pod", pod)])
        };
        let (old, new) = ([of("web", "a"), of("web", "b")], [of("web2", "c")]);
        assert!(instance_labels([&old[..], &new[..]]).contains(&"pod"));
        let both = [of("web", "a"), of("db", "b")];
        assert!(!instance_labels([&both[..], &new[..]]).contains(&"pod"));
        assert!(instance_labels([&both[..]]).contains(&"host"));
        assert!(instance_labels([&old[..0]]).contains(&"pod"));
    }
}
