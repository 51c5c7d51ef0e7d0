//! The sockets of container runtimes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::AgentError;

/// A socket at which a container runtime answers: `docker:PATH` or `cri:PATH`.
///
/// ```
/// use candela_agent::ContainerSocket;
///
/// let socket: ContainerSocket = "cri:/run/containerd/containerd.sock".parse()?;
/// assert_eq!(socket.to_string(), "cri:/run/containerd/containerd.sock");
/// # Ok::<(), candela_agent::AgentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerSocket {
    /// The Docker Engine API, which Podman speaks too.
    Docker(PathBuf),
    /// The Container Runtime Interface of Kubernetes: containerd, CRI-O.
    Cri(PathBuf),
}

// === impl ContainerSocket ===

impl ContainerSocket {
    /// Where runtimes have their sockets; those that are not there cost nothing.
    pub const USUAL: [&str; 6] = [
        "docker:/var/run/docker.sock",
        "docker:/run/podman/podman.sock",
        "cri:/run/containerd/containerd.sock",
        "cri:/run/crio/crio.sock",
        "cri:/run/k3s/containerd/containerd.sock",
        "cri:/run/cri-dockerd.sock",
    ];

    pub(super) fn path(&self) -> &PathBuf {
        match self {
            Self::Docker(path) | Self::Cri(path) => path,
        }
    }
}

impl fmt::Display for ContainerSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self {
            Self::Docker(_) => "docker",
            Self::Cri(_) => "cri",
        };
        write!(formatter, "{protocol}:{}", self.path().display())
    }
}

impl FromStr for ContainerSocket {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Self, AgentError> {
        let refused = || AgentError::ContainerSocket {
            given: text.to_owned(),
        };
        let (protocol, path) = text.split_once(':').ok_or_else(refused)?;
        let path = path.strip_prefix("//").unwrap_or(path);
        if !path.starts_with('/') {
            return Err(refused());
        }
        match protocol {
            "docker" => Ok(Self::Docker(path.into())),
            "cri" => Ok(Self::Cri(path.into())),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_name_their_protocol() {
        for text in ContainerSocket::USUAL {
            let socket: ContainerSocket = text.parse().expect(text);
            assert_eq!(socket.to_string(), text);
        }
        let url: ContainerSocket = "docker:///run/d.sock".parse().expect("a URL's form");
        assert_eq!(url.to_string(), "docker:/run/d.sock");
        for text in ["/run/docker.sock", "tcp:/run/x", "docker:run/x", ""] {
            let error = text.parse::<ContainerSocket>().expect_err(text).to_string();
            assert!(error.contains("docker:PATH or cri:PATH"), "{error}");
        }
    }
}
