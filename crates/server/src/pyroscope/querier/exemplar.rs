//! Single profiles and spans as messages have them.

use candela_model::Labels;
use candela_query::Exemplar;
use candela_query::ExemplarKind;
use candela_query::ExemplarOf;
use candela_wire::types::v1::Exemplar as ExemplarMessage;
use candela_wire::types::v1::ExemplarType;

use crate::pyroscope::querier::lines::pairs;
use crate::pyroscope::querier::points::milliseconds;

/// What the exemplars that a client asks for are of.
pub(crate) fn kind_of(asked: ExemplarType) -> Option<ExemplarKind> {
    match asked {
        ExemplarType::Unspecified | ExemplarType::None => None,
        ExemplarType::Individual => Some(ExemplarKind::Profile),
        ExemplarType::Span => Some(ExemplarKind::Span),
    }
}

/// What the line is grouped by stands with the line.
pub(crate) fn exemplar_message(exemplar: &Exemplar, group_by: &[String]) -> ExemplarMessage {
    let labels = exemplar.labels.iter();
    let labels = labels.filter(|(name, _)| group_by.iter().all(|grouped| grouped != name));
    let message = ExemplarMessage {
        timestamp: milliseconds(exemplar.start_ns),
        value: exemplar.value,
        labels: pairs(&Labels::from_pairs(labels)),
        ..ExemplarMessage::default()
    };
    match exemplar.of {
        ExemplarOf::Profile(key) => ExemplarMessage {
            profile_id: key.to_string(),
            ..message
        },
        ExemplarOf::Span(link) => ExemplarMessage {
            span_id: format!("{:016x}", u64::from_be_bytes(link.span_id)),
            trace_id: match u128::from_be_bytes(link.trace_id) {
                // Clients of older agents tell a span alone.
                0 => String::new(),
                trace => format!("{trace:032x}"),
            },
            ..message
        },
    }
}
