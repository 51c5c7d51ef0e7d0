//! A list that a tenant keeps as one document: small enough to be written as a whole with each change,
//! so that after a crash it is the old one or the new one.

use axum::http::StatusCode;
use candela_listen::random_bytes;
use candela_store::DocumentKind;
use candela_store::Store;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use ulid::Ulid;

use crate::api_error::ApiError;
use crate::app::App;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::auth::Right;
use crate::auth::TenantName;
use crate::documents::document_error;
use crate::documents::lock_documents;
use crate::parameters::Parameters;
use crate::reply::Reply;

/// What a list has.
pub(crate) trait Kept: DeserializeOwned + Serialize {
    /// Where the list is, and its name there.
    const KIND: DocumentKind;
    const DOCUMENT: &'static str;
    /// What one is called, for errors.
    const NAME: &'static str;

    fn id(&self) -> &str;
    /// The token or user that made it.
    fn author(&self) -> &str;
}

/// The document.
#[derive(Debug, Deserialize, Serialize)]
struct Document<T> {
    schema: String,
    entries: Vec<T>,
}

/// A tenant's list.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read_list<T: Kept>(store: &Store, tenant: &str) -> Result<Vec<T>, ApiError> {
    let content = store.documents().read(T::KIND, tenant, T::DOCUMENT);
    let Some(content) = content.map_err(|error| document_error(&error))? else {
        return Ok(Vec::new());
    };
    let document: Document<T> = serde_json::from_slice(&content).map_err(|error| {
        let message = format!("the {} of tenant {tenant} are damaged", T::DOCUMENT);
        tracing::error!("{message}: {error}");
        ApiError::internal(message)
    })?;
    Ok(document.entries)
}

/// Writes a tenant's list.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_list<T: Kept>(
    store: &Store,
    tenant: &str,
    entries: Vec<T>,
) -> Result<(), ApiError> {
    let document = Document {
        schema: format!("candela/kept-{}/v1", T::DOCUMENT),
        entries,
    };
    let content = serde_json::to_vec(&document).map_err(ApiError::unwritten)?;
    let written = store
        .documents()
        .put(T::KIND, tenant, T::DOCUMENT, content.into());
    written.map_err(|error| document_error(&error))
}

/// Changes a tenant's list while nobody else does.
///
/// # Errors
/// Those of `work`, and when it cannot be read or written.
pub(crate) fn change_list<T: Kept, R>(
    app: &App,
    tenant: &TenantName,
    work: impl FnOnce(&mut Vec<T>) -> Result<R, ApiError>,
) -> Result<R, ApiError> {
    let _changing = lock_documents(app);
    let mut entries = read_list(&app.store, tenant)?;
    let result = work(&mut entries)?;
    write_list(&app.store, tenant, entries)?;
    Ok(result)
}

/// Removes the entry that the parameter `id` names.
///
/// # Errors
/// 400 without that parameter, 404 when there is none of that id, 403 when it is another's.
pub(crate) async fn remove_named<T: Kept>(
    app: SharedApp,
    caller: Caller,
    parameters: &Parameters,
) -> Result<Reply, ApiError> {
    let Some(id) = parameters.one("id").map(str::to_owned) else {
        let message = format!("id is missing: which {} is to be removed?", T::NAME);
        return Err(ApiError::bad_request("missing_parameter", message));
    };
    off_the_reactor(move || {
        remove_from_list::<T>(&app, &caller, &id)?;
        Ok(Reply::json("removed", json!({"id": id})))
    })
    .await
}

fn remove_from_list<T: Kept>(app: &App, caller: &Caller, id: &str) -> Result<(), ApiError> {
    change_list(app, &caller.tenant, |entries: &mut Vec<T>| {
        let Some(place) = entries.iter().position(|entry| entry.id() == id) else {
            let shown: String = id.chars().take(64).collect();
            let message = format!("there is no {} {shown:?}", T::NAME);
            return Err(
                ApiError::new(StatusCode::NOT_FOUND, "not_kept", message).hint("list them first")
            );
        };
        check_author(caller, &entries[place])?;
        entries.remove(place);
        Ok(())
    })
}

/// Whether a caller may change an entry: its own, and administrators every one.
///
/// # Errors
/// 403 when it is another's.
pub(crate) fn check_author<T: Kept>(caller: &Caller, entry: &T) -> Result<(), ApiError> {
    if *entry.author() == *caller.name || caller.rights.allow(Right::Admin) {
        return Ok(());
    }
    let message = format!("this {} is of {}, not yours", T::NAME, entry.author());
    Err(ApiError::new(StatusCode::FORBIDDEN, "not_yours", message)
        .hint("its author changes and removes it, or a token or user with the right admin"))
}

/// A name for a new entry, which tells when it was made.
///
/// # Errors
/// When the system gives no random bytes.
pub(crate) fn new_id(now_ms: i64) -> Result<String, ApiError> {
    let bytes: [u8; 16] = random_bytes().map_err(|error| ApiError::internal(error.to_string()))?;
    let time_ms = u64::try_from(now_ms).unwrap_or(0);
    Ok(Ulid::from_parts(time_ms, u128::from_ne_bytes(bytes)).to_string())
}
