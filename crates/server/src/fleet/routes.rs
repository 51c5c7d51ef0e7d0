//! Routes of the fleet.

use axum::routing::get;
use axum::routing::post;

use super::documents;
use super::nodes;
use super::snapshot;
use super::stream;
use crate::auth::Right;
use crate::route_parameters::Parameter;
use crate::route_parameters::optional;
use crate::route_parameters::required;
use crate::routes::JSON;
use crate::routes::Route;

const PERSISTENCE: &str = "/api/v1/fleet/persistence";

const VERSION: Parameter = optional(
    "version",
    "the version that the change is of, where If-Match does not say it",
);

/// A surface of our own.
///
/// What acts on every node takes the right of administrators: agents have that to write, and none of them
/// may tell the others what to run and where to send it.
pub(crate) const FLEET_ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: PERSISTENCE,
        right: Right::Read,
        summary: "the fleet's document as it is applied; version 0 and empty before the first",
        parameters: &[],
        content_types: JSON,
        handler: || get(documents::current),
    },
    Route {
        method: "PUT",
        path: PERSISTENCE,
        right: Right::Admin,
        summary: "applies the document in the body, unless somebody else has changed it: 409",
        parameters: &[VERSION],
        content_types: JSON,
        handler: || axum::routing::put(documents::apply),
    },
    Route {
        method: "POST",
        path: "/api/v1/fleet/persistence/check",
        right: Right::Read,
        summary: "what is wrong with the document in the body, and what applying it would change",
        parameters: &[],
        content_types: JSON,
        handler: || post(documents::check),
    },
    Route {
        method: "GET",
        path: "/api/v1/fleet/persistence/history",
        right: Right::Read,
        summary: "who applied which version, and when; the latest first",
        parameters: &[],
        content_types: JSON,
        handler: || get(documents::history),
    },
    Route {
        method: "GET",
        path: "/api/v1/fleet/persistence/versions/{version}",
        right: Right::Read,
        summary: "a version that is kept",
        parameters: &[],
        content_types: JSON,
        handler: || get(documents::version),
    },
    Route {
        method: "POST",
        path: "/api/v1/fleet/persistence/rollback",
        right: Right::Admin,
        summary: "applies a version that is kept once more, as a new one",
        parameters: &[
            required("to", "the version that is applied once more"),
            VERSION,
        ],
        content_types: JSON,
        handler: || post(documents::roll_back),
    },
    Route {
        method: "GET",
        path: "/api/v1/fleet/nodes",
        right: Right::Read,
        summary: "nodes with their daemons, the version that they have, and when they were seen last",
        parameters: &[],
        content_types: JSON,
        handler: || get(nodes::list),
    },
    Route {
        method: "POST",
        path: "/api/v1/fleet/report",
        right: Right::Write,
        summary: "takes what a node says of its daemons and of snapshots that it was ordered to take",
        parameters: &[],
        content_types: JSON,
        handler: || post(nodes::report),
    },
    Route {
        method: "GET",
        path: "/api/v1/fleet/stream",
        // Its readers are agents, which have this right.
        right: Right::Write,
        summary: "for agents, held open: the document, each new one, and orders, one JSON object a line",
        parameters: &[
            required("node", "the name of the node that listens"),
            optional(
                "daemon",
                "the one daemon that listens, where each has an agent of its own",
            ),
        ],
        content_types: &["application/x-ndjson"],
        handler: || get(stream::stream),
    },
    Route {
        method: "POST",
        path: "/api/v1/fleet/snapshot",
        right: Right::Admin,
        summary: "takes a Perfetto snapshot on all nodes or some, and waits for what becomes of each",
        parameters: &[],
        content_types: JSON,
        handler: || post(snapshot::snapshot),
    },
];
