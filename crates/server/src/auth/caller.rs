//! Who asks, for handlers.

use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use candela_query::Query;

use super::rights::Rights;
use super::tenant::TenantName;
use crate::api_error::ApiError;
use crate::turns::Asker;

/// Who asks, and about whose profiles: an argument of handlers.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant that a write is for. Of a read that names several the first by name, so that
    /// whoever answers about one only must ask [`Caller::one_tenant`].
    pub(crate) tenant: TenantName,
    /// Of the token or user.
    pub(crate) name: Arc<str>,
    pub(crate) rights: Rights,
    tenants: Arc<[TenantName]>,
    sees_all: bool,
    /// Whether the account can ask about no other tenant.
    is_of_tenant: bool,
    /// Where the request comes from, where there are no accounts.
    address: Option<Arc<str>>,
}

impl Caller {
    /// `tenants` are sorted and at least one.
    pub(super) fn new(
        name: &str,
        rights: Rights,
        tenants: Vec<TenantName>,
        sees_all: bool,
        is_of_tenant: bool,
    ) -> Self {
        let tenant = tenants.first().expect("a request is about a tenant");
        Self {
            tenant: tenant.clone(),
            name: name.into(),
            rights,
            tenants: tenants.into(),
            sees_all,
            is_of_tenant,
            address: None,
        }
    }

    /// One of those that only their addresses tell apart.
    pub(super) fn at(self, address: IpAddr) -> Self {
        Self {
            address: Some(network_of(address)),
            ..self
        }
    }

    /// Whose turns its requests take.
    pub(crate) fn asker(&self) -> Asker {
        Asker {
            tenant: self.tenant.clone(),
            caller: Arc::clone(self.address.as_ref().unwrap_or(&self.name)),
            is_of_tenant: self.is_of_tenant,
        }
    }

    /// The tenants that a read is about: sorted, each once, at least one.
    pub(crate) fn tenants(&self) -> &[TenantName] {
        &self.tenants
    }

    /// The tenant, for what is about one only.
    ///
    /// # Errors
    /// 400 when the request names several.
    pub(crate) fn one_tenant(&self) -> Result<&TenantName, ApiError> {
        if let [tenant] = &*self.tenants {
            return Ok(tenant);
        }
        Err(several_tenants(self.tenants.len()))
    }

    /// Whether figures of the whole server are for this caller: there is one tenant, or the caller
    /// is an administrator of all of them. Others see those of their tenants.
    pub(crate) fn sees_all(&self) -> bool {
        self.sees_all
    }

    /// Whether a tenant's figures are for this caller.
    pub(crate) fn sees(&self, tenant: &str) -> bool {
        self.sees_all || self.tenants.iter().any(|own| **own == *tenant)
    }

    /// All cpu samples of the tenants.
    pub(crate) fn query(&self) -> Query {
        Query::of_tenants(self.tenants.iter().map(|tenant| tenant.to_string()))
    }

    /// Who asks where there is one tenant and nobody is kept out.
    #[cfg(test)]
    pub(crate) fn anonymous() -> Self {
        let tenants = vec![TenantName::anonymous()];
        Self::new("anonymous", Rights::ALL, tenants, true, false)
    }
}

/// An address as text. A host has all of an IPv6 network, which is as good as one address.
pub(crate) fn network_of(address: IpAddr) -> Arc<str> {
    match address {
        IpAddr::V4(address) => address.to_string().into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            format!("{}/64", Ipv6Addr::from_bits(network)).into()
        }
    }
}

/// The error of a request that may be about one tenant only.
pub(super) fn several_tenants(count: usize) -> ApiError {
    let message = format!("X-Scope-OrgID names {count} tenants, and this is about one only");
    ApiError::bad_request("several_tenants", message).hint("send one request for each")
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| {
            tracing::error!(
                path = parts.uri.path(),
                "a route asks for its caller and has no right"
            );
            ApiError::internal("this request hit a bug in the server")
        })
    }
}
