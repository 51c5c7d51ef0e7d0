//! The protobuf wire format, for the messages that generated code would be too slow for.

pub(crate) mod reader;
pub(crate) mod repair;
pub(crate) mod text;
pub(crate) mod writer;
