//! `settings.v1.SettingsService`: what Drilldown keeps, by tenant.

use axum::http::StatusCode;
use axum::response::Response;
use candela_store::DocumentKind;
use candela_wire::settings::v1::DeleteSettingsRequest;
use candela_wire::settings::v1::DeleteSettingsResponse;
use candela_wire::settings::v1::GetSettingsRequest;
use candela_wire::settings::v1::GetSettingsResponse;
use candela_wire::settings::v1::SetSettingsRequest;
use candela_wire::settings::v1::SetSettingsResponse;
use candela_wire::settings::v1::Setting;
use serde::Deserialize;
use serde::Serialize;

use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::App;
use crate::auth::TenantName;
use crate::documents::document_error;
use crate::documents::lock_documents;
use crate::rpc::Call;
use crate::turns::Lane;

/// The one document of a tenant's settings.
const DOCUMENT: &str = "settings";
const SCHEMA: &str = "candela/settings/v1";

/// What a tenant may keep: Drilldown has one setting of a few kilobytes.
const MOST_SETTINGS: usize = 100;
const MOST_NAME_BYTES: usize = 256;
const MOST_VALUE_BYTES: usize = 256 << 10;

/// The document.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Document {
    schema: String,
    settings: Vec<Kept>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Kept {
    name: String,
    value: String,
    modified_at_ms: i64,
}

/// All settings, by name.
pub(crate) async fn get(call: Call) -> Response {
    call.answer(Lane::Lists, |app, caller, _: GetSettingsRequest, _| {
        let document = read(app, caller.one_tenant()?)?;
        let settings = document.settings.into_iter();
        Ok(GetSettingsResponse {
            settings: settings.map(Setting::from).collect(),
        })
    })
    .await
}

/// Keeps a setting, unless a later one of its name is kept.
pub(crate) async fn set(call: Call) -> Response {
    call.answer(Lane::Lists, |app, caller, asked: SetSettingsRequest, _| {
        let setting = asked.setting.ok_or_else(|| missing("setting"))?;
        let kept = checked(setting, milliseconds(app.clock.now_ns()))?;
        let answer = SetSettingsResponse {
            setting: Some(Setting {
                name: kept.name.clone(),
                value: kept.value.clone(),
                modified_at: kept.modified_at_ms,
            }),
        };
        change(app, &caller.tenant, |settings| replace(settings, kept))?;
        Ok(answer)
    })
    .await
}

/// Forgets a setting; that there is none is no error.
pub(crate) async fn delete(call: Call) -> Response {
    call.answer(
        Lane::Lists,
        |app, caller, asked: DeleteSettingsRequest, _| {
            if asked.name.is_empty() {
                return Err(missing("name"));
            }
            change(app, &caller.tenant, |settings| {
                let count = settings.len();
                settings.retain(|kept| kept.name != asked.name);
                Ok(settings.len() < count)
            })?;
            Ok(DeleteSettingsResponse {})
        },
    )
    .await
}

fn checked(setting: Setting, now_ms: i64) -> Result<Kept, ApiError> {
    if setting.name.is_empty() {
        return Err(missing("the name of the setting"));
    }
    for (what, text, most) in [
        ("name", &setting.name, MOST_NAME_BYTES),
        ("value", &setting.value, MOST_VALUE_BYTES),
    ] {
        if text.len() > most {
            let size = text.len();
            let message =
                format!("the {what} of the setting has {size} bytes, at most {most} may be");
            return Err(too_large(message));
        }
    }
    Ok(Kept {
        name: setting.name,
        value: setting.value,
        modified_at_ms: if setting.modified_at > 0 {
            setting.modified_at
        } else {
            now_ms
        },
    })
}

/// Puts a setting in its place among others, which are sorted by name.
fn replace(settings: &mut Vec<Kept>, setting: Kept) -> Result<bool, ApiError> {
    match settings.binary_search_by(|kept| kept.name.cmp(&setting.name)) {
        Ok(position) => {
            let kept = &settings[position];
            if kept.modified_at_ms > setting.modified_at_ms {
                let message = format!(
                    "setting {:?} was modified at {} ms, which is later than {} ms",
                    kept.name, kept.modified_at_ms, setting.modified_at_ms
                );
                return Err(
                    ApiError::new(StatusCode::CONFLICT, "setting_is_newer", message)
                        .hint("get it, and set it with a later modifiedAt"),
                );
            }
            settings[position] = setting;
        }
        Err(_) if settings.len() >= MOST_SETTINGS => {
            let message = format!("there are {MOST_SETTINGS} settings, and no more may be");
            return Err(too_large(message).hint("delete one"));
        }
        Err(position) => settings.insert(position, setting),
    }
    Ok(true)
}

/// Changes a tenant's settings; `work` says whether it changed anything.
fn change(
    app: &App,
    tenant: &TenantName,
    work: impl FnOnce(&mut Vec<Kept>) -> Result<bool, ApiError>,
) -> Result<(), ApiError> {
    let _changing = lock_documents(app);
    let mut document = read(app, tenant)?;
    if !work(&mut document.settings)? {
        return Ok(());
    }
    document.schema = SCHEMA.to_owned();
    let content = serde_json::to_vec(&document).map_err(ApiError::unwritten)?;
    let documents = app.store.documents();
    let written = documents.put(DocumentKind::Settings, tenant, DOCUMENT, content.into());
    written.map_err(|error| document_error(&error))
}

fn read(app: &App, tenant: &TenantName) -> Result<Document, ApiError> {
    let documents = app.store.documents();
    let content = documents.read(DocumentKind::Settings, tenant, DOCUMENT);
    let Some(content) = content.map_err(|error| document_error(&error))? else {
        return Ok(Document::default());
    };
    serde_json::from_slice(&content).map_err(|error| {
        tracing::error!("the settings of tenant {tenant} are damaged: {error}");
        ApiError::internal(format!("the settings of tenant {tenant} are damaged"))
    })
}

fn missing(what: &str) -> ApiError {
    ApiError::bad_request("missing_parameter", format!("{what} is missing"))
}

fn too_large(message: String) -> ApiError {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

impl From<Kept> for Setting {
    fn from(kept: Kept) -> Self {
        Self {
            name: kept.name,
            value: kept.value,
            modified_at: kept.modified_at_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(name: &str, modified_at_ms: i64) -> Kept {
        Kept {
            name: name.to_owned(),
            value: modified_at_ms.to_string(),
            modified_at_ms,
        }
    }

    #[test]
    fn settings_are_sorted_and_bounded_in_number() {
        let mut settings = Vec::new();
        for number in (0..MOST_SETTINGS).rev() {
            let setting = kept(&format!("{number:03}"), 1);
            assert_eq!(replace(&mut settings, setting), Ok(true));
        }
        assert!(settings.is_sorted_by_key(|kept| kept.name.clone()));
        let error = replace(&mut settings, kept("one more", 1)).expect_err("it is full");
        assert_eq!(error.code, "too_large");
        assert_eq!(replace(&mut settings, kept("007", 1)), Ok(true));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let setting = |name: usize, value: usize| Setting {
            name: "n".repeat(name),
            value: "v".repeat(value),
            modified_at: 0,
        };
        assert!(checked(setting(MOST_NAME_BYTES, MOST_VALUE_BYTES), 7).is_ok());
        for (name, value) in [(0, 1), (MOST_NAME_BYTES + 1, 1), (1, MOST_VALUE_BYTES + 1)] {
            assert!(checked(setting(name, value), 7).is_err(), "{name} {value}");
        }
    }
}
