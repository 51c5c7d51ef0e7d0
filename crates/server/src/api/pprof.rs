//! `GET /api/v1/pprof`.

use candela_formats::PprofOptions;
use candela_formats::write_pprof;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_query::Answer;
use candela_query::Query;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api_error::ApiError;
use crate::reply::Reply;
use crate::turns::Lane;

/// Of a profile and of what is written of it, about: a sample and its part of the stacks.
const BYTES_PER_SAMPLE: usize = 200;

/// The merged profile. Not compressed once more: pprof files are gzip themselves, and pprof reads
/// a body only as it came.
pub(crate) async fn pprof(asked: Asked) -> Result<Reply, ApiError> {
    asked
        .answer_as_it_is(Lane::Queries, move |engine, query| {
            let answer = engine.profile(query).map_err(query_error)?;
            Ok(as_pprof(query, answer))
        })
        .await
}

/// An answer as a file that is gzip itself.
pub(crate) fn as_pprof(query: &Query, mut answer: Answer<Profile>) -> Reply {
    if answer.value.series.is_empty() {
        answer.value.series.push(empty_series(query, &answer));
    }
    let partial = answer.partial.clone();
    let options = PprofOptions {
        compress: true,
        comments: answer.hint.into_iter().chain(answer.partial).collect(),
        ..PprofOptions::default()
    };
    let profile = answer.value;
    let bytes = profile.sample_count() * BYTES_PER_SAMPLE;
    let reply = Reply::written(
        "application/vnd.google.protobuf+gzip",
        bytes,
        move |output| write_pprof(&profile, output, &options).map(drop),
    );
    reply.file_name("candela.pb.gz").partial(partial.as_deref())
}

/// Nothing matches, which is an answer; but a pprof without any sample type is no pprof.
fn empty_series(query: &Query, answer: &Answer<Profile>) -> ProfileSeries {
    let profile_type = type_of_empty(query, answer.profile_type.as_ref());
    ProfileSeries::new(Labels::default(), profile_type)
}

/// The type that was found, or else one that the answer can bear.
pub(crate) fn type_of_empty(query: &Query, found: Option<&ProfileType>) -> ProfileType {
    found
        .cloned()
        .or_else(|| query.profile_type.parse().ok())
        .unwrap_or_else(|| {
            ProfileType::new("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds")
        })
}
