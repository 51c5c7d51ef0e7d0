//! What can go wrong on a node.

use std::io;
use std::path::PathBuf;

use candela_agent::AgentError;

#[cfg(feature = "perfetto")]
use crate::perfetto::TracedError;

/// Why files cannot wait on the node.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// Its folder.
    #[error("{}: {source}; files of a daemon wait there, so make it a folder that this user may write to", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that waits.
    #[error("{}: {source}; it is read again later", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// One of its files.
    #[error("{}: {source}; the file is lost, later ones are not", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Why a bucket does not have a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// Nobody can write there: settings are missing or contradict each other.
    #[error(
        "{bucket} cannot be written to: {reason}; set what its provider's tools need, such as AWS_REGION"
    )]
    Settings {
        /// As the document has it.
        bucket: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody says who we are: no keys, a role that cannot be taken, a token that is not there.
    #[error(
        "{object} is not uploaded yet: there are no credentials for it: {reason}; give this node keys, a web identity or a role of its machine"
    )]
    NoCredentials {
        /// Which object.
        object: String,
        /// What whoever gives them says.
        reason: String,
    },
    /// The bucket does not know us or does not let us.
    #[error("{object} is refused: {reason}; give this node's identity the right to write there")]
    NotAllowed {
        /// Which object.
        object: String,
        /// What the bucket says.
        reason: String,
    },
    /// There is no such bucket.
    #[error("{object} has no bucket: {reason}; make it, or correct export_to")]
    NoBucket {
        /// Which object.
        object: String,
        /// What the provider says.
        reason: String,
    },
    /// It may work later.
    #[error("{object} is not uploaded yet: {reason}; it is tried again")]
    Unavailable {
        /// Which object.
        object: String,
        /// What happened.
        reason: String,
    },
    /// The daemon ended meanwhile.
    #[error("{object} is not uploaded yet: the daemon ends; it is tried at the next start")]
    Stopped {
        /// Which object.
        object: String,
    },
}

/// Why a bucket does not take what daemons would write, as who tries it here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketCheckError {
    /// Settings are missing or contradict each other.
    #[error(
        "{bucket} cannot be tried: {reason}; set what its provider's tools need, such as AWS_REGION"
    )]
    Settings {
        /// As the document has it.
        bucket: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody says who we are: no keys, a role that cannot be taken, a token that is not there.
    #[error(
        "{object} cannot be written: there are no credentials for it: {reason}; set keys, a web identity, or the key of a service account"
    )]
    NoCredentials {
        /// What was to be written.
        object: String,
        /// What whoever gives them says.
        reason: String,
    },
    /// The bucket does not know us or does not let us.
    #[error(
        "{object} is refused: {reason}; give the identity of this host the right to write there, or set the credentials of one that has it"
    )]
    NotAllowed {
        /// What was to be written.
        object: String,
        /// What the bucket says.
        reason: String,
    },
    /// There is no such bucket.
    #[error("{object} has no bucket: {reason}; make it, or correct export_to")]
    NoBucket {
        /// What was to be written.
        object: String,
        /// What the provider says.
        reason: String,
    },
    /// The bucket does not answer.
    #[error(
        "{object} cannot be written: {reason}; look at the network, the endpoint and the region"
    )]
    Unreachable {
        /// What was to be written.
        object: String,
        /// What happened.
        reason: String,
    },
}

/// Why a daemon does not do what the document asks for.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// This build or this host never will.
    #[error("{reason}")]
    Impossible {
        /// What, and what to do.
        reason: String,
    },
    /// The sampler does not start, or has ended.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The sampler has ended.
    #[error("sampling has ended: {reason}; it is started again")]
    SamplerEnded {
        /// What it said last.
        reason: String,
    },
    /// The host's perf.
    #[error("{reason}; it is started again")]
    Perf {
        /// What it said.
        reason: String,
    },
    /// What was written of a trace is no snapshot.
    #[error("there is no snapshot: {reason}")]
    NoSnapshot {
        /// What is missing in it.
        reason: String,
    },
    /// The node's `traced`.
    #[cfg(feature = "perfetto")]
    #[error(transparent)]
    Traced(#[from] TracedError),
    /// Its files.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// Its bucket.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A thread.
    #[error("thread {name} does not start: {source}; raise the limit of tasks of this service")]
    Thread {
        /// Which.
        name: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// It panicked: a defect of ours.
    #[error("the daemon died of a defect: {reason}; please report it")]
    Died {
        /// What it said.
        reason: String,
    },
}

/// Why a node does not hear from its server, or the server not from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The address.
    #[error(
        "{url:?} is no address of a server: {reason}; write http://HOST:PORT or https://HOST:PORT"
    )]
    Address {
        /// As given.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// It does not answer.
    #[error("{url} does not answer: {reason}; daemons go on with the last document")]
    Away {
        /// Who.
        url: String,
        /// What happened.
        reason: String,
    },
    /// It answers something else.
    #[error(
        "{url} answers {status}: {reason}; check the address, the token and that the server has a fleet"
    )]
    Refused {
        /// Who.
        url: String,
        /// HTTP's number.
        status: u16,
        /// What it says.
        reason: String,
    },
    /// Another agent that is heard calls itself what this one does.
    #[error("{url}: {reason}; daemons and uploads rest until it is gone")]
    NameTaken {
        /// Who says so.
        url: String,
        /// Its words.
        reason: String,
    },
    /// It does not speak our language.
    #[error(
        "{url} sends a line that is not understood: {reason}; one of the two is older, update it"
    )]
    Line {
        /// Who.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

impl DaemonError {
    /// Whether another attempt with the same document is in vain.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Impossible { .. } => true,
            #[cfg(feature = "perfetto")]
            Self::Traced(error) => error.is_permanent(),
            _ => false,
        }
    }
}
