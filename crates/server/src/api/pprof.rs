//! `GET /api/v1/pprof`.

use axum::extract::State;
use candela_formats::PprofOptions;

use crate::api::errors::query_error;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::compute;
use crate::parameters::Parameters;
use crate::reply::Reply;

/// The merged profile. Not compressed once more: pprof files are gzip themselves, and pprof reads
/// a body only as it came.
pub(crate) async fn pprof(
    State(app): State<SharedApp>,
    parameters: Parameters,
) -> Result<Reply, ApiError> {
    let query = query_of(&app, &parameters)?;
    compute(&app, move |app| {
        let answer = app.engine.profile(&query).map_err(query_error)?;
        let mut bytes = Vec::new();
        let options = PprofOptions {
            compress: true,
            ..PprofOptions::default()
        };
        candela_formats::write_pprof(&answer.value, &mut bytes, &options).map_err(|error| {
            tracing::error!("a pprof answer could not be written: {error}");
            ApiError::internal(error.to_string())
        })?;
        Ok(Reply::new("application/vnd.google.protobuf+gzip", bytes).file_name("candela.pb.gz"))
    })
    .await
}
