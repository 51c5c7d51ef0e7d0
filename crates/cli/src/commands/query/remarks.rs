//! What a server says about its JSON answers.

use serde_json::Value;

use crate::errors::CliError;
use crate::output;

/// Says why an answer is only a part of what was asked for. Not even `-q` hides it.
pub(super) fn tell_partial(answer: &Value) {
    if let Some(reason) = partial_reason(answer) {
        output::note(&format!("note: {reason}"));
    }
}

/// Nothing was found, which has an exit code of its own; or nothing could be read.
pub(super) fn nothing_found(answer: &Value) -> CliError {
    let hint = answer["hint"]
        .as_str()
        .unwrap_or("nothing is stored in this range");
    let partial = partial_reason(answer)
        .map(|reason| format!("; {reason}"))
        .unwrap_or_default();
    CliError::no_data(format!("no data: {hint}{partial}"))
}

fn partial_reason(answer: &Value) -> Option<&str> {
    if answer["partial"] != true {
        return None;
    }
    Some(
        answer["partial_reason"]
            .as_str()
            .unwrap_or("the answer is only a part"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        let answer = json!({"partial": true, "partial_reason": "block 7 cannot be read"});
        assert_eq!(partial_reason(&answer), Some("block 7 cannot be read"));
        assert_eq!(
            nothing_found(&answer).to_string(),
            "no data: nothing is stored in this range; block 7 cannot be read"
        );
        let answer = json!({"hint": "did you mean b?"});
        assert_eq!(partial_reason(&answer), None);
        assert_eq!(
            nothing_found(&answer).to_string(),
            "no data: did you mean b?"
        );
    }
}
