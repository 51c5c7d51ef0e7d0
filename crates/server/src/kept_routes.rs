//! Routes of what readers keep here: annotations, saved views, and the session of a browser.

use axum::routing::delete;
use axum::routing::get;
use axum::routing::post;

use crate::annotations;
use crate::auth::Right;
use crate::route_parameters::FROM;
use crate::route_parameters::QUERY;
use crate::route_parameters::TO;
use crate::route_parameters::repeatable;
use crate::route_parameters::required;
use crate::routes::JSON;
use crate::routes::Route;
use crate::saved_views;
use crate::session;

/// A surface of our own.
pub(crate) const KEPT_ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/api/v1/annotations",
        right: Right::Read,
        summary: "what happened in a range: deploys, changes of configuration, notes",
        parameters: &[
            QUERY,
            FROM,
            TO,
            repeatable("kind", "only annotations of this kind"),
        ],
        content_types: JSON,
        handler: || get(annotations::list),
    },
    Route {
        method: "POST",
        path: "/api/v1/annotations",
        right: Right::Write,
        summary: "keeps the annotation in the body",
        parameters: &[],
        content_types: JSON,
        handler: || post(annotations::add),
    },
    Route {
        method: "DELETE",
        path: "/api/v1/annotations",
        right: Right::Write,
        summary: "removes an annotation of one's own; administrators remove every one",
        parameters: &[required("id", "of the annotation")],
        content_types: JSON,
        handler: || delete(annotations::remove),
    },
    Route {
        method: "GET",
        path: "/api/v1/views",
        right: Right::Read,
        summary: "views and filters that were saved under a name",
        parameters: &[],
        content_types: JSON,
        handler: || get(saved_views::list),
    },
    Route {
        method: "POST",
        path: "/api/v1/views",
        right: Right::Write,
        summary: "saves the view in the body, in the place of one's own of that name",
        parameters: &[],
        content_types: JSON,
        handler: || post(saved_views::save),
    },
    Route {
        method: "DELETE",
        path: "/api/v1/views",
        right: Right::Write,
        summary: "removes a saved view of one's own; administrators remove every one",
        parameters: &[required("id", "of the view")],
        content_types: JSON,
        handler: || delete(saved_views::remove),
    },
    // Who is not signed in must be able to ask for it, and learns no more than how.
    Route {
        method: "GET",
        path: "/api/v1/session",
        right: Right::Anyone,
        summary: "who asks, as this server sees it, and how one signs in",
        parameters: &[],
        content_types: JSON,
        handler: || get(session::who),
    },
    Route {
        method: "POST",
        path: "/api/v1/session",
        right: Right::Anyone,
        summary: "signs a browser in with the token, or user and password, of the body: sets a cookie",
        parameters: &[],
        content_types: JSON,
        handler: || post(session::sign_in),
    },
    Route {
        method: "DELETE",
        path: "/api/v1/session",
        right: Right::Anyone,
        summary: "signs out: the session of the cookie ends",
        parameters: &[],
        content_types: JSON,
        handler: || delete(session::sign_out),
    },
];
