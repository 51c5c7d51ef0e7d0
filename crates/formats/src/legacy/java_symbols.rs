//! The names of frames at the end of a JVM's profiles: `NUMBER NAME (FILE:LINE)`, one a line.

use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::lines::Lines;

/// Names the frames of the samples, which come before. Lines that name none are passed over.
pub(crate) fn read(lines: Lines<'_>, stacks: &mut AddressStacks<'_>) {
    for line in lines {
        let Some((number, description)) = parse_line(line.text) else {
            continue;
        };
        if !stacks.has_address(number) {
            continue;
        }
        let (name, file, line) = describe(description);
        let function = stacks.function(name, file);
        stacks.name(number, vec![(function, line, 0)]);
    }
}

fn parse_line(line: &str) -> Option<(u64, &str)> {
    let (number, description) = line
        .trim()
        .strip_prefix("0x")?
        .split_once(char::is_whitespace)?;
    let number = u64::from_str_radix(number, 16).ok()?;
    Some((number, description.trim_start()))
}

/// Function, file and line.
fn describe(description: &str) -> (&str, &str, u32) {
    let inside = description
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        .filter(|(name, _)| name.ends_with(char::is_whitespace));
    let Some((name, place)) = inside else {
        let is_stub = description.contains("generated stub/JIT");
        return (if is_stub { "STUB" } else { description }, "", 0);
    };
    let name = name.trim_end();
    if let Some((file, line)) = place.rsplit_once(':')
        && !file.is_empty()
        && let Ok(line) = line.parse::<i64>()
    {
        return (name, file, u32::try_from(line).unwrap_or(0));
    }
    // A library: where it lies on that host tells nothing.
    let file = place.rsplit_once('/').map_or(place, |(_, file)| file);
    (name, file, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_taken_apart() {
        let cases = [
            ("a.B.c (B.java:17)", ("a.B.c", "B.java", 17)),
            ("a.B.c (B.java:-2)", ("a.B.c", "B.java", 0)),
            (
                "a.B.<init>(int) (B.java:1)",
                ("a.B.<init>(int)", "B.java", 1),
            ),
            ("memcpy (/lib/libc.so.6)", ("memcpy", "libc.so.6", 0)),
            ("generated stub/JIT", ("STUB", "", 0)),
            ("GC", ("GC", "", 0)),
            ("f()", ("f()", "", 0)),
        ];
        for (description, expected) in cases {
            assert_eq!(describe(description), expected);
        }
        assert_eq!(parse_line("  0x0000001f  x y "), Some((0x1f, "x y")));
        assert_eq!(parse_line("0x1"), None);
    }
}
