//! Profefe's API: profiles in pprof by service, type and labels, in and out.
//!
//! One of its profiles is all that one pprof has, so several of ours: those that share their labels,
//! the first part of their type and their start. It is named as ours are, see
//! [`ProfileKey`](candela_query::ProfileKey).

mod asked;
mod kind;
mod model;
mod profiles;
mod reply;
mod routes;
mod upload;

pub(crate) use self::routes::PROFEFE_ROUTES;
