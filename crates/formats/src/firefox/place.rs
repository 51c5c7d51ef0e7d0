//! The texts by which raw profiles say where code is.

/// What the text of a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// An address in the process.
    Address(u64),
    /// A function of a library, as `name (in library) …`; the line where one is given.
    Native {
        name: &'a str,
        library: &'a str,
        line: u32,
    },
    /// A function of a script, as `name (url:line:column)`, with the line and column where it
    /// begins. Without a name it is what the script itself does.
    Script {
        name: &'a str,
        url: &'a str,
        line: u32,
        column: u32,
    },
    /// Anything else: a label.
    Label(&'a str),
}

impl<'a> Place<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let address = text.strip_prefix("0x");
        if let Some(address) = address.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            return Self::Address(address);
        }
        native(text)
            .or_else(|| script(text))
            .unwrap_or(Self::Label(text))
    }
}

/// `name (in library)`, with ` + offset` or ` (file:line)` behind it.
fn native(text: &str) -> Option<Place<'_>> {
    let (name, rest) = text.rsplit_once(" (in ")?;
    let (library, behind) = rest.split_once(')')?;
    let is_offset = behind.strip_prefix(" + ").is_some_and(|offset| {
        !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit())
    });
    let source = behind
        .strip_prefix(" (")
        .and_then(|source| source.strip_suffix(')'))
        .filter(|source| source.contains(':'));
    if !behind.is_empty() && !is_offset && source.is_none() {
        return None;
    }
    let line = source.and_then(number_at_end).map_or(0, |(_, line)| line);
    Some(Place::Native {
        name,
        library,
        line,
    })
}

/// `name (url:line)`, `name (url:line:column)` or without the name and the brackets, and a number in
/// square brackets behind it: a position in the table of sources, whose names are the same.
fn script(text: &str) -> Option<Place<'_>> {
    let text = match text
        .strip_suffix(']')
        .and_then(|text| text.rsplit_once('['))
    {
        Some((text, source)) if source.bytes().all(|byte| byte.is_ascii_digit()) => text,
        _ => text,
    };
    let (name, place) = match text.strip_suffix(')') {
        Some(inner) => inner.rsplit_once(" (")?,
        None => ("", text),
    };
    let (before, last) = number_at_end(place)?;
    let (url, line, column) = match number_at_end(before) {
        Some((url, line)) if !url.is_empty() => (url, line, last),
        _ => (before, last, 0),
    };
    if url.is_empty() {
        return None;
    }
    // A script that another one loads is the last of a chain.
    let url = url.rsplit_once(" -> ").map_or(url, |(_, last)| last);
    Some(Place::Script {
        name,
        url,
        line,
        column,
    })
}

/// What is in front of `:number`, and the number.
fn number_at_end(text: &str) -> Option<(&str, u32)> {
    let (before, digits) = text.rsplit_once(':')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A column of generated code may be beyond 32 bits in theory only.
    is_number.then(|| (before, digits.parse().unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let cases = [
            ("0x7fff84bf1234", Place::Address(0x7fff_84bf_1234)),
            ("0xzz", Place::Label("0xzz")),
            ("(root)", Place::Label("(root)")),
            ("Startup::XRE_Main", Place::Label("Startup::XRE_Main")),
            (
                "a::b(int) (in XUL) + 12",
                native_place("a::b(int)", "XUL", 0),
            ),
            (
                "a::b (in XUL) (x/b.cpp:77)",
                native_place("a::b", "XUL", 77),
            ),
            ("a::b (in XUL)", native_place("a::b", "XUL", 0)),
            (
                "f (http://a/b.js:3:14)",
                script_place("f", "http://a/b.js", 3, 14),
            ),
            (
                "f (http://a/b.js:3:14)[22]",
                script_place("f", "http://a/b.js", 3, 14),
            ),
            (
                "f (g.js -> http://a/b.js:3)",
                script_place("f", "http://a/b.js", 3, 0),
            ),
            (
                "http://a:80/b.js:3",
                script_place("", "http://a:80/b.js", 3, 0),
            ),
            ("self-hosted:1:2", script_place("", "self-hosted", 1, 2)),
            (":1:2", script_place("", ":1", 2, 0)),
            ("f (12:30)", script_place("f", "12", 30, 0)),
            ("x:", Place::Label("x:")),
            (":7", Place::Label(":7")),
        ];
        for (text, place) in cases {
            assert_eq!(Place::parse(text), place, "{text}");
        }
    }

    fn native_place<'a>(name: &'a str, library: &'a str, line: u32) -> Place<'a> {
        Place::Native {
            name,
            library,
            line,
        }
    }

    fn script_place<'a>(name: &'a str, url: &'a str, line: u32, column: u32) -> Place<'a> {
        Place::Script {
            name,
            url,
            line,
            column,
        }
    }
}
