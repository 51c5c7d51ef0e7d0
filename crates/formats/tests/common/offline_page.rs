//! The page of one file, taken apart.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use serde_json::Value;

/// As little of a page as takes profiles.
pub const TEMPLATE: &str = "<html><body><!--candela-profiles--></body></html>";

/// The page that the window's build makes, where it was built.
pub fn built_template(test: &str) -> Option<&'static str> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist/offline.html");
    let Ok(template) = std::fs::read_to_string(path) else {
        eprintln!("skipped: {test}: cargo xtask ui builds the page");
        return None;
    };
    Some(template.leak())
}

/// The document inside of a page made of [`TEMPLATE`].
pub fn document(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"candela-profiles\">";
    let (_, rest) = page.split_once(start).expect("a sound page");
    let (document, foot) = rest.split_once("</script>").expect("a sound page");
    assert_eq!(foot, "</body></html>");
    serde_json::from_str(document).expect("a sound page")
}

/// What is gzipped in base64.
pub fn unpacked(text: &Value) -> Vec<u8> {
    let engine = base64::engine::general_purpose::STANDARD;
    let gzip = engine
        .decode(text.as_str().expect("a sound page"))
        .expect("a sound page");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&gzip[..])
        .read_to_end(&mut bytes)
        .expect("a sound page");
    bytes
}

/// The header of a tree as columns.
pub fn header(columns: &[u8]) -> Value {
    assert_eq!(&columns[..4], b"CFG1");
    let length = columns[4..8].try_into().expect("four bytes");
    let length = u32::from_le_bytes(length) as usize;
    serde_json::from_slice(&columns[8..8 + length]).expect("JSON")
}

/// A column of eight-byte numbers.
pub fn numbers(columns: &[u8], name: &str) -> Vec<f64> {
    let header = header(columns);
    let header_length = u32::from_le_bytes(columns[4..8].try_into().expect("four bytes"));
    let data = (8 + header_length as usize).next_multiple_of(8);
    let entries = header["columns"].as_array().expect("a directory").iter();
    let mut named = entries.filter(|entry| entry["name"] == name);
    let entry = named.next().expect("the column is there");
    let number = |key: &str| entry[key].as_u64().expect("a number") as usize;
    let start = data + number("offset");
    let bytes = columns[start..start + 8 * number("length")].chunks_exact(8);
    bytes
        .map(|value| f64::from_le_bytes(value.try_into().expect("eight bytes")))
        .collect()
}
