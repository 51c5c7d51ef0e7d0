//! Telling text from messages: a line feed is the tag of field 1 and letters are tags, so that short
//! texts are messages as far as they go.

use crate::protobuf::reader::Reader;

/// Whether the start of some input is text: nothing but what can be printed, and no message that ends
/// where it ends. Messages of more than some bytes have tags or lengths that cannot.
pub(crate) fn is_text(prefix: &[u8]) -> bool {
    is_printable(prefix) && !is_whole_message(prefix)
}

fn is_printable(prefix: &[u8]) -> bool {
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        // The prefix may end inside of a character.
        Err(error) if error.error_len().is_none() => {
            let (text, _) = prefix.split_at(error.valid_up_to());
            std::str::from_utf8(text).unwrap_or("")
        }
        Err(_) => return false,
    };
    let is_unprintable = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    !text.contains(is_unprintable)
}

fn is_whole_message(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    loop {
        match reader.field() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_is_printed_and_no_message() {
        for text in [
            &b"\n\n\n"[..],
            b"pyroscope-io==1.2.1",
            b"\nthis\nis an unknown\nformat\n",
            b"\n\xc3\xa4\xc3",
        ] {
            assert!(is_text(text), "{text:?}");
        }
        for other in [&b"\n\x04\x08\x01"[..], b"\n\tabcdefghi", b"\n\n\xff"] {
            assert!(!is_text(other), "{other:?}");
        }
    }
}
