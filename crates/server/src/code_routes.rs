//! Routes about the code of a function: its source and its instructions.

use axum::routing::get;

use crate::analysis_parameters::of_disassembly;
use crate::analysis_parameters::of_source;
use crate::api;
use crate::auth::Right;
use crate::route_parameters::Parameter;
use crate::route_parameters::optional;
use crate::routes::JSON;
use crate::routes::Route;

const FILE: Parameter = optional(
    "file",
    "the source file, as symbols name it; without a function all that is in it",
);

/// They answer where the others of ours do.
pub(crate) const CODE_ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/api/v1/source",
        right: Right::Read,
        summary: "self and total of each source line of a function or a file",
        parameters: of_source![FILE],
        content_types: JSON,
        handler: || get(api::source::source),
    },
    Route {
        method: "GET",
        path: "/api/v1/disassembly",
        right: Right::Read,
        summary: "the machine code of a function, with what its source lines took",
        parameters: of_disassembly![FILE],
        content_types: JSON,
        handler: || get(api::disassembly::disassembly),
    },
];
