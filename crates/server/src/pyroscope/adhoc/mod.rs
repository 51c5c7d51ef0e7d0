//! `adhocprofiles.v1.AdHocProfileService`: profiles that people upload to look at them. They are in
//! no answer to a query.

mod id;
mod view;

use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use candela_model::Profile;
use candela_store::DocumentKind;
use candela_store::DocumentMeta;
use candela_wire::adhocprofiles::v1::AdHocProfilesDiffRequest;
use candela_wire::adhocprofiles::v1::AdHocProfilesDiffResponse;
use candela_wire::adhocprofiles::v1::AdHocProfilesGetRequest;
use candela_wire::adhocprofiles::v1::AdHocProfilesGetResponse;
use candela_wire::adhocprofiles::v1::AdHocProfilesListRequest;
use candela_wire::adhocprofiles::v1::AdHocProfilesListResponse;
use candela_wire::adhocprofiles::v1::AdHocProfilesProfileMetadata;
use candela_wire::adhocprofiles::v1::AdHocProfilesUploadRequest;

use self::id::AdHocId;
use self::view::Room;
use self::view::View;
use self::view::common_types;
use self::view::diff_document;
use self::view::types_of;
use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::documents::document_error;
use crate::documents::lock_documents;
use crate::ingest::append::received_hash;
use crate::ingest::body::BodyBounds;
use crate::ingest::read::inflated;
use crate::ingest::read::read_error;
use crate::ingest::read::read_options;
use crate::ingest::taken_formats::taken_format;
use crate::pyroscope::querier::selection::max_nodes;
use crate::rpc::Call;
use crate::tenant_limits::TenantLimits;
use crate::turns::Lane;

const KIND: DocumentKind = DocumentKind::AdHocProfile;

/// Keeps a profile that can be read, and shows it.
pub(crate) async fn upload(call: Call) -> Response {
    let limits = call.app.tenants.limits(&call.caller.tenant);
    let bounds = BodyBounds::encoded_profile(&limits);
    call.answer_within(
        bounds,
        Lane::Queries,
        |app, caller, asked: AdHocProfilesUploadRequest, cancellation| {
            let nodes = max_nodes(asked.max_nodes)?;
            let bytes = STANDARD.decode(asked.profile.as_bytes()).map_err(|error| {
                ApiError::bad_request("bad_base64", format!("profile is no base64: {error}"))
            })?;
            let tenant = &caller.tenant;
            // What cannot be looked at is not kept.
            let profile = read(app, tenant, &bytes)?;
            let room = Room::new(&caller.query(), cancellation);
            let view = View::of(&profile, None, nodes, room)?;
            let hash = received_hash("adhoc", &[&asked.name], &bytes);
            let id = AdHocId::new(milliseconds(app.clock.now_ns()), hash, &asked.name);
            keep(app, tenant, &id, bytes)?;
            response(&id, view)
        },
    )
    .await
}

pub(crate) async fn get(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: AdHocProfilesGetRequest, cancellation| {
            let nodes = max_nodes(asked.max_nodes)?;
            let (id, profile) = kept(app, caller.one_tenant()?, &asked.id)?;
            let room = Room::new(&caller.query(), cancellation);
            let view = View::of(&profile, asked.profile_type.as_deref(), nodes, room)?;
            response(&id, view)
        },
    )
    .await
}

/// All of a tenant, the latest first.
pub(crate) async fn list(call: Call) -> Response {
    call.answer(
        Lane::Lists,
        |app, caller, _: AdHocProfilesListRequest, _| {
            let documents = documents(app, caller.one_tenant()?)?;
            let ids = documents.iter().rev();
            let ids = ids.filter_map(|document| document.name.parse::<AdHocId>().ok());
            let profiles = ids.map(|id| AdHocProfilesProfileMetadata {
                id: id.to_string(),
                name: id.name().to_owned(),
                uploaded_at: id.uploaded_at_ms(),
            });
            Ok(AdHocProfilesListResponse {
                profiles: profiles.collect(),
            })
        },
    )
    .await
}

pub(crate) async fn diff(call: Call) -> Response {
    call.answer(
        Lane::Queries,
        |app, caller, asked: AdHocProfilesDiffRequest, cancellation| {
            let nodes = max_nodes(asked.max_nodes)?;
            let tenant = caller.one_tenant()?;
            let (_, left) = kept(app, tenant, &asked.left_id)?;
            let (_, right) = kept(app, tenant, &asked.right_id)?;
            let types = common_types(&types_of(&left), &types_of(&right))?;
            let wanted = asked.profile_type.as_deref();
            let room = Room::new(&caller.query(), cancellation);
            Ok(AdHocProfilesDiffResponse {
                flamebearer_profile: diff_document([&left, &right], &types, wanted, nodes, room)?,
                profile_types: types.iter().map(ToString::to_string).collect(),
            })
        },
    )
    .await
}

fn response(id: &AdHocId, view: View) -> Result<AdHocProfilesGetResponse, ApiError> {
    Ok(AdHocProfilesGetResponse {
        id: id.to_string(),
        name: id.name().to_owned(),
        uploaded_at: id.uploaded_at_ms(),
        profile_type: view.profile_type,
        profile_types: view.profile_types,
        flamebearer_profile: view.document,
    })
}

/// Keeps the bytes of a profile, as they were sent.
fn keep(app: &App, tenant: &TenantName, id: &AdHocId, bytes: Vec<u8>) -> Result<(), ApiError> {
    let _changing = lock_documents(app);
    check_room(
        &app.tenants.limits(tenant),
        &documents(app, tenant)?,
        bytes.len() as u64,
    )?;
    let store = app.store.documents();
    let written = store.put(KIND, tenant, &id.to_string(), Bytes::from(bytes));
    written.map_err(|error| document_error(&error))
}

/// Whether one more of this size may be kept. The service has no way to delete one.
fn check_room(limits: &TenantLimits, kept: &[DocumentMeta], bytes: u64) -> Result<(), ApiError> {
    let count = kept.len() as u64 + 1;
    let size: u64 = kept.iter().map(|document| document.bytes).sum::<u64>() + bytes;
    for (what, found, bound) in [
        ("adhoc_profiles", count, limits.adhoc_profiles),
        ("adhoc_size", size, limits.adhoc_size),
    ] {
        let most = bound.get();
        if most != 0 && found > most {
            let message = format!(
                "with this one the uploaded profiles are {count} of {size} bytes together, and \
                 at most {most} may be (server.limits.{what})"
            );
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return Err(ApiError::new(status, "adhoc_full", message).hint(
                "raise the limit, or remove files of the folder documents/adhoc where blocks are \
                 kept",
            ));
        }
    }
    Ok(())
}

fn documents(app: &App, tenant: &TenantName) -> Result<Vec<DocumentMeta>, ApiError> {
    let listed = app.store.documents().list(KIND, tenant);
    listed.map_err(|error| document_error(&error))
}

/// A profile that is kept.
fn kept(app: &App, tenant: &TenantName, id: &str) -> Result<(AdHocId, Profile), ApiError> {
    let unknown = || {
        let shown: String = id.chars().take(64).collect();
        let message = format!("there is no uploaded profile {shown:?}");
        ApiError::new(StatusCode::NOT_FOUND, "unknown_profile", message)
    };
    if id.is_empty() {
        return Err(ApiError::bad_request(
            "missing_parameter",
            "the id is missing",
        ));
    }
    let id: AdHocId = id.parse().map_err(|_| unknown())?;
    let content = app.store.documents().read(KIND, tenant, &id.to_string());
    let content = content.map_err(|error| document_error(&error))?;
    let profile = read(app, tenant, &content.ok_or_else(unknown)?)?;
    Ok((id, profile))
}

/// A profile in any format that can be read.
fn read(app: &App, tenant: &TenantName, bytes: &[u8]) -> Result<Profile, ApiError> {
    let limits = app.tenants.limits(tenant);
    let bounds = BodyBounds::profile(&limits);
    let inflated = inflated(bytes, bounds)?;
    let format = taken_format(&inflated)?;
    let options = read_options(app, &limits, bounds);
    let read = candela_formats::read(format, &inflated[..], &options);
    let (profile, _) = read.map_err(|error| read_error(&error))?;
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant_limits::Bound;

    #[test]
    fn what_a_tenant_keeps_is_bounded() {
        let kept = [DocumentMeta {
            name: "a".to_owned(),
            bytes: 60,
        }];
        let limits = |profiles, size| TenantLimits {
            adhoc_profiles: Bound::new(profiles),
            adhoc_size: Bound::new(size),
            ..TenantLimits::default()
        };
        assert_eq!(check_room(&limits(2, 100), &kept, 40), Ok(()));
        assert_eq!(check_room(&limits(0, 0), &kept, 1 << 40), Ok(()));
        for (limits, key) in [
            (limits(1, 100), "adhoc_profiles"),
            (limits(2, 99), "adhoc_size"),
        ] {
            let error = check_room(&limits, &kept, 40).expect_err("it is full");
            assert!(error.message.contains(key), "{}", error.message);
        }
    }
}
