//! A consumer's connection to `traced`: calls and replies in frames, each with its length in front.

use std::collections::HashMap;
use std::env;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use prost::Message;

use crate::perfetto::traced::error::TracedError;
use crate::perfetto::traced::messages::BindService;
use crate::perfetto::traced::messages::Frame;
use crate::perfetto::traced::messages::InvokeMethod;

const SERVICE: &str = "ConsumerPort";

/// Perfetto's frames have up to 128 KiB.
const LARGEST_FRAME: usize = 1 << 20;

/// A connection that ends with the value.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    service: u32,
    methods: HashMap<String, u32>,
    last_request: u64,
}

/// Ends a connection from another thread.
#[derive(Debug)]
pub(crate) struct Closer(UnixStream);

/// What came to a call.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) request: u64,
    /// Whether no other one comes to the same call.
    pub(crate) is_last: bool,
    /// `None` when the call failed.
    content: Option<Vec<u8>>,
}

/// Where Perfetto's own programs look for `traced`.
pub(crate) fn consumer_socket() -> PathBuf {
    if let Some(name) = env::var_os("PERFETTO_CONSUMER_SOCK_NAME") {
        return name.into();
    }
    let folder = Path::new("/run/perfetto");
    match folder.is_dir() {
        true => folder.join("traced-consumer.sock"),
        false => PathBuf::from("/tmp/perfetto-consumer"),
    }
}

impl Connection {
    /// Connects. Nothing is said yet.
    ///
    /// # Errors
    /// [`TracedError::NoSocket`].
    pub(crate) fn open(socket: &Path) -> Result<Self, TracedError> {
        let stream = UnixStream::connect(socket).map_err(|source| TracedError::NoSocket {
            socket: socket.to_owned(),
            source,
        })?;
        Ok(Self {
            stream,
            service: 0,
            methods: HashMap::new(),
            last_request: 0,
        })
    }

    /// What ends it from elsewhere.
    ///
    /// # Errors
    /// [`TracedError::Gone`] when the system has no further handle for it.
    pub(crate) fn closer(&self) -> Result<Closer, TracedError> {
        self.stream
            .try_clone()
            .map(Closer)
            .map_err(|error| gone(&error))
    }

    /// Each reply comes in this time, or it is an error.
    ///
    /// # Errors
    /// [`TracedError::Gone`] when the system refuses it.
    pub(crate) fn set_patience(&self, patience: Duration) -> Result<(), TracedError> {
        self.stream
            .set_read_timeout(Some(patience))
            .map_err(|error| gone(&error))
    }

    /// Learns what may be called.
    ///
    /// # Errors
    /// When it is no `traced`.
    pub(crate) fn bind(&mut self) -> Result<(), TracedError> {
        let request = self.next_request();
        self.send(&Frame {
            request_id: Some(request),
            bind_service: Some(BindService {
                service_name: Some(SERVICE.to_owned()),
            }),
            ..Frame::default()
        })?;
        let reply = self.receive_frame()?.bind_service_reply;
        let reply = reply.filter(|reply| reply.success());
        let reply = reply.ok_or_else(|| odd(&format!("it has no {SERVICE}")))?;
        self.service = reply.service_id();
        let methods = reply.methods.into_iter();
        let methods = methods.map(|method| (method.name().to_owned(), method.id()));
        self.methods = methods.collect();
        Ok(())
    }

    /// Calls, and returns the number by which its replies are known.
    ///
    /// # Errors
    /// When it does not know the method, or is gone.
    pub(crate) fn call(
        &mut self,
        method: &str,
        arguments: &impl Message,
    ) -> Result<u64, TracedError> {
        let number = self.methods.get(method).copied();
        let number = number.ok_or_else(|| odd(&format!("it has no {method}")))?;
        let request = self.next_request();
        self.send(&Frame {
            request_id: Some(request),
            invoke_method: Some(InvokeMethod {
                service_id: Some(self.service),
                method_id: Some(number),
                args_proto: Some(arguments.encode_to_vec()),
            }),
            ..Frame::default()
        })?;
        Ok(request)
    }

    /// Waits for a reply to any call.
    ///
    /// # Errors
    /// When it is gone, or says something else.
    pub(crate) fn receive(&mut self) -> Result<Reply, TracedError> {
        let frame = self.receive_frame()?;
        let request = frame.request_id();
        if let Some(error) = frame.request_error {
            return Err(odd(error.error()));
        }
        let reply = frame.invoke_method_reply;
        let reply = reply.ok_or_else(|| odd("a frame without a reply"))?;
        let is_last = !reply.has_more();
        let is_success = reply.success();
        let content = reply.reply_proto.unwrap_or_default();
        Ok(Reply {
            request,
            is_last,
            content: is_success.then_some(content),
        })
    }

    fn next_request(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    fn send(&mut self, frame: &Frame) -> Result<(), TracedError> {
        let content = frame.encode_to_vec();
        let length = u32::try_from(content.len()).map_err(|_| odd("a call beyond 4 GiB"))?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(content);
        self.stream.write_all(&bytes).map_err(|error| gone(&error))
    }

    fn receive_frame(&mut self) -> Result<Frame, TracedError> {
        let mut length = [0; 4];
        self.stream
            .read_exact(&mut length)
            .map_err(|error| gone(&error))?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST_FRAME {
            return Err(odd(&format!("a frame of {length} bytes")));
        }
        let mut content = vec![0; length];
        self.stream
            .read_exact(&mut content)
            .map_err(|error| gone(&error))?;
        Frame::decode(&content[..]).map_err(|error| odd(&error.to_string()))
    }
}

impl Closer {
    /// Whoever waits for a reply waits no longer, and `traced` frees what it held for the connection.
    pub(crate) fn close(&self) {
        // One that is closed already is as good.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Reply {
    /// What it says.
    ///
    /// # Errors
    /// When the call failed, or it is something else.
    pub(crate) fn message<M: Message + Default>(&self) -> Result<M, TracedError> {
        let content = self.content.as_deref();
        let content = content.ok_or_else(|| odd("a call failed"))?;
        M::decode(content).map_err(|error| odd(&error.to_string()))
    }
}

fn gone(error: &io::Error) -> TracedError {
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "it does not answer".to_owned(),
        _ => error.to_string(),
    };
    TracedError::Gone { reason }
}

fn odd(reason: &str) -> TracedError {
    TracedError::Protocol {
        reason: reason.to_owned(),
    }
}
