//! Why there is no trace by the node's `traced`.

use std::io;
use std::path::PathBuf;

/// Why there is no trace, or no snapshot of it, by the node's `traced`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracedError {
    /// Perfetto's own reading of the text.
    #[error("config_text is no TraceConfig of Perfetto: {reason}; correct it")]
    ConfigText {
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody is there, or we are not let in.
    #[error(
        "no traced at {}: {source}; start it on this node (package perfetto), name its socket in PERFETTO_CONSUMER_SOCK_NAME, \
         or remove engine \"traced\"", socket.display()
    )]
    NoSocket {
        /// Where it was looked for.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It does not do what `config_text` asks for.
    #[error("traced refuses config_text: {reason}; correct it")]
    Refused {
        /// What it says.
        reason: String,
    },
    /// It ended, or let us go.
    #[error("traced went away: {reason}; the trace begins anew once it is back")]
    Gone {
        /// What was noticed of it.
        reason: String,
    },
    /// It ended the trace, as one does that has waited for triggers long enough.
    #[error("traced has ended the trace, as after trigger_timeout_ms; it begins anew")]
    Over,
    /// It speaks another language.
    #[error(
        "traced answers what is not understood: {reason}; is it Perfetto's, of version 35 or newer?"
    )]
    Protocol {
        /// What is odd.
        reason: String,
    },
    /// It lets a trace begin that we do not get to fill.
    #[error("the trace does not record after {seconds} s: {what}")]
    NotRecording {
        /// How long it was waited for.
        seconds: u64,
        /// What is missing, and what to do.
        what: &'static str,
    },
    /// Google's library did not take the data source.
    #[error("this agent cannot be a producer of traced: {reason}; please report it")]
    Producer {
        /// What it said.
        reason: String,
    },
    /// The trigger was sent, and no copy came of it.
    #[error(
        "no snapshot {seconds} s after its trigger and delay: traced did not act on it in time; \
         look at max_per_24_h, skip_probability and producer_name_regex of config_text, and at traced's log"
    )]
    Timeout {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It does not copy the trace.
    #[error("traced takes no snapshot: {reason}")]
    NotCloned {
        /// What it says.
        reason: String,
    },
}

impl TracedError {
    /// Whether another attempt with the same document is in vain. What `traced` refuses it may take later: there may
    /// be too many traces at the moment, or it is updated.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::ConfigText { .. })
    }
}
