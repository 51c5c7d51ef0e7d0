//! HTTP and gRPC surfaces over store and query, and the embedded window.
//!
//! One port answers everything: the window, `/api/v1`, OTLP profiles over HTTP and gRPC, and what
//! orchestrators ask. Requests are parsed and checked here; what is stored goes to
//! [`Store`](candela_store::Store) as one checked [`Profile`](candela_model::Profile), and what is
//! asked goes to [`Engine`](candela_query::Engine) as one [`Query`](candela_query::Query).
//!
//! This crate never sees files, Parquet, the agent or BPF: what the agent of the same process has
//! to say comes through [`StatusSource`], and how the process profiles itself through
//! [`SelfProfiler`].
//!
//! ```no_run
//! use candela_query::Engine;
//! use candela_server::{Server, ServerOptions};
//! use candela_store::{Store, StoreOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open(StoreOptions::new("/var/lib/candela"))?;
//! let options = ServerOptions::new("127.0.0.1:4040".parse()?);
//! let server = Server::bind(options, store.clone(), Engine::new(store.clone())).await?;
//! println!("http://{}", server.local_address());
//! server.run(std::future::pending()).await?;
//! store.shutdown().await?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod agents;
mod analysis_parameters;
mod annotations;
mod answers;
mod api;
mod api_error;
mod app;
mod arrivals;
mod auth;
mod binaries;
mod chart_routes;
mod code_routes;
mod debug;
mod documents;
mod drop_reasons;
mod error;
mod files;
mod fleet;
mod health;
mod histogram;
mod ingest;
mod json_body;
mod kept_list;
mod kept_routes;
mod listen;
mod local_ingest;
mod metrics;
mod openapi;
mod options;
mod origin;
mod otlp_routes;
mod parameters;
mod parca;
mod profefe;
mod profile_range;
mod pyroscope;
mod reply;
mod retention_status;
mod route_parameters;
mod router;
mod routes;
mod rpc;
mod saved_views;
mod server;
mod session;
mod sources;
mod sql_limits;
mod store_status;
mod surfaces;
mod symbolization;
mod tenant_limits;
mod tenants;
mod time;
mod turns;
mod unread;
mod window;

pub use crate::annotations::Annotation;
pub use crate::annotations::AnnotationError;
pub use crate::annotations::annotate;
pub use crate::auth::Account;
pub use crate::auth::AuthError;
pub use crate::auth::AuthOptions;
pub use crate::auth::Right;
pub use crate::auth::Rights;
pub use crate::auth::TenantName;
pub use crate::auth::TenantNameError;
pub use crate::error::ServerError;
pub use crate::local_ingest::LocalIngest;
pub use crate::options::DEFAULT_PORT;
pub use crate::options::Limits;
pub use crate::options::OTLP_GRPC_PORT;
pub use crate::options::OTLP_HTTP_PORT;
pub use crate::options::OtlpListen;
pub use crate::options::ServerOptions;
pub use crate::server::Server;
pub use crate::sources::SelfProfiler;
pub use crate::sources::StatusSource;
pub use crate::sql_limits::SqlLimits;
pub use crate::symbolization::SymbolSources;
pub use crate::tenant_limits::Bound;
pub use crate::tenant_limits::TenantLimits;
pub use crate::window::OFFLINE_PAGE;
pub use candela_listen::TlsError;
pub use candela_listen::TlsOptions;
