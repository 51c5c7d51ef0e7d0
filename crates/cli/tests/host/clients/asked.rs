//! What the server answers about one service, asked as people and Grafana do.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;
use serde_json::json;

use super::client::TestServer;
use crate::support;

/// CPU time.
pub(crate) const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Which shares functions must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// Any: a busy host or chance may take from them, or give to what else the program does.
    Any,
    /// Those that the program was written to have.
    AsWritten,
}

/// A service of which profiles are expected.
pub(crate) struct Service<'a> {
    pub(crate) server: &'a TestServer,
    pub(crate) name: &'a str,
}

/// A place in a program, as Drilldown shows it for a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: u64,
}

impl Shares {
    /// What a share must exceed that is more than this as the program is written.
    pub(crate) fn least(self, as_written: f64) -> f64 {
        match self {
            Self::Any => 0.0,
            Self::AsWritten => as_written,
        }
    }
}

impl Service<'_> {
    /// The ids of its profile types.
    pub(crate) fn types(&self) -> BTreeSet<String> {
        let (_, answer) = self.get("types", "", &[]);
        let types = answer["types"].as_array().unwrap();
        types
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The values of a label.
    pub(crate) fn label_values(&self, label: &str) -> Vec<String> {
        let (_, answer) = self.get("label-values", "", &[("label", label)]);
        let values = answer["values"].as_array().unwrap();
        values
            .iter()
            .map(|value| value.as_str().unwrap().to_owned())
            .collect()
    }

    /// The table of what is done for one of the two labels that each program of the tests sets; none
    /// until both are there.
    pub(crate) fn milk(&self, profile_type: &str) -> Option<Value> {
        self.top(profile_type, r#",aisle="bread""#)?;
        self.top(profile_type, r#",aisle="milk""#)
    }

    /// The table of functions of one profile type; none while there is none. `matchers` are further
    /// ones of the selector: `,aisle="bread"`.
    pub(crate) fn top(&self, profile_type: &str, matchers: &str) -> Option<Value> {
        let parameters = [("type", profile_type), ("limit", "0")];
        let (status, answer) = self.get("top", matchers, &parameters);
        // Not before its first profile is the type known.
        (status == 200 && answer["total"].as_i64()? > 0).then_some(answer)
    }

    /// What a function and all that it calls have; none while it is not there.
    pub(crate) fn total(&self, profile_type: &str, function: &str) -> Option<i64> {
        let top = self.top(profile_type, "")?;
        value(&top, function, "total").filter(|total| *total > 0)
    }

    /// Where samples were in a function, from the profile that Drilldown asks for.
    pub(crate) fn places(&self, profile_type: &str, function: &str) -> BTreeSet<Place> {
        let profile = self.profile(profile_type);
        let text = |index: &Value| -> String {
            let index = usize::try_from(number(index)).unwrap();
            profile["stringTable"][index].as_str().unwrap().to_owned()
        };
        let functions = profile["function"].as_array().unwrap();
        let mut places = BTreeSet::new();
        for location in profile["location"].as_array().unwrap() {
            for line in location["line"].as_array().into_iter().flatten() {
                let id = number(&line["functionId"]);
                let of_line = functions.iter().find(|one| number(&one["id"]) == id);
                let of_line = of_line.expect("a line's function");
                if text(&of_line["name"]) == function {
                    places.insert(Place {
                        file: text(&of_line["filename"]),
                        line: number(&line["line"]),
                    });
                }
            }
        }
        places
    }

    fn profile(&self, profile_type: &str) -> Value {
        let url = self
            .server
            .running
            .url("/querier.v1.QuerierService/SelectMergeProfile");
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let request = json!({
            "profileTypeID": profile_type,
            "labelSelector": self.selector(""),
            "start": (now - 600_000).to_string(),
            "end": (now + 60_000).to_string(),
        });
        let mut answer = ureq::post(&url)
            .header("Content-Type", "application/json")
            .send(request.to_string())
            .unwrap_or_else(|error| panic!("{url}: {error}"));
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap()
    }

    fn selector(&self, matchers: &str) -> String {
        format!("{{service_name=\"{}\"{matchers}}}", self.name)
    }

    fn get(&self, what: &str, matchers: &str, parameters: &[(&str, &str)]) -> (u16, Value) {
        let query = encoded(&self.selector(matchers));
        // Some clients date profiles to the end of what they cover, which may be a moment ahead.
        let mut url = format!("/api/v1/{what}?query={query}&from=now-10m&to=now%2B1m");
        for (name, value) in parameters {
            write!(url, "&{name}={}", encoded(value)).unwrap();
        }
        let (status, body) = support::get(&self.server.running.url(&url));
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// The value of a function in a table: `self` or `total`. A name may stand there for several files.
pub(crate) fn value(top: &Value, function: &str, column: &str) -> Option<i64> {
    let functions = top["functions"].as_array().unwrap();
    let rows = functions.iter().filter(|row| row["name"] == function);
    rows.map(|row| row[column].as_i64().unwrap())
        .reduce(|sum, value| sum + value)
}

/// The share of a function in the whole, own time and that of what it calls.
pub(crate) fn share(top: &Value, function: &str) -> f64 {
    let total = value(top, function, "total").unwrap_or(0);
    ratio(total, top["total"].as_i64().unwrap())
}

/// One number divided by another.
pub(crate) fn ratio(part: i64, whole: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "shares need no more")]
    let ratio = part as f64 / whole as f64;
    ratio
}

/// Protobuf's JSON leaves zeros out and writes long numbers as text.
fn number(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_u64().unwrap_or(0),
    }
}

/// Percent-encoded, as a parameter of a URL.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").unwrap();
        }
    }
    encoded
}
