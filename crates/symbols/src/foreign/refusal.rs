use std::io;

/// Why a foreign file was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The system's reason, `NotFound` above all.
    #[error(transparent)]
    System(io::Error),
    /// There is a symbolic link at the path or on the way to it.
    #[error("its path leads through a symbolic link that cannot be trusted")]
    Link,
    /// It is a directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is not a folder.
    #[error("it is not a folder")]
    NotFolder,
    /// There are hard links to it.
    #[error("it has more than one name (hard links)")]
    ManyNames,
    /// It does not belong to the process's user.
    #[error("it belongs to user {owner}, not to user {expected} of the process")]
    Owner {
        /// The file's owner.
        owner: u32,
        /// The process's user.
        expected: u32,
    },
    /// It belongs to somebody who has nothing to do with it.
    #[error("it belongs to user {owner}, who is not trusted with it")]
    UntrustedOwner {
        /// The file's owner.
        owner: u32,
    },
    /// Its permissions, or those of a folder on the way, keep it from whom it would be opened for.
    #[error("its permissions keep it private")]
    Private,
    /// The file at the path is not the one that is mapped.
    #[error("another file has taken its path")]
    OtherFile,
}

impl Refusal {
    /// Whether there is nothing at the path.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::System(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        rustix::io::Errno::from_io_error(&error).map_or(Self::System(error), Self::from)
    }
}

impl From<rustix::io::Errno> for Refusal {
    fn from(error: rustix::io::Errno) -> Self {
        match error {
            rustix::io::Errno::LOOP => Self::Link,
            other => Self::System(other.into()),
        }
    }
}
