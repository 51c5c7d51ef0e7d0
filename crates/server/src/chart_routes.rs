//! The route of what needs the times of samples alone.

use axum::routing::get;

use crate::analysis_parameters::of_chart;
use crate::api;
use crate::auth::Right;
use crate::routes::Route;

pub(crate) const CHART_ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/api/v1/chart",
    right: Right::Read,
    summary: "what each thread did when, where the times of samples are stored",
    parameters: of_chart![],
    content_types: &["application/json", "application/vnd.candela.columns"],
    handler: || get(api::chart::chart),
}];
