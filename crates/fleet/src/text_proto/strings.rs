//! The bytes that a text in quotes stands for.

/// Resolves the escapes of the text format; what is wrong with them otherwise.
pub(super) fn unescaped(inner: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(slash) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..slash]);
        rest = &rest[slash + 1..];
        let Some(kind) = rest.chars().next() else {
            return Err("a backslash ends the text; write \\\\ for a backslash".to_owned());
        };
        rest = escape(kind, rest, &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Reads one escape behind its backslash and gives what follows it.
fn escape<'text>(kind: char, rest: &'text str, bytes: &mut Vec<u8>) -> Result<&'text str, String> {
    let behind_kind = &rest[kind.len_utf8()..];
    let single = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '?' => kind as u8,
        '0'..='7' => {
            let (value, behind) = digits(rest, 8, 3);
            let byte = value.and_then(|value| u8::try_from(value).ok());
            bytes.push(byte.ok_or("an octal escape is more than \\377; write three digits")?);
            return Ok(behind);
        }
        'x' | 'X' => {
            let (value, behind) = digits(behind_kind, 16, 2);
            let byte = value.and_then(|value| u8::try_from(value).ok());
            bytes.push(byte.ok_or("\\x has no digit; write two, for example \\x0a")?);
            return Ok(behind);
        }
        'u' | 'U' => return unicode(kind, behind_kind, bytes),
        other => {
            return Err(format!(
                "{:?} is no escape; write \\\\ for a backslash",
                format!("\\{other}")
            ));
        }
    };
    bytes.push(single);
    Ok(behind_kind)
}

fn unicode<'text>(kind: char, rest: &'text str, bytes: &mut Vec<u8>) -> Result<&'text str, String> {
    let length = if kind == 'u' { 4 } else { 8 };
    let (value, behind) = digits(rest, 16, length);
    let is_complete = rest.len() - behind.len() == length;
    let Some(character) = value.filter(|_| is_complete).and_then(char::from_u32) else {
        return Err(format!(
            "\\{kind} needs {length} hexadecimal digits of a character that is no surrogate"
        ));
    };
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(behind)
}

/// Up to so many digits at the beginning, and what follows them.
fn digits(text: &str, base: u32, most: usize) -> (Option<u32>, &str) {
    let is_digit = |character: &char| character.is_digit(base);
    let length = text.chars().take(most).take_while(is_digit).count();
    // Digits are ASCII: as many bytes as characters.
    let (digits, behind) = text.split_at(length);
    (u32::from_str_radix(digits, base).ok(), behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescaped(r#"a\n\t\\\'\"\?"#).unwrap(), b"a\n\t\\'\"?");
        assert_eq!(unescaped(r"\a\b\f\r\v").unwrap(), b"\x07\x08\x0c\r\x0b");
        assert_eq!(unescaped(r"\1018\0\377").unwrap(), b"A8\x00\xff");
        assert_eq!(unescaped(r"\x41\xfg\X0").unwrap(), b"A\x0fg\x00");
        assert_eq!(unescaped(r"\u00e4\U0001F525").unwrap(), "ä🔥".as_bytes());
        assert_eq!(unescaped("ä").unwrap(), "ä".as_bytes());
    }

    #[test]
    fn wrong_escapes_are_told() {
        for text in [
            r"\q",
            r"\ä",
            r"\400",
            r"\xg",
            r"\u12",
            r"\ud800",
            r"\U0011ffff",
            r"\",
        ] {
            assert!(unescaped(text).is_err(), "{text:?}");
        }
    }
}
