//! Browsers that are signed in. A browser gets a random text in a cookie, and here is whose it is: not the
//! token or the password, which a cookie would send to every port of the host, and which could not be taken
//! back. They are in memory only: whoever starts the server anew asks everybody again.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use candela_listen::RandomError;
use candela_listen::SecretDigest;
use candela_listen::random_bytes;

use super::tenant::TenantName;

/// The cookie.
pub(crate) const COOKIE_NAME: &str = "candela_session";

/// A session without a request ends after a working day, and every one after a week.
const LONGEST_IDLE: Duration = Duration::from_hours(12);
pub(crate) const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Sessions of one account, and of all: each is compared with each cookie.
const MOST_OF_ONE: usize = 20;
const MOST: usize = 2000;

/// Cookies of our name in one request: paths of several servers of one host.
const MOST_COOKIES: usize = 8;

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Where nobody is asked who he is, and a tenant was chosen.
    Anybody,
    /// By its place among the tokens.
    Token(usize),
    /// By its place among the users.
    User(usize),
}

/// Who a cookie stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedIn {
    pub(crate) holder: Holder,
    /// The one that was chosen with the sign-in.
    pub(crate) tenant: Option<TenantName>,
}

#[derive(Debug)]
struct Session {
    secret: SecretDigest,
    signed_in: SignedIn,
    began_ns: i64,
    last_ns: i64,
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Mutex<Vec<Session>>,
}

impl Sessions {
    /// Begins a session; the text is for the cookie and is not kept.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub(crate) fn begin(&self, signed_in: SignedIn, now_ns: i64) -> Result<String, RandomError> {
        let text = URL_SAFE_NO_PAD.encode(random_bytes::<32>()?);
        let mut all = self.lock();
        all.retain(|session| session.is_alive(now_ns));
        let is_same = |session: &&Session| session.signed_in.holder == signed_in.holder;
        let is_account = signed_in.holder != Holder::Anybody;
        if is_account && all.iter().filter(is_same).count() >= MOST_OF_ONE {
            end_oldest(&mut all, |session| is_same(&session));
        }
        if all.len() >= MOST {
            end_oldest(&mut all, |_| true);
        }
        all.push(Session {
            secret: SecretDigest::of(text.as_bytes()),
            signed_in,
            began_ns: now_ns,
            last_ns: now_ns,
        });
        Ok(text)
    }

    /// Who the cookies of a request stand for.
    pub(crate) fn of(&self, headers: &HeaderMap, now_ns: i64) -> Option<SignedIn> {
        let mut all = self.lock();
        for cookie in cookies(headers) {
            let given = SecretDigest::of(cookie.as_bytes());
            let found = all.iter_mut().fold(None, |found, session| {
                let fits = session.secret.is_of_same(&given);
                if fits { Some(session) } else { found }
            });
            if let Some(session) = found.filter(|session| session.is_alive(now_ns)) {
                session.last_ns = now_ns;
                return Some(session.signed_in.clone());
            }
        }
        None
    }

    /// Ends the sessions of the cookies of a request; whether there was one.
    pub(crate) fn end(&self, headers: &HeaderMap) -> bool {
        let mut all = self.lock();
        let count = all.len();
        for cookie in cookies(headers) {
            let given = SecretDigest::of(cookie.as_bytes());
            all.retain(|session| !session.secret.is_of_same(&given));
        }
        all.len() < count
    }

    /// What a panic left is whole: nothing here is changed in steps.
    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn is_alive(&self, now_ns: i64) -> bool {
        elapsed(self.last_ns, now_ns) < LONGEST_IDLE && elapsed(self.began_ns, now_ns) < LONGEST
    }
}

pub(super) fn elapsed(then_ns: i64, now_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(now_ns.saturating_sub(then_ns)).unwrap_or(0))
}

fn end_oldest(all: &mut Vec<Session>, is_candidate: impl Fn(&Session) -> bool) {
    let candidates = all.iter().enumerate().filter(|(_, it)| is_candidate(it));
    let oldest = candidates.min_by_key(|(_, session)| session.last_ns);
    if let Some((place, _)) = oldest {
        all.remove(place);
    }
}

/// Values of our cookie. HTTP/2 may send each cookie in a header of its own (RFC 9113, 8.2.3).
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(COOKIE).iter();
    let pairs = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let ours = pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    });
    ours.take(MOST_COOKIES)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    fn ann() -> SignedIn {
        SignedIn {
            holder: Holder::User(0),
            tenant: None,
        }
    }

    fn with_cookie(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = format!("theme=dark; {COOKIE_NAME}={text}");
        let value = HeaderValue::from_str(&value).expect("a value");
        headers.append(COOKIE, value);
        headers
    }

    #[test]
    fn a_cookie_stands_for_who_signed_in_until_it_ends() {
        let sessions = Sessions::default();
        let text = sessions.begin(ann(), 0).expect("random bytes");
        assert!(text.len() >= 43, "256 bits");
        let headers = with_cookie(&text);
        assert_eq!(sessions.of(&headers, 1), Some(ann()));
        for wrong in ["", "x", &text[1..], &format!("{text}a")] {
            assert_eq!(sessions.of(&with_cookie(wrong), 1), None, "{wrong}");
        }
        assert!(sessions.end(&headers) && !sessions.end(&headers));
        assert_eq!(sessions.of(&headers, 1), None);
    }

    #[test]
    fn it_ends_when_nobody_uses_it_and_after_a_week() {
        let sessions = Sessions::default();
        let idle = with_cookie(&sessions.begin(ann(), 0).expect("random bytes"));
        let used = with_cookie(&sessions.begin(ann(), 0).expect("random bytes"));
        for hour in (11..24 * 7).step_by(11) {
            assert!(sessions.of(&used, hour * HOUR).is_some(), "{hour}");
        }
        assert_eq!(sessions.of(&idle, 12 * HOUR), None);
        assert_eq!(sessions.of(&used, 24 * 7 * HOUR), None);
    }

    #[test]
    fn of_one_account_there_are_only_so_many() {
        let sessions = Sessions::default();
        let other = SignedIn {
            holder: Holder::Token(0),
            tenant: None,
        };
        let other_cookie = with_cookie(&sessions.begin(other.clone(), 0).expect("random bytes"));
        let first = with_cookie(&sessions.begin(ann(), 1).expect("random bytes"));
        for time in 0..20 {
            sessions.begin(ann(), 2 + time).expect("random bytes");
        }
        assert_eq!(sessions.of(&first, 100), None, "the oldest went");
        assert_eq!(sessions.of(&other_cookie, 100), Some(other));
        assert_eq!(sessions.lock().len(), MOST_OF_ONE + 1);
    }
}
