//! Tokens and users as they are configured.

use std::collections::BTreeSet;

use candela_listen::SecretDigest;

use super::rights::Rights;
use super::tenant::TenantName;

/// Who may do what. Without any account everybody may do everything, which is why a server without
/// accounts listens on loopback only.
#[derive(Clone, Debug, Default)]
pub struct AuthOptions {
    /// Those that send `Authorization: Bearer TOKEN`.
    pub tokens: Vec<Account>,
    /// Those that send a name and a password, as browsers do.
    pub users: Vec<Account>,
    /// Whether `X-Scope-OrgID` says whose profiles a request is about. Otherwise there is one tenant,
    /// `anonymous`.
    pub multi_tenancy: bool,
    /// Whether a public address may be served without accounts.
    pub is_insecure: bool,
}

/// A token or a user.
#[derive(Clone, Debug)]
pub struct Account {
    pub(super) name: String,
    pub(super) secret: SecretDigest,
    pub(super) rights: Rights,
    pub(super) tenant: Option<TenantName>,
}

/// Why accounts are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The secret is empty, or nobody could send it.
    #[error("auth: the secret of {name:?} is {reason}")]
    Secret {
        /// Of the token or user.
        name: String,
        /// What is wrong with it; the secret itself is not shown.
        reason: &'static str,
    },
    /// A name that cannot be sent.
    #[error("auth: {name:?} is no name for a token or user: {reason}")]
    Name {
        /// As it was given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two accounts that a request could mean.
    #[error("auth: {name:?} is there twice, or has the secret of another; give each its own")]
    Twice {
        /// Of the second one.
        name: String,
    },
    /// An account that may do nothing.
    #[error("auth: {name:?} has no rights; give it read, write or admin")]
    NoRights {
        /// Of the token or user.
        name: String,
    },
    /// A tenant where there is only one.
    #[error(
        "auth: {name:?} is of tenant {tenant}, and there is one tenant only; set auth.multi_tenancy to true, or take the tenant away"
    )]
    Tenant {
        /// Of the token or user.
        name: String,
        /// As it was given.
        tenant: String,
    },
}

impl Account {
    /// A token or user, of any tenant.
    ///
    /// # Errors
    /// When the name or the secret could not be sent in a request, or there are no rights.
    pub fn new(name: &str, secret: &str, rights: Rights) -> Result<Self, AuthError> {
        let wrong_name = |reason| AuthError::Name {
            name: name.to_owned(),
            reason,
        };
        let wrong_secret = |reason| AuthError::Secret {
            name: name.to_owned(),
            reason,
        };
        if name.is_empty() {
            return Err(wrong_name("it is empty"));
        }
        // RFC 7617, 2: the first colon ends the name.
        if name.contains(':') || name.chars().any(char::is_control) {
            return Err(wrong_name("it has a colon or a control character"));
        }
        if secret.is_empty() {
            return Err(wrong_secret("empty"));
        }
        if secret.chars().any(char::is_control) {
            return Err(wrong_secret("of several lines, or has a control character"));
        }
        if rights == Rights::NONE {
            return Err(AuthError::NoRights {
                name: name.to_owned(),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            secret: SecretDigest::of(secret.as_bytes()),
            rights,
            tenant: None,
        })
    }

    /// The same, of one tenant only.
    #[must_use]
    pub fn of_tenant(mut self, tenant: TenantName) -> Self {
        self.tenant = Some(tenant);
        self
    }
}

impl AuthOptions {
    /// Whether anybody has to say who he is.
    #[must_use]
    pub fn has_accounts(&self) -> bool {
        !self.tokens.is_empty() || !self.users.is_empty()
    }

    /// Whether each request could mean one account only.
    ///
    /// # Errors
    /// The first that could be taken for another, and the first whose tenant means nothing.
    pub fn check(&self) -> Result<(), AuthError> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for account in self.tokens.iter().chain(&self.users) {
            let name = || account.name.clone();
            // Tokens and users share names: a token may come as the password of its name.
            if !names.insert(&account.name) {
                return Err(AuthError::Twice { name: name() });
            }
            if let Some(tenant) = account.tenant.as_ref().filter(|_| !self.multi_tenancy) {
                return Err(AuthError::Tenant {
                    name: name(),
                    tenant: tenant.to_string(),
                });
            }
        }
        // A bearer token comes without a name.
        for (index, token) in self.tokens.iter().enumerate() {
            let mut before = self.tokens[..index].iter();
            if before.any(|other| other.secret.is_of_same(&token.secret)) {
                return Err(AuthError::Twice {
                    name: token.name.clone(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Right;

    const READ: Rights = Rights::NONE.with(Right::Read);

    #[test]
    fn accounts_that_nobody_could_use_are_refused() {
        let cases = [
            ("", "secret", READ, "no name"),
            ("a:b", "secret", READ, "colon"),
            ("a", "", READ, "secret of \"a\" is empty"),
            ("a", "se\ncret", READ, "several lines"),
            ("a", "secret", Rights::NONE, "no rights"),
        ];
        for (name, secret, rights, part) in cases {
            let error = Account::new(name, secret, rights)
                .expect_err(part)
                .to_string();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains("se\ncret"), "{error}");
        }
    }

    #[test]
    fn each_request_can_mean_one_account_only() {
        let account = |name, secret| Account::new(name, secret, READ).expect("valid");
        let good = AuthOptions {
            tokens: vec![account("a", "1"), account("b", "2")],
            users: vec![account("c", "1"), account("d", "1")],
            ..AuthOptions::default()
        };
        assert_eq!(good.check(), Ok(()));
        let twice = [
            (vec![account("a", "1"), account("a", "2")], vec![]),
            (vec![account("a", "1"), account("b", "1")], vec![]),
            (vec![account("a", "1")], vec![account("a", "2")]),
        ];
        for (tokens, users) in twice {
            let options = AuthOptions {
                tokens,
                users,
                ..AuthOptions::default()
            };
            assert!(
                matches!(options.check(), Err(AuthError::Twice { .. })),
                "{options:?}"
            );
        }
    }

    #[test]
    fn a_tenant_needs_more_than_one() {
        let tenant = TenantName::new("team").expect("a name");
        let account = Account::new("a", "1", READ)
            .expect("valid")
            .of_tenant(tenant);
        let mut options = AuthOptions {
            users: vec![account],
            ..AuthOptions::default()
        };
        assert!(matches!(options.check(), Err(AuthError::Tenant { .. })));
        options.multi_tenancy = true;
        assert_eq!(options.check(), Ok(()));
    }
}
