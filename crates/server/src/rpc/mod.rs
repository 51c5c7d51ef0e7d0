//! Remote procedure calls with one message there and one back, in the dialects that the clients of
//! Pyroscope speak: Connect with protobuf or JSON, gRPC, and gRPC-Web.

mod answer;
mod call;
mod code;
mod deadline;
mod dialect;
mod frame;
mod message_size;

pub(crate) use self::answer::Answer;
pub(crate) use self::answer::failure;
pub(crate) use self::answer::failure_as;
pub(crate) use self::call::Call;
pub(crate) use self::call::CallMessage;
pub(crate) use self::call::unimplemented;
pub(crate) use self::call::unimplemented_because;
pub(crate) use self::deadline::Deadline;
pub(crate) use self::dialect::Codec;
pub(crate) use self::dialect::Dialect;
pub(crate) use self::message_size::MessageParts;
