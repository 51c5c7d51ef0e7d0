//! Who asks, by the headers of a request.

use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candela_listen::SecretDigest;

use super::account::Account;
use super::account::AuthError;
use super::account::AuthOptions;
use super::caller::Caller;
use super::caller::several_tenants;
use super::rights::Right;
use super::rights::Rights;
use super::tenant::TenantName;
use crate::api_error::ApiError;

/// The accounts of a server, and how many tenants it has.
#[derive(Debug)]
pub(crate) struct Access {
    tokens: Vec<Account>,
    users: Vec<Account>,
    multi_tenancy: bool,
}

/// What the headers say of who asks.
enum Identity<'a> {
    /// There are no accounts.
    Anybody,
    Account(&'a Account),
}

/// Whose profiles a request is about, as all of Pyroscope's family has it.
const TENANT: &str = "x-scope-orgid";

/// More tenants than this are not read at once: each costs a look at all its blocks.
const MAX_TENANTS: usize = 100;

const HOW: &str = "send a token (--token-file FILE or CANDELA_TOKEN), or user:password before the host in the URL";

impl Access {
    /// # Errors
    /// As [`AuthOptions::check`].
    pub(crate) fn new(options: &AuthOptions) -> Result<Self, AuthError> {
        options.check()?;
        Ok(Self {
            tokens: options.tokens.clone(),
            users: options.users.clone(),
            multi_tenancy: options.multi_tenancy,
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
    pub(crate) fn caller(&self, headers: &HeaderMap, right: Right) -> Result<Caller, ApiError> {
        let identity = self.identity(headers)?;
        if !identity.rights().allow(right) {
            let message = format!("{} has no right to {}", identity.name(), right.name());
            let error = ApiError::new(StatusCode::FORBIDDEN, "permission_denied", message);
            return Err(
                error.hint("use another token or user, or give this one the right under auth:")
            );
        }
        let tenants = self.tenants(headers, identity.tenant())?;
        if right != Right::Read && tenants.len() > 1 {
            return Err(several_tenants(tenants.len()));
        }
        let sees_all = !self.multi_tenancy
            || (identity.tenant().is_none() && identity.rights().allow(Right::Admin));
        Ok(Caller::new(
            identity.name(),
            identity.rights(),
            tenants,
            sees_all,
        ))
    }

    fn identity(&self, headers: &HeaderMap) -> Result<Identity<'_>, ApiError> {
        if self.is_open() {
            return Ok(Identity::Anybody);
        }
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            return Err(unauthenticated("this server asks who you are"));
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
        let account = account
            .ok_or_else(|| unauthenticated("the token, or the user or password, is wrong"))?;
        Ok(Identity::Account(account))
    }

    fn by_token(&self, token: &str) -> Option<&Account> {
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
        let named = match (value, bound) {
            (Some(value), _) => named_tenants(value)?,
            (None, Some(bound)) => vec![bound.clone()],
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

impl Identity<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Anybody => "anonymous",
            Self::Account(account) => &account.name,
        }
    }

    fn rights(&self) -> Rights {
        match self {
            Self::Anybody => Rights::ALL,
            Self::Account(account) => account.rights,
        }
    }

    fn tenant(&self) -> Option<&TenantName> {
        match self {
            Self::Anybody => None,
            Self::Account(account) => account.tenant.as_ref(),
        }
    }
}

/// The account that fits. All are looked at, so that the time does not tell which it was.
fn one_of<'a>(
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

fn unauthenticated(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthenticated", message).hint(HOW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        Access::new(&options).expect("valid")
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
        let caller = access.caller(&headers(pairs), right);
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
        let access = Access::new(&AuthOptions::default()).expect("valid");
        for named in ["team", "a|b", "../x", ""] {
            let caller = access.caller(&headers(&[("x-scope-orgid", named)]), Right::Write);
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
        let caller = access.caller(&headers, right);
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
        let caller = access.caller(&headers(&[("authorization", &ann)]), Right::Read);
        let caller = caller.expect("of its tenant");
        assert!(!caller.sees_all() && caller.sees("team") && !caller.sees("other"));
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
            let guarded = access(true).caller(&headers, Right::Read);
            prop_assert!(guarded.is_err_and(|error| error.status == StatusCode::UNAUTHORIZED));
            let open = AuthOptions { multi_tenancy: true, ..AuthOptions::default() };
            let open = Access::new(&open).expect("valid");
            if let Ok(caller) = open.caller(&headers, Right::Read) {
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
