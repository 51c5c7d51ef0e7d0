//! Who asks: tokens and users, what they may do, and whose profiles they see.
//!
//! Each route says in the table of routes which right it takes. One layer before its handler finds
//! out who asks, checks the right and the tenants, and gives the handler a [`Caller`]. A handler
//! without that layer gets none and fails, so that a route that was forgotten is closed, not open.

mod access;
mod account;
mod caller;
mod guesses;
mod layer;
mod rights;
mod sessions;
mod sign_in;
mod tenant;

pub use self::account::Account;
pub use self::account::AuthError;
pub use self::account::AuthOptions;
pub use self::rights::Right;
pub use self::rights::Rights;
pub use self::tenant::TenantName;
pub use self::tenant::TenantNameError;

pub(crate) use self::access::Access;
pub(crate) use self::caller::Caller;
pub(crate) use self::caller::network_of;
pub(crate) use self::layer::authorize;
pub(crate) use self::sessions::COOKIE_NAME;
pub(crate) use self::sessions::LONGEST as LONGEST_SESSION;
pub(crate) use self::sign_in::Credentials;
pub(crate) use self::sign_in::Who;
