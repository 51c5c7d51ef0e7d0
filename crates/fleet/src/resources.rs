//! What a daemon asks of its node, and what it must not exceed: `request` and `limit`.

use std::collections::BTreeMap;

use crate::fields::Fields;
use crate::json::Json;
use crate::path::DocumentPath;
use crate::quantity::Quantity;
use crate::quantity::QuantityError;
use crate::report::Report;

/// CPU of a daemon that asks for none.
pub const DEFAULT_CPU_REQUEST: &str = "25m";
/// Memory of a daemon that asks for none.
pub const DEFAULT_MEMORY_REQUEST: &str = "64Mi";

const NAMES: [&str; 4] = ["cpu", "ephemeral_storage", "memory", "storage"];

/// Amounts as written, each of Kubernetes' form; [`Quantity::parse`] reads what was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPUs: `25m` is 0.025 of one.
    pub cpu: Option<String>,
    /// Bytes of scratch space on the node.
    pub ephemeral_storage: Option<String>,
    /// Bytes.
    pub memory: Option<String>,
    /// Bytes of a volume.
    pub storage: Option<String>,
}

impl Resources {
    /// The amount of CPU.
    #[must_use]
    pub fn cpu_quantity(&self) -> Option<Quantity> {
        parsed(self.cpu.as_deref())
    }

    /// The amount of memory.
    #[must_use]
    pub fn memory_quantity(&self) -> Option<Quantity> {
        parsed(self.memory.as_deref())
    }

    /// With CPU and memory of a daemon that asks for none (CH-2).
    #[must_use]
    pub(crate) fn with_default_request(&self) -> Self {
        let or_default = |given: &Option<String>, default: &str| {
            Some(given.clone().unwrap_or_else(|| default.to_owned()))
        };
        Self {
            cpu: or_default(&self.cpu, DEFAULT_CPU_REQUEST),
            memory: or_default(&self.memory, DEFAULT_MEMORY_REQUEST),
            ..self.clone()
        }
    }

    pub(crate) fn read(json: &Json, path: &DocumentPath, report: &mut Report) -> Option<Self> {
        let fields = Fields::of(json, path, &NAMES, report)?;
        fields.refuse_unknown(&NAMES, report);
        let mut amount = |name| read_amount(&fields, name, report);
        Some(Self {
            cpu: amount("cpu"),
            ephemeral_storage: amount("ephemeral_storage"),
            memory: amount("memory"),
            storage: amount("storage"),
        })
    }

    pub(crate) fn to_json(&self) -> Json {
        let entries = self
            .amounts()
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), Json::Text(amount?.to_owned()))));
        Json::Object(BTreeMap::from_iter(entries))
    }

    fn amounts(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("cpu", self.cpu.as_deref()),
            ("ephemeral_storage", self.ephemeral_storage.as_deref()),
            ("memory", self.memory.as_deref()),
            ("storage", self.storage.as_deref()),
        ]
    }
}

/// Kubernetes starts nothing that asks for more than it may have.
///
/// A limit below what is asked for by default counts, too: the daemon would ask for it all the same.
pub(crate) fn check_limit(
    request: Option<&Resources>,
    limit: Option<&Resources>,
    path: &DocumentPath,
    report: &mut Report,
) {
    let Some(limit) = limit else { return };
    let given = request.cloned().unwrap_or_default();
    let effective = given.with_default_request();
    let rows = effective.amounts().into_iter().zip(given.amounts());
    for (((name, requested), (_, written)), (_, limited)) in rows.zip(limit.amounts()) {
        let (Some(requested_amount), Some(limited_amount)) = (parsed(requested), parsed(limited))
        else {
            continue;
        };
        if requested_amount <= limited_amount {
            continue;
        }
        let (requested, limited) = (requested.unwrap_or_default(), limited.unwrap_or_default());
        let message = if written.is_some() {
            format!(
                "{requested} is requested and {limited} is the limit; lower request.{name} or raise limit.{name}"
            )
        } else {
            format!(
                "{limited} is less than {requested}, which is requested by default; raise it or set request.{name}"
            )
        };
        report.problem(path.key("limit").key(name), message);
    }
}

fn parsed(amount: Option<&str>) -> Option<Quantity> {
    Quantity::parse(amount?).ok()
}

/// Amounts may be written as numbers: `"cpu": 2` is usual in manifests.
fn read_amount(fields: &Fields<'_>, name: &'static str, report: &mut Report) -> Option<String> {
    let text = match fields.json(name)? {
        Json::Number(number) => number.to_string(),
        _ => fields.text(name, report)?,
    };
    let message = match (Quantity::parse(&text), name) {
        (Ok(amount), "cpu") if amount.is_whole_thousandths() => return Some(text),
        (Ok(_), "cpu") => {
            format!("{text:?} is finer than a thousandth of a CPU; write at least 1m")
        }
        (Ok(amount), _) if amount.is_whole() => return Some(text),
        (Ok(_), _) => format!(
            "{text:?} is not a whole number of bytes (m is a thousandth); write for example 64Mi"
        ),
        (Err(QuantityError::Form), "cpu") => {
            format!("{text:?} is not an amount of CPU; write for example 25m or 0.5")
        }
        (Err(QuantityError::Form), _) => {
            format!("{text:?} is not an amount of bytes; write for example 64Mi or 1G")
        }
        (Err(error @ QuantityError::Negative), _) => {
            format!("{text:?} {error}; write an amount from 0 up")
        }
        (Err(error @ QuantityError::TooLarge), _) => {
            format!("{text:?} {error}; write a smaller amount")
        }
    };
    report.problem(fields.path_of(name), message);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<Resources>, Vec<String>) {
        let json: Json = serde_json::from_str(text).unwrap();
        let mut report = Report::default();
        let path = DocumentPath::top().key("request");
        let resources = Resources::read(&json, &path, &mut report);
        let problems = report.problems.iter().map(ToString::to_string).collect();
        (resources, problems)
    }

    #[test]
    fn amounts_are_kept_as_written() {
        let (resources, problems) =
            read(r#"{"cpu": 2, "memory": "0.5Gi", "ephemeralStorage": "1G"}"#);
        assert_eq!(problems, Vec::<String>::new());
        let resources = resources.unwrap();
        assert_eq!(resources.memory_quantity().unwrap().bytes(), 1 << 29);
        assert_eq!(resources.cpu_quantity().unwrap().thousandths(), 2000);
        let written = r#"{"cpu":"2","ephemeral_storage":"1G","memory":"0.5Gi"}"#;
        assert_eq!(resources.to_json().to_string(), written);
    }

    #[test]
    fn a_limit_below_what_is_asked_by_default_is_told() {
        let limit = Resources {
            cpu: Some("10m".to_owned()),
            ..Resources::default()
        };
        let mut report = Report::default();
        check_limit(None, Some(&limit), &DocumentPath::top(), &mut report);
        let message = "limit.cpu: 10m is less than 25m, which is requested by default; raise it or set request.cpu";
        assert_eq!(report.problems[0].to_string(), message);
    }

    #[test]
    fn defaults_fill_what_is_absent() {
        let (resources, _) = read(r#"{"cpu": "1"}"#);
        let effective = resources.unwrap().with_default_request();
        assert_eq!(effective.cpu.as_deref(), Some("1"));
        assert_eq!(effective.memory.as_deref(), Some("64Mi"));
    }
}
