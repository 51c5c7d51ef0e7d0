//! The name under which an application pushes: `app{key=value,key2=value2}`.

use crate::api_error::ApiError;

/// A name taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppName {
    pub(crate) app: String,
    /// In the order of the name.
    pub(crate) labels: Vec<(String, String)>,
}

impl AppName {
    /// # Errors
    /// 400 when the name is empty or its labels are none.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let bad = |problem: &str| {
            let message = format!("name: {text:?} {problem}");
            ApiError::bad_request("bad_name", message)
                .hint("it looks like app{key=value,key2=value2}")
        };
        let text = text.trim();
        let (app, labels) = match text.split_once('{') {
            None => (text, ""),
            Some((app, rest)) => {
                let labels = rest.strip_suffix('}');
                (
                    app,
                    labels.ok_or_else(|| bad("has a brace that is not closed"))?,
                )
            }
        };
        if app.trim().is_empty() {
            return Err(bad("names no application"));
        }
        let mut parsed = Self {
            app: app.trim().to_owned(),
            labels: Vec::new(),
        };
        for label in labels.split(',').filter(|label| !label.trim().is_empty()) {
            let Some((key, value)) = label.split_once('=') else {
                return Err(bad("has a label without ="));
            };
            let (key, value) = (key.trim(), value.trim());
            if !is_key(key) {
                return Err(bad(&format!("has the label {key:?}, which is no name")));
            }
            if key == "__name__" {
                return Err(bad("sets __name__, which is the application"));
            }
            parsed.labels.push((key.to_owned(), value.to_owned()));
        }
        Ok(parsed)
    }
}

/// Whether it can be the name of a label. Dots are names of OpenTelemetry's.
fn is_key(key: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/');
    !key.is_empty() && key.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let parsed = AppName::parse("my.app.cpu{ region = eu-1 ,a.b=c,}").expect("a name");
        assert_eq!(parsed.app, "my.app.cpu");
        let wanted = [("region", "eu-1"), ("a.b", "c")];
        let wanted = wanted.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parsed.labels, wanted);
        assert_eq!(AppName::parse("app{}").expect("a name").labels, []);
    }

    #[test]
    fn names_that_are_none_say_why() {
        for (text, problem) in [
            ("", "names no application"),
            ("{a=b}", "names no application"),
            ("app{a=b", "not closed"),
            ("app{a}", "without ="),
            ("app{a b=c}", "no name"),
            ("app{__name__=x}", "__name__"),
        ] {
            let error = AppName::parse(text).expect_err(text);
            assert!(error.message.contains(problem), "{}", error.message);
            assert_eq!(error.code, "bad_name");
        }
    }
}
