//! What our agent says of itself: attributes `candela.*` of profiles.

use crate::otlp::OWN_PREFIX;
use crate::otlp::PROFILE_NAME_ATTRIBUTE;
use crate::otlp::attributes::Plain;
use crate::otlp::dictionary::Attribute;
use crate::report::AttributeValue;

/// Names and texts of agents are short; what is longer is none of ours.
const MAX_BYTES: usize = 256;

/// When the agent started.
const STARTED_ATTRIBUTE: &str = "candela.agent.started_ms";

/// Where it runs: what it scrapes may run elsewhere.
const HOST_ATTRIBUTE: &str = "candela.agent.host";

/// Whether an attribute is ours, and so no label.
pub(crate) fn is_own(attribute: &Attribute<'_>) -> bool {
    attribute.key.starts_with(OWN_PREFIX)
}

/// The first part of the profile type, where our agent gives it.
pub(crate) fn own_name<'a>(attributes: &[&'a Attribute<'_>]) -> Option<&'a str> {
    let names = attributes
        .iter()
        .rev()
        .filter(|attribute| attribute.key == PROFILE_NAME_ATTRIBUTE);
    names
        .filter_map(|attribute| match attribute.values.first() {
            Some(Plain::Text(name)) => Some(&**name),
            _ => None,
        })
        .next()
}

/// What else it says.
pub(crate) fn own_attributes(attributes: &[&Attribute<'_>]) -> Vec<(String, AttributeValue)> {
    let own = attributes
        .iter()
        .filter(|attribute| is_own(attribute) && attribute.key != PROFILE_NAME_ATTRIBUTE);
    own.filter_map(|attribute| {
        let value = match attribute.values.first()? {
            Plain::Text(text) if text.len() <= MAX_BYTES => {
                AttributeValue::Text(text.clone().into_owned())
            }
            Plain::Text(_) => return None,
            Plain::Number(number) => AttributeValue::Number(*number),
        };
        let is_short = attribute.key.len() <= MAX_BYTES;
        is_short.then(|| (attribute.key.to_owned(), value))
    })
    .collect()
}

/// The agent's host, where it says it.
pub(crate) fn own_host(own: &[(String, AttributeValue)]) -> Option<&str> {
    own.iter().find_map(|(name, value)| match value {
        AttributeValue::Text(host) if name == HOST_ATTRIBUTE => Some(host.as_str()),
        _ => None,
    })
}

/// When the agent started; 0 when it does not say.
pub(crate) fn started_ms(own: &[(String, AttributeValue)]) -> i64 {
    let started = own.iter().find(|(name, _)| name == STARTED_ATTRIBUTE);
    match started {
        Some((_, AttributeValue::Number(started_ms))) => *started_ms,
        _ => 0,
    }
}
