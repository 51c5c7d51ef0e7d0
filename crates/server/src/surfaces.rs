//! All tables of routes. The router serves what stands here and the OpenAPI document lists it, so
//! that nothing is served which is not in the document.

use crate::chart_routes::CHART_ROUTES;
use crate::code_routes::CODE_ROUTES;
use crate::fleet::CHALK_ROUTES;
use crate::fleet::FLEET_ROUTES;
use crate::kept_routes::KEPT_ROUTES;
use crate::otlp_routes::OTLP_GRPC_ROUTES;
use crate::otlp_routes::OTLP_ROUTES;
use crate::parca::PARCA_ROUTES;
use crate::profefe::PROFEFE_ROUTES;
use crate::pyroscope::ANY_PREFIX;
use crate::pyroscope::PYROSCOPE_ROUTES;
use crate::routes::FILE_ROUTES;
use crate::routes::ROUTES;
use crate::routes::Route;

/// Routes that belong together.
#[derive(Clone, Copy)]
pub(crate) struct Surface {
    /// Whose clients ask here; `None` for our own.
    pub(crate) name: Option<&'static str>,
    pub(crate) reach: Reach,
    /// Whether parameters that a route does not know are refused. Clients of others send those.
    pub(crate) checks_parameters: bool,
    pub(crate) routes: &'static [Route],
}

/// Under which prefixes the routes of a surface answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// At the root only.
    Root,
    /// At the root and under the prefixes of `server.http_prefix`.
    Prefixes,
    /// Under whatever prefix a client was given.
    AnyPrefix,
}

/// All of them.
pub(crate) const SURFACES: &[Surface] = &[
    own(ROUTES),
    own(CHART_ROUTES),
    own(CODE_ROUTES),
    own(FILE_ROUTES),
    own(KEPT_ROUTES),
    own(FLEET_ROUTES),
    own(OTLP_ROUTES),
    foreign("otlp-grpc", Reach::Root, OTLP_GRPC_ROUTES),
    foreign("pyroscope", Reach::AnyPrefix, ANY_PREFIX),
    foreign("pyroscope", Reach::Prefixes, PYROSCOPE_ROUTES),
    foreign("parca", Reach::Prefixes, PARCA_ROUTES),
    foreign("profefe", Reach::Prefixes, PROFEFE_ROUTES),
    foreign("chalk", Reach::Prefixes, CHALK_ROUTES),
];

const fn own(routes: &'static [Route]) -> Surface {
    Surface {
        name: None,
        reach: Reach::Prefixes,
        checks_parameters: true,
        routes,
    }
}

const fn foreign(name: &'static str, reach: Reach, routes: &'static [Route]) -> Surface {
    Surface {
        name: Some(name),
        reach,
        checks_parameters: false,
        routes,
    }
}

impl Surface {
    /// Whether its routes answer under a prefix that is configured; the empty one is the root.
    pub(crate) fn answers_under(&self, prefix: &str) -> bool {
        prefix.is_empty() || self.reach != Reach::Root
    }
}
