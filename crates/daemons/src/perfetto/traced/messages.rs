//! What is said at the consumer's socket: frames of `protos/perfetto/ipc/wire_protocol.proto`, calls of
//! `consumer_port.proto` of <https://github.com/google/perfetto>, and of these what is used here.

/// What an `ObserveEventsRequest` asks for: that a trigger was hit, and its delay is over.
pub(crate) const CLONE_TRIGGER_HIT: i32 = 4;

/// Either way: what it is stands in the one field of a message that is there.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Frame {
    #[prost(uint64, optional, tag = "2")]
    pub(crate) request_id: Option<u64>,
    #[prost(message, optional, tag = "3")]
    pub(crate) bind_service: Option<BindService>,
    #[prost(message, optional, tag = "4")]
    pub(crate) bind_service_reply: Option<BindServiceReply>,
    #[prost(message, optional, tag = "5")]
    pub(crate) invoke_method: Option<InvokeMethod>,
    #[prost(message, optional, tag = "6")]
    pub(crate) invoke_method_reply: Option<InvokeMethodReply>,
    #[prost(message, optional, tag = "7")]
    pub(crate) request_error: Option<RequestError>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BindService {
    #[prost(string, optional, tag = "1")]
    pub(crate) service_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BindServiceReply {
    #[prost(bool, optional, tag = "1")]
    pub(crate) success: Option<bool>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) service_id: Option<u32>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) methods: Vec<MethodInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MethodInfo {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) id: Option<u32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InvokeMethod {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) service_id: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) method_id: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) args_proto: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InvokeMethodReply {
    #[prost(bool, optional, tag = "1")]
    pub(crate) success: Option<bool>,
    /// Further replies to the same call follow.
    #[prost(bool, optional, tag = "2")]
    pub(crate) has_more: Option<bool>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) reply_proto: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestError {
    #[prost(string, optional, tag = "1")]
    pub(crate) error: Option<String>,
}

/// Answered when the trace has ended.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EnableTracingRequest {
    /// A `TraceConfig`, which is longer than anything here, and passed on as it is.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) trace_config: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EnableTracingResponse {
    #[prost(string, optional, tag = "3")]
    pub(crate) error: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObserveEventsRequest {
    #[prost(int32, repeated, packed = "false", tag = "1")]
    pub(crate) events_to_observe: Vec<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObserveEventsResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) events: Option<ObservableEvents>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ObservableEvents {
    #[prost(message, optional, tag = "3")]
    pub(crate) clone_trigger_hit: Option<CloneTriggerHit>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloneTriggerHit {
    #[prost(int64, optional, tag = "1")]
    pub(crate) tracing_session_id: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) trigger_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) producer_name: Option<String>,
    #[prost(uint32, optional, tag = "4")]
    pub(crate) producer_uid: Option<u32>,
    /// When it was activated.
    #[prost(uint64, optional, tag = "5")]
    pub(crate) boot_time_ns: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) trigger_delay_ms: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QueryServiceStateRequest {
    #[prost(bool, optional, tag = "1")]
    pub(crate) sessions_only: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct QueryServiceStateResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) service_state: Option<TracingServiceState>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TracingServiceState {
    #[prost(message, repeated, tag = "6")]
    pub(crate) tracing_sessions: Vec<TracingSession>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TracingSession {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) id: Option<u64>,
    #[prost(string, optional, tag = "4")]
    pub(crate) unique_session_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloneSessionRequest {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) session_id: Option<u64>,
    #[prost(string, optional, tag = "5")]
    pub(crate) clone_trigger_name: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub(crate) clone_trigger_producer_name: Option<String>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) clone_trigger_trusted_producer_uid: Option<i32>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) clone_trigger_boot_time_ns: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(crate) clone_trigger_delay_ms: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloneSessionResponse {
    #[prost(bool, optional, tag = "1")]
    pub(crate) success: Option<bool>,
    #[prost(string, optional, tag = "2")]
    pub(crate) error: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadBuffersRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReadBuffersResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) slices: Vec<Slice>,
}

/// A part of a packet.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Slice {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) data: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "2")]
    pub(crate) last_slice_for_packet: Option<bool>,
}

/// What a data source is told of its trace, of `data_source_config.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DataSourceConfig {
    #[prost(uint64, optional, tag = "4")]
    pub(crate) tracing_session_id: Option<u64>,
}
