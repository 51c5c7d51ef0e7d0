//! How often somebody may be wrong at the sign-in before he has to wait.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use super::sessions::elapsed;

/// Wrong ones in a window, after which the window has to pass: people err twice, and programs guess
/// thousands of times.
const MOST_WRONG: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Window {
    began_ns: i64,
    wrong: u32,
}

/// Wrong ones by what was guessed at: a user's name, or the tokens all together. Only names that exist
/// are kept apart, so that strangers do not make this grow.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    windows: Mutex<HashMap<String, Window>>,
}

impl Guesses {
    /// How long to wait before the next one is looked at; `None` when it is looked at now.
    pub(crate) fn wait(&self, what: &str, now_ns: i64) -> Option<Duration> {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.get(what)?;
        let since = elapsed(window.began_ns, now_ns);
        let left = WINDOW.checked_sub(since)?;
        (window.wrong >= MOST_WRONG && !left.is_zero()).then_some(left)
    }

    pub(crate) fn count_wrong(&self, what: &str, now_ns: i64) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Window {
            began_ns: now_ns,
            wrong: 0,
        };
        let window = windows.entry(what.to_owned()).or_insert(fresh);
        if elapsed(window.began_ns, now_ns) >= WINDOW {
            *window = fresh;
        }
        window.wrong += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_wrong_too_often_waits_for_the_window_to_pass() {
        let guesses = Guesses::default();
        let second = 1_000_000_000;
        for wrong in 0..MOST_WRONG {
            assert_eq!(guesses.wait("ann", 5 * second), None, "{wrong}");
            guesses.count_wrong("ann", 5 * second);
        }
        assert_eq!(
            guesses.wait("ann", 25 * second),
            Some(Duration::from_secs(40))
        );
        assert_eq!(guesses.wait("bob", 25 * second), None);
        assert_eq!(guesses.wait("ann", 65 * second), None);
        guesses.count_wrong("ann", 65 * second);
        assert_eq!(guesses.wait("ann", 66 * second), None);
    }
}
