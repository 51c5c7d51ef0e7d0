//! Who asks, by the headers of a request.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candela_listen::SecretDigest;
use candela_store::Clock;

use super::account::Account;
use super::account::AuthError;
use super::account::AuthOptions;
use super::caller::Caller;
use super::caller::several_tenants;
use super::guesses::Guesses;
use super::rights::Right;
use super::rights::Rights;
use super::sessions::Holder;
use super::sessions::Sessions;
use super::tenant::TenantName;
use crate::api_error::ApiError;

/// The accounts of a server, and how many tenants it has.
pub(crate) struct Access {
    pub(super) tokens: Vec<Account>,
    pub(super) users: Vec<Account>,
    pub(super) multi_tenancy: bool,
    pub(super) sessions: Sessions,
    pub(super) guesses: Guesses,
    pub(super) clock: Arc<dyn Clock>,
}

/// What the headers say of who asks.
pub(super) struct Identity<'a> {
    /// `None` where there are no accounts.
    account: Option<&'a Account>,
    /// The tenant that was chosen with the sign-in.
    chosen: Option<TenantName>,
    /// Whether a cookie says so.
    pub(super) is_session: bool,
}

/// What requests of the window have and those of other pages cannot: a browser asks us before it sends a
/// header that it does not know to another origin, and we never say yes.
pub(crate) const WINDOW: &str = "x-candela-window";

/// Whose profiles a request is about, as all of Pyroscope's family has it.
const TENANT: &str = "x-scope-orgid";

/// More tenants than this are not read at once: each costs a look at all its blocks.
const MAX_TENANTS: usize = 100;

const ASKED: &str = "this server asks who you are";
pub(super) const WRONG: &str = "the token, or the user or password, is wrong";
const HOW: &str = "send a token (--token-file FILE or CANDELA_TOKEN), or user:password before the host in the URL";

impl Access {
    /// # Errors
    /// As [`AuthOptions::check`].
    pub(crate) fn new(options: &AuthOptions, clock: Arc<dyn Clock>) -> Result<Self, AuthError> {
        options.check()?;
        Ok(Self {
            tokens: options.tokens.clone(),
            users: options.users.clone(),
            multi_tenancy: options.multi_tenancy,
            sessions: Sessions::default(),
            guesses: Guesses::default(),
            clock,
        })
    }

    /// Whether nobody is asked who he is.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_empty() && self.users.is_empty()
    }

    /// Who asks, if he may.
    ///
    /// # Errors
    /// 401 when the headers name nobody, or no tenant; 403 when the account lacks the right or is of
    /// another tenant; 400 when a tenant is none, or there are several where one may be.
    pub(crate) fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        right: Right,
    ) -> Result<Caller, ApiError> {
        let identity = self.identity(method, headers)?;
        self.caller_of(&identity, headers, right)
    }

    /// What an account may ask, if it may.
    ///
    /// # Errors
    /// As [`Access::caller`].
    pub(super) fn caller_of(
        &self,
        identity: &Identity<'_>,
        headers: &HeaderMap,
        right: Right,
    ) -> Result<Caller, ApiError> {
        if !identity.rights().allow(right) {
            let message = format!("{} has no right to {}", identity.name(), right.name());
            let error = ApiError::new(StatusCode::FORBIDDEN, "permission_denied", message);
            return Err(
                error.hint("use another token or user, or give this one the right under auth:")
            );
        }
        let sees_all = !self.multi_tenancy
            || (identity.tenant().is_none() && identity.rights().allow(Right::Admin));
        if right == Right::Server && !sees_all {
            let message = format!(
                "{} is an administrator of one tenant; this needs an administrator of the whole server",
                identity.name()
            );
            return Err(
                ApiError::new(StatusCode::FORBIDDEN, "permission_denied", message)
                    .hint("use a token with the right admin and without a tenant"),
            );
        }
        let tenants = match right {
            Right::Server => vec![TenantName::anonymous()],
            _ => self.tenants(headers, identity.tenant(), identity.chosen.as_ref())?,
        };
        if right != Right::Read && tenants.len() > 1 {
            return Err(several_tenants(tenants.len()));
        }
        let is_of_tenant = identity.tenant().is_some();
        Ok(Caller::new(
            identity.name(),
            identity.rights(),
            tenants,
            sees_all,
            is_of_tenant,
        ))
    }

    /// # Errors
    /// 401 when the headers name nobody.
    pub(super) fn identity(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Identity<'_>, ApiError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        // Where nobody is asked, what clients send all the same is not looked at.
        let value = values.next().filter(|_| !self.is_open());
        let Some(value) = value else {
            return self.by_cookie(method, headers);
        };
        // Two could name two accounts, and a proxy before us may have looked at the other.
        if values.next().is_some() {
            return Err(unauthenticated("there are several Authorization headers"));
        }
        let (scheme, credentials) = split_scheme(value)
            .ok_or_else(|| unauthenticated("the Authorization header has no credentials"))?;
        let account = if scheme.eq_ignore_ascii_case("bearer") {
            self.by_token(credentials)
        } else if scheme.eq_ignore_ascii_case("basic") {
            self.by_password(credentials)
        } else {
            return Err(unauthenticated(
                "the Authorization header is neither Bearer nor Basic",
            ));
        };
        let account = account.ok_or_else(|| unauthenticated(WRONG))?;
        Ok(Identity::of(Some(account)))
    }

    /// By the cookie of a session. What it changes must come from the window: browsers send cookies along
    /// with whatever a page makes them send.
    fn by_cookie(&self, method: &Method, headers: &HeaderMap) -> Result<Identity<'_>, ApiError> {
        let nobody = || match self.is_open() {
            true => Ok(Identity::of(None)),
            false => Err(unauthenticated(ASKED)),
        };
        let Some(signed_in) = self.sessions.of(headers, self.clock.monotonic_ns()) else {
            return nobody();
        };
        if !method.is_safe() && !headers.contains_key(WINDOW) {
            let message = "the cookie of a session changes something only for the window itself";
            return Err(
                ApiError::new(StatusCode::FORBIDDEN, "not_the_window", message)
                    .hint("programs send Authorization, not the cookie"),
            );
        }
        let account = match signed_in.holder {
            Holder::Anybody => None,
            Holder::Token(place) => self.tokens.get(place),
            Holder::User(place) => self.users.get(place),
        };
        if account.is_none() && !self.is_open() {
            return nobody();
        }
        Ok(Identity {
            account,
            chosen: signed_in.tenant,
            is_session: true,
        })
    }

    pub(super) fn by_token(&self, token: &str) -> Option<&Account> {
        let given = SecretDigest::of(token.as_bytes());
        one_of(self.tokens.iter(), |account| {
            account.secret.is_of_same(&given)
        })
    }

    /// By `user:password` (RFC 7617, 2). A token is the password of its name, so that a browser can
    /// be used where there are tokens only.
    fn by_password(&self, credentials: &str) -> Option<&Account> {
        let pair = STANDARD.decode(credentials).ok()?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        let given = SecretDigest::of(&pair[colon + 1..]);
        one_of(self.users.iter().chain(&self.tokens), |account| {
            let is_of_same = account.secret.is_of_same(&given);
            account.name.as_bytes() == &pair[..colon] && is_of_same
        })
    }

    /// The tenants that a request is about, sorted.
    fn tenants(
        &self,
        headers: &HeaderMap,
        bound: Option<&TenantName>,
        chosen: Option<&TenantName>,
    ) -> Result<Vec<TenantName>, ApiError> {
        if !self.multi_tenancy {
            return Ok(vec![TenantName::anonymous()]);
        }
        let mut values = headers.get_all(TENANT).iter();
        let value = values.next().filter(|value| !value.is_empty());
        if values.next().is_some() {
            let message = "there are several X-Scope-OrgID headers";
            return Err(ApiError::bad_request("bad_tenant", message)
                .hint("name several tenants in one: X-Scope-OrgID: a|b"));
        }
        let named = match (value, bound.or(chosen)) {
            (Some(value), _) => named_tenants(value)?,
            (None, Some(own)) => vec![own.clone()],
            (None, None) => {
                let message = "X-Scope-OrgID is missing, and this server has many tenants";
                let error = ApiError::new(StatusCode::UNAUTHORIZED, "no_tenant", message);
                return Err(error.hint("name the tenant, with --tenant NAME in the command line"));
            }
        };
        let foreign = bound.and_then(|bound| named.iter().find(|name| *name != bound));
        if let Some(foreign) = foreign {
            let message = format!("tenant {foreign} is not yours");
            let error = ApiError::new(StatusCode::FORBIDDEN, "foreign_tenant", message);
            return Err(error.hint("leave out X-Scope-OrgID: your token or user has its tenant"));
        }
        Ok(named)
    }
}

impl<'a> Identity<'a> {
    pub(super) fn of(account: Option<&'a Account>) -> Self {
        Self {
            account,
            chosen: None,
            is_session: false,
        }
    }

    /// The same about the tenant that was chosen.
    pub(super) fn choosing(mut self, tenant: Option<TenantName>) -> Self {
        self.chosen = tenant;
        self
    }

    fn name(&self) -> &str {
        self.account.map_or("anonymous", |account| &account.name)
    }

    fn rights(&self) -> Rights {
        self.account.map_or(Rights::ALL, |account| account.rights)
    }

    fn tenant(&self) -> Option<&TenantName> {
        self.account.and_then(|account| account.tenant.as_ref())
    }
}

/// The account that fits. All are looked at, so that the time does not tell which it was.
pub(super) fn one_of<'a>(
    accounts: impl Iterator<Item = &'a Account>,
    fits: impl Fn(&Account) -> bool,
) -> Option<&'a Account> {
    accounts.fold(
        None,
        |found, account| {
            if fits(account) { Some(account) } else { found }
        },
    )
}

fn split_scheme(value: &HeaderValue) -> Option<(&str, &str)> {
    // Tokens may have any characters; a header that is no text is none of ours.
    let text = std::str::from_utf8(value.as_bytes()).ok()?;
    let (scheme, credentials) = text.split_once(' ')?;
    Some((scheme, credentials.trim()))
}

/// `a|b`: sorted, each once.
fn named_tenants(value: &HeaderValue) -> Result<Vec<TenantName>, ApiError> {
    let bad = |message: String| ApiError::bad_request("bad_tenant", message);
    let text = String::from_utf8_lossy(value.as_bytes());
    let mut names = Vec::new();
    for part in text.split('|') {
        if names.len() == MAX_TENANTS {
            return Err(bad(format!(
                "X-Scope-OrgID names more than {MAX_TENANTS} tenants"
            )));
        }
        let name = TenantName::new(part);
        names.push(name.map_err(|error| bad(format!("X-Scope-OrgID: {error}")))?);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

pub(super) fn unauthenticated(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", message).hint(HOW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clock() -> Arc<dyn Clock> {
        Arc::new(candela_store::SystemClock)
    }

    fn access(multi_tenancy: bool) -> Access {
        let account = |name, secret, right| {
            let account = Account::new(name, secret, Rights::NONE.with(right));
            account.expect("valid")
        };
        let mut options = AuthOptions {
            tokens: vec![
                account("ci", "token-ci", Right::Write),
                account("root", "token-root", Right::Admin),
            ],
            users: vec![account("ann", "pass:word", Right::Read)],
            multi_tenancy,
            is_insecure: false,
        };
        if multi_tenancy {
            let tenant = TenantName::new("team").expect("a name");
            options.users = vec![options.users.remove(0).of_tenant(tenant)];
        }
        Access::new(&options, clock()).expect("valid")
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn basic(pair: &str) -> String {
        format!("Basic {}", STANDARD.encode(pair))
    }

    /// The name of who asks, or the status.
    fn who(access: &Access, pairs: &[(&'static str, &str)], right: Right) -> Result<String, u16> {
        let caller = access.caller(&Method::GET, &headers(pairs), right);
        let named = caller.map(|caller| caller.name.to_string());
        named.map_err(|error| error.status.as_u16())
    }

    #[test]
    fn tokens_and_passwords_name_their_accounts() {
        let access = access(false);
        let of = |value: &str| who(&access, &[("authorization", value)], Right::Anyone);
        let good = [
            ("Bearer token-ci".to_owned(), "ci"),
            ("bearer  token-root".to_owned(), "root"),
            (basic("ann:pass:word"), "ann"),
            (basic("ci:token-ci"), "ci"),
        ];
        for (value, name) in good {
            assert_eq!(of(&value), Ok(name.to_owned()), "{value}");
        }
        let bad = [
            "".to_owned(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            "Bearer token-c".to_owned(),
            "Bearer token-ci2".to_owned(),
            // A password is no token.
            "Bearer pass:word".to_owned(),
            "token-ci".to_owned(),
            "Digest token-ci".to_owned(),
            basic("ann:pass"),
            basic("ann"),
            basic("root:token-ci"),
            basic(":"),
            "Basic !!!".to_owned(),
        ];
        for value in bad {
            assert_eq!(of(&value), Err(401), "{value}");
        }
        assert_eq!(who(&access, &[], Right::Read), Err(401));
        let both = [
            ("authorization", "Bearer token-ci"),
            ("authorization", "Bearer token-root"),
        ];
        assert_eq!(who(&access, &both, Right::Read), Err(401));
    }

    #[test]
    fn an_account_has_its_rights_only() {
        let access = access(false);
        let of = |token, right| who(&access, &[("authorization", token)], right).map(drop);
        assert_eq!(of("Bearer token-ci", Right::Write), Ok(()));
        assert_eq!(of("Bearer token-ci", Right::Read), Err(403));
        assert_eq!(of("Bearer token-ci", Right::Admin), Err(403));
        for right in Right::GRANTED {
            assert_eq!(of("Bearer token-root", right), Ok(()));
        }
    }

    #[test]
    fn without_multi_tenancy_there_is_one_tenant() {
        let access = Access::new(&AuthOptions::default(), clock()).expect("valid");
        for named in ["team", "a|b", "../x", ""] {
            let caller = access.caller(
                &Method::GET,
                &headers(&[("x-scope-orgid", named)]),
                Right::Write,
            );
            let caller = caller.expect("the header is ignored");
            assert_eq!(caller.tenants(), [TenantName::anonymous()]);
            assert!(caller.sees_all());
        }
    }

    /// The tenants of a request, or the status.
    fn tenants(
        access: &Access,
        token: &str,
        named: &str,
        right: Right,
    ) -> Result<Vec<String>, u16> {
        let headers = headers(&[("authorization", token), ("x-scope-orgid", named)]);
        let caller = access.caller(&Method::GET, &headers, right);
        let caller = caller.map_err(|error| error.status.as_u16())?;
        assert_eq!(caller.tenant, caller.tenants()[0]);
        Ok(caller.tenants().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn reads_may_name_several_and_writes_one() {
        let access = access(true);
        let of = |named: &str, right| tenants(&access, "Bearer token-root", named, right);
        let names = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect());
        assert_eq!(of("b", Right::Read), names(&["b"]));
        assert_eq!(of("b|a|b", Right::Read), names(&["a", "b"]));
        assert_eq!(of("b", Right::Write), names(&["b"]));
        assert_eq!(of("b|b", Right::Write), names(&["b"]));
        for right in [Right::Write, Right::Admin] {
            assert_eq!(of("a|b", right), Err(400));
        }
        for bad in ["a|", "|", "a/b", "..", "a b", &"x".repeat(151)] {
            assert_eq!(of(bad, Right::Read), Err(400), "{bad}");
        }
        assert_eq!(of("", Right::Read), Err(401));
        let many: Vec<String> = (0..MAX_TENANTS).map(|number| number.to_string()).collect();
        assert_eq!(
            of(&many.join("|"), Right::Read).map(|it| it.len()),
            Ok(MAX_TENANTS)
        );
        assert_eq!(of(&format!("{}|x", many.join("|")), Right::Read), Err(400));
    }

    #[test]
    fn who_is_of_a_tenant_names_no_other() {
        let access = access(true);
        let ann = basic("ann:pass:word");
        let of = |named: &str| tenants(&access, &ann, named, Right::Read);
        assert_eq!(of("team"), Ok(vec!["team".to_owned()]));
        assert_eq!(of(""), Ok(vec!["team".to_owned()]));
        for foreign in ["other", "team|other", "anonymous"] {
            assert_eq!(of(foreign), Err(403), "{foreign}");
        }
        let caller = access.caller(
            &Method::GET,
            &headers(&[("authorization", &ann)]),
            Right::Read,
        );
        let caller = caller.expect("of its tenant");
        assert!(!caller.sees_all() && caller.sees("team") && !caller.sees("other"));
    }

    #[test]
    fn the_server_itself_is_for_administrators_of_no_tenant() {
        let account =
            |name, secret| Account::new(name, secret, Rights::ALL).expect("a name and a secret");
        let team = TenantName::new("team").expect("a name");
        let options = AuthOptions {
            tokens: vec![
                account("root", "token-root"),
                account("team-root", "token-team").of_tenant(team),
            ],
            users: Vec::new(),
            multi_tenancy: true,
            is_insecure: false,
        };
        let access = Access::new(&options, clock()).expect("valid");
        let of = |token: &str, named: &str, right| {
            tenants(&access, &format!("Bearer {token}"), named, right)
        };
        let names = |name: &str| Ok(vec![name.to_owned()]);
        for named in ["team", ""] {
            assert_eq!(of("token-team", named, Right::Admin), names("team"));
            assert_eq!(of("token-team", named, Right::Server), Err(403));
            assert_eq!(of("token-root", named, Right::Server), names("anonymous"));
        }
    }

    proptest! {
        /// Whatever strangers send in the two headers, nobody comes in by it, and what is taken for a
        /// tenant is one.
        #[test]
        fn any_bytes_are_refused_or_understood(
            authorization in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                "(Bearer|Basic|basic) ?[A-Za-z0-9+/=:]{0,40}".prop_map(String::into_bytes),
            ],
            tenant in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..64),
                "[a-z./|]{0,12}".prop_map(String::into_bytes),
            ],
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in [("authorization", &authorization), (TENANT, &tenant)] {
                // What hyper would not take off the wire does not come here.
                if let Ok(value) = HeaderValue::from_bytes(value) {
                    headers.append(name, value);
                }
            }
            let guarded = access(true).caller(&Method::GET, &headers, Right::Read);
            prop_assert!(guarded.is_err_and(|error| error.status == StatusCode::UNAUTHORIZED));
            let open = AuthOptions { multi_tenancy: true, ..AuthOptions::default() };
            let open = Access::new(&open, clock()).expect("valid");
            if let Ok(caller) = open.caller(&Method::GET, &headers, Right::Read) {
                let names: Vec<&str> = caller.tenants().iter().map(|name| &**name).collect();
                prop_assert!(names.is_sorted());
                let text = String::from_utf8(tenant).expect("names are text");
                for part in text.split('|') {
                    prop_assert!(TenantName::new(part).is_ok() && names.contains(&part));
                }
            }
        }
    }
}
