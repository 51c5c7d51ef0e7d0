//! Signing in and out, and who is signed in.

use axum::http::HeaderMap;
use axum::http::Method;
use axum::http::StatusCode;
use candela_listen::SecretDigest;

use super::access::Access;
use super::access::Identity;
use super::access::WRONG;
use super::access::one_of;
use super::access::unauthenticated;
use super::account::Account;
use super::caller::Caller;
use super::rights::Right;
use super::sessions::Holder;
use super::sessions::SignedIn;
use super::tenant::TenantName;
use crate::api_error::ApiError;

/// What somebody signs in with.
#[derive(Clone)]
pub(crate) enum Credentials {
    Token(String),
    Password {
        user: String,
        password: String,
    },
    /// Where nobody is asked who he is: only a tenant is chosen.
    Nothing,
}

/// Who asks, as far as the headers say.
pub(crate) struct Who {
    pub(crate) caller: Option<Caller>,
    /// By a cookie, so that signing out is possible.
    pub(crate) is_session: bool,
    /// Nobody is asked who he is.
    pub(crate) is_open: bool,
    pub(crate) has_users: bool,
    /// There are several, and one is to be named.
    pub(crate) needs_tenant: bool,
}

impl Access {
    /// Begins a session: the text for the cookie, and whose it is. The one that the request had ends.
    ///
    /// # Errors
    /// 401 when the credentials are wrong, 429 when they were too often, and those of tenants.
    pub(crate) fn sign_in(
        &self,
        headers: &HeaderMap,
        credentials: &Credentials,
        tenant: Option<TenantName>,
    ) -> Result<(String, Caller), ApiError> {
        let now_ns = self.clock.monotonic_ns();
        let (holder, account) = self.holder_of(credentials, now_ns)?;
        let foreign = match (account.and_then(|it| it.tenant.as_ref()), &tenant) {
            (Some(own), Some(chosen)) if own != chosen => Some(chosen),
            _ => None,
        };
        if let Some(foreign) = foreign {
            let message = format!("tenant {foreign} is not yours");
            let error = ApiError::new(StatusCode::FORBIDDEN, "foreign_tenant", message);
            return Err(error.hint("leave the tenant out: your token or user has its own"));
        }
        let identity = Identity::of(account).choosing(tenant.clone());
        // Headers of the request name a tenant of their own; a session has the chosen one.
        let caller = self.caller_of(&identity, &HeaderMap::new(), Right::Anyone);
        let caller = caller.map_err(|error| match error.code {
            "no_tenant" => ApiError {
                message: "this server has several tenants, and none is named".to_owned(),
                ..error
            }
            .hint("name the tenant whose profiles you want to see"),
            _ => error,
        })?;
        self.sessions.end(headers);
        let begun = self.sessions.begin(SignedIn { holder, tenant }, now_ns);
        let text = begun.map_err(|error| ApiError::internal(error.to_string()))?;
        Ok((text, caller))
    }

    /// Ends the session of a request; whether there was one.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> bool {
        self.sessions.end(headers)
    }

    /// Who asks, without any right being asked for.
    pub(crate) fn who(&self, headers: &HeaderMap) -> Who {
        let identity = self.identity(&Method::GET, headers).ok();
        let is_session = identity.as_ref().is_some_and(|it| it.is_session);
        let caller = identity.and_then(|it| self.caller_of(&it, headers, Right::Anyone).ok());
        Who {
            caller,
            is_session,
            is_open: self.is_open(),
            has_users: !self.users.is_empty(),
            needs_tenant: self.multi_tenancy,
        }
    }

    fn holder_of(
        &self,
        credentials: &Credentials,
        now_ns: i64,
    ) -> Result<(Holder, Option<&Account>), ApiError> {
        if self.is_open() {
            return Ok((Holder::Anybody, None));
        }
        let guessed = self.guessed_at(credentials);
        if let Some(wait) = self.guesses.wait(&guessed, now_ns) {
            let message =
                "too many wrong sign-ins within a minute; none is looked at until it is over";
            let status = StatusCode::TOO_MANY_REQUESTS;
            let mut error = ApiError::new(status, "too_many_guesses", message)
                .hint("wait, then try again; who is signed in stays so");
            error.retry_after = Some(wait);
            return Err(error);
        }
        let found = match credentials {
            Credentials::Token(token) => self.by_token(token),
            Credentials::Password { user, password } => self.by_pair(user, password),
            Credentials::Nothing => None,
        };
        let Some(account) = found else {
            self.guesses.count_wrong(&guessed, now_ns);
            return Err(unauthenticated(WRONG).hint("try again, or ask who runs this server"));
        };
        let place_in =
            |accounts: &[Account]| accounts.iter().position(|it| std::ptr::eq(it, account));
        let holder = match (place_in(&self.users), place_in(&self.tokens)) {
            (Some(place), _) => Holder::User(place),
            (None, Some(place)) => Holder::Token(place),
            (None, None) => return Err(ApiError::internal("an account is in no list")),
        };
        Ok((holder, Some(account)))
    }

    /// A user, or a token as the password of its name.
    fn by_pair(&self, user: &str, password: &str) -> Option<&Account> {
        let given = SecretDigest::of(password.as_bytes());
        one_of(self.users.iter().chain(&self.tokens), |account| {
            let is_of_same = account.secret.is_of_same(&given);
            account.name == user && is_of_same
        })
    }

    /// A name that there is; all others are one, and so are the tokens.
    fn guessed_at(&self, credentials: &Credentials) -> String {
        let Credentials::Password { user, .. } = credentials else {
            return String::new();
        };
        let mut accounts = self.users.iter().chain(&self.tokens);
        let known = accounts.find(|account| account.name == *user);
        known.map_or_else(String::new, |account| account.name.clone())
    }
}
