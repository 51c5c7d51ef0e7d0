//! The entries of the tables, as they stand in the file.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

type Text<'a> = Cow<'a, str>;

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MappingRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) file: Text<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) build_id: Text<'a>,
    #[serde(skip_serializing_if = "Address::is_zero")]
    pub(super) start: Address,
    #[serde(skip_serializing_if = "Address::is_zero")]
    pub(super) limit: Address,
    #[serde(skip_serializing_if = "Address::is_zero")]
    pub(super) offset: Address,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FunctionRow<'a> {
    pub(super) name: Text<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) system_name: Text<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) file: Text<'a>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) start_line: u32,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LocationRow<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) mapping: u32,
    #[serde(skip_serializing_if = "Address::is_zero")]
    pub(super) address: Address,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) kind: Text<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lines: Vec<LineRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LineRow {
    pub(super) function: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) line: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) column: u32,
}

/// Either a text, or a number with its unit.
#[derive(Serialize, Deserialize)]
pub(super) struct LabelRow<'a> {
    pub(super) key: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<i64>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub(super) unit: Text<'a>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LinkRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) trace_id: Text<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) span_id: Text<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SeriesRow<'a> {
    #[serde(default)]
    pub(super) labels: BTreeMap<Text<'a>, Text<'a>>,
    #[serde(rename = "type")]
    pub(super) profile_type: String,
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    pub(super) start_ns: i64,
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    pub(super) duration_ns: i64,
    #[serde(default, skip_serializing_if = "is_zero_i64")]
    pub(super) period: i64,
    #[serde(default)]
    pub(super) samples: SampleColumns,
}

/// Columns that are missing are of zeros.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SampleColumns {
    pub(super) stack: Vec<u32>,
    pub(super) value: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) label_set: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) link: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) time_ns: Vec<i64>,
}

/// A number that may use all 64 bits, as the text `0x1f`.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>", into = "String")]
pub(super) struct Address(pub(super) u64);

impl Address {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks with a reference"
    )]
    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl TryFrom<Cow<'_, str>> for Address {
    type Error = String;

    fn try_from(text: Cow<'_, str>) -> Result<Self, String> {
        let digits = text.strip_prefix("0x");
        let digits = digits.filter(|digits| !digits.starts_with('+'));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| {
            format!("{text:?} is no address: expected 0x and up to 16 hexadecimal digits")
        })?;
        Ok(Self(number))
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        format!("{:#x}", address.0)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks with a reference"
)]
fn is_zero_i64(number: &i64) -> bool {
    *number == 0
}
