//! Protobuf's text format, without a schema: a tree of fields, each with its place in the text.
//!
//! The form is that of the [specification](https://protobuf.dev/reference/protobuf/textformat-spec/):
//! messages in `{ }` or `< >` with or without a colon, lists in `[ ]`, texts that are joined when they
//! follow each other, numbers in three bases, comments from `#` to the end of the line, fields that
//! `,` or `;` may separate.
//!
//! | step | module |
//! |---|---|
//! | text to tokens | `lexer` |
//! | the bytes of a text in quotes | `strings` |
//! | tokens to a tree | `parser` |

mod lexer;
mod parser;
mod strings;

use crate::report::TextPosition;

pub use crate::text_proto::parser::parse;

/// A text that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct TextProtoError {
    /// Where.
    pub position: TextPosition,
    /// What stands there and what should; lower case, no final stop.
    pub message: String,
}

/// Fields in the order of the text; the same name may stand several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// All fields.
    pub fields: Vec<Field>,
    /// Where the first field may stand, in bytes from the beginning of the text: behind the bracket.
    pub body_start: usize,
}

/// One field, with one value or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name; that of an extension in its brackets.
    pub name: String,
    /// Where the name stands.
    pub position: TextPosition,
    /// Its value.
    pub value: Value,
    /// Where the value stands.
    pub value_position: TextPosition,
}

/// What a field has.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Bytes in quotes; texts where they are UTF-8.
    Text(Vec<u8>),
    /// A whole number: its sign and its magnitude.
    Integer {
        /// Whether `-` stands before it.
        is_negative: bool,
        /// Up to 64 bits.
        magnitude: u64,
    },
    /// A number with a fraction, an exponent, or beyond 64 bits.
    Float(f64),
    /// A name without quotes: of an enum's value, `true`, `inf`; with `-` where that stands before it.
    Name(String),
    /// Fields of its own.
    Message(Message),
    /// Values in brackets.
    List(Vec<(TextPosition, Value)>),
}

impl Message {
    /// All fields of a name.
    pub fn all<'message>(
        &'message self,
        name: &'message str,
    ) -> impl Iterator<Item = &'message Field> {
        self.fields.iter().filter(move |field| field.name == name)
    }
}

impl Field {
    /// The values of the field, lists spread: a repeated field may be written either way.
    pub fn values(&self) -> impl Iterator<Item = (TextPosition, &Value)> {
        let (single, list) = match &self.value {
            Value::List(elements) => (None, elements.as_slice()),
            value => (Some((self.value_position, value)), [].as_slice()),
        };
        let spread = list.iter().map(|(position, value)| (*position, value));
        single.into_iter().chain(spread)
    }
}
