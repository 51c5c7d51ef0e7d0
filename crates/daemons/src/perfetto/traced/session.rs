//! The trace that goes on: begun with the configuration, and heard of by a thread of its own until it ends.

use std::convert::Infallible;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;

use crate::error::DaemonError;
use crate::perfetto::traced::config::SessionConfig;
use crate::perfetto::traced::connection::Closer;
use crate::perfetto::traced::connection::Connection;
use crate::perfetto::traced::error::TracedError;
use crate::perfetto::traced::messages::CLONE_TRIGGER_HIT;
use crate::perfetto::traced::messages::CloneTriggerHit;
use crate::perfetto::traced::messages::EnableTracingRequest;
use crate::perfetto::traced::messages::EnableTracingResponse;
use crate::perfetto::traced::messages::ObserveEventsRequest;
use crate::perfetto::traced::messages::ObserveEventsResponse;
use crate::perfetto::traced::messages::QueryServiceStateRequest;
use crate::perfetto::traced::messages::QueryServiceStateResponse;

const THREAD: &str = "candela-traced";

/// A trace of ours. It ends with the value, as `traced` ends what nobody holds.
#[derive(Debug)]
pub(crate) struct Session {
    closer: Closer,
    events: Receiver<SessionEvent>,
}

/// What is heard of it.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    /// It began, under this number.
    Began(u64),
    /// A trigger was hit, and its delay is over.
    Hit(CloneTriggerHit),
    /// There is no trace, or no longer.
    Ended(TracedError),
}

impl Session {
    /// Begins a trace. What comes of it is told as an event.
    ///
    /// # Errors
    /// [`TracedError::NoSocket`], or what stands in the way of a thread.
    pub(crate) fn begin(socket: &Path, config: SessionConfig) -> Result<Self, DaemonError> {
        let connection = Connection::open(socket)?;
        let closer = connection.closer()?;
        let (sender, events) = channel();
        let work = move || {
            let Err(error) = hold(connection, config, &sender);
            // Nobody listens when the session was let go of.
            let _ = sender.send(SessionEvent::Ended(error));
        };
        let builder = std::thread::Builder::new().name(THREAD.to_owned());
        let spawned = builder.spawn(work);
        spawned.map_err(|source| DaemonError::Thread {
            name: THREAD,
            source,
        })?;
        Ok(Self { closer, events })
    }

    /// What was heard since.
    pub(crate) fn next(&self) -> Option<SessionEvent> {
        self.events.try_recv().ok()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.closer.close();
    }
}

/// Begins the trace, and tells what is heard of it until it ends.
fn hold(
    mut connection: Connection,
    config: SessionConfig,
    sender: &Sender<SessionEvent>,
) -> Result<Infallible, TracedError> {
    connection.bind()?;
    let events_to_observe = vec![CLONE_TRIGGER_HIT];
    let observing = ObserveEventsRequest { events_to_observe };
    let observing = connection.call("ObserveEvents", &observing)?;
    let trace_config = Some(config.trace_config);
    let enabling = EnableTracingRequest { trace_config };
    let enabling = connection.call("EnableTracing", &enabling)?;
    // Nothing else tells which number the trace has, by which data sources know it.
    let sessions_only = Some(true);
    let asking = QueryServiceStateRequest { sessions_only };
    let asking = connection.call("QueryServiceState", &asking)?;
    loop {
        let reply = connection.receive()?;
        let event = if reply.request == observing {
            let response: ObserveEventsResponse = reply.message()?;
            let hit = response.events.and_then(|events| events.clone_trigger_hit);
            hit.map(SessionEvent::Hit)
        } else if reply.request == asking {
            let response: QueryServiceStateResponse = reply.message()?;
            let sessions = response.service_state.unwrap_or_default().tracing_sessions;
            let mut sessions = sessions.iter();
            let ours = sessions.find(|session| session.unique_session_name() == config.name);
            ours.map(|session| SessionEvent::Began(session.id()))
        } else if reply.request == enabling {
            let response: EnableTracingResponse = reply.message()?;
            return Err(match response.error() {
                "" => TracedError::Over,
                reason => TracedError::Refused {
                    reason: reason.to_owned(),
                },
            });
        } else {
            None
        };
        if let Some(event) = event {
            // Nobody listens when the session was let go of, which closes the connection, too.
            let _ = sender.send(event);
        }
    }
}
