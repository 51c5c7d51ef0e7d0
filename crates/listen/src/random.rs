//! Bytes that nobody can guess.

use tokio_rustls::rustls::crypto::ring;

/// The system has no randomness to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct RandomError;

/// Bytes for secrets, from the source that TLS takes its keys from.
///
/// # Errors
/// When the system has none to give.
pub fn random_bytes<const COUNT: usize>() -> Result<[u8; COUNT], RandomError> {
    let mut bytes = [0; COUNT];
    let source = ring::default_provider().secure_random;
    source.fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        let drawn: Vec<[u8; 16]> = (0..100).map(|_| random_bytes().expect("bytes")).collect();
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), drawn.len());
    }
}
