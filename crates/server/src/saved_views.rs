//! `/api/v1/views`: addresses of the window, and filters alone, under a name.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use candela_store::DocumentKind;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::api::head::milliseconds;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::json_body::read_json;
use crate::kept_list::Kept;
use crate::kept_list::change_list;
use crate::kept_list::check_author;
use crate::kept_list::new_id;
use crate::kept_list::read_list;
use crate::kept_list::remove_named;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;

/// As many as a tenant keeps, and how long each may be.
const MOST_VIEWS: usize = 500;
const MOST_NAME: usize = 100;
const MOST_ADDRESS_BYTES: usize = 8 << 10;

const HINT: &str =
    r#"{"name": "checkout by region", "kind": "view", "address": "?v=1&screen=labels&by=region"}"#;

/// What is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum ViewKind {
    /// Everything that the address says.
    View,
    /// Filters, which are added to what is looked at.
    Filters,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct SavedView {
    id: String,
    name: String,
    kind: ViewKind,
    /// The query of the window's address, with its question mark: it leads nowhere else.
    address: String,
    author: String,
    created_ms: i64,
}

/// The body of a new one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    kind: ViewKind,
    address: String,
}

impl Kept for SavedView {
    const KIND: DocumentKind = DocumentKind::Views;
    const DOCUMENT: &'static str = "views";
    const NAME: &'static str = "saved view";

    fn id(&self) -> &str {
        &self.id
    }

    fn author(&self) -> &str {
        &self.author
    }
}

/// All of them, by name.
pub(crate) async fn list(
    State(app): State<SharedApp>,
    caller: Caller,
    accepts: AcceptsGzip,
) -> Result<Reply, ApiError> {
    off_the_reactor(move || {
        let mut views: Vec<SavedView> = Vec::new();
        for tenant in caller.tenants() {
            views.extend(read_list::<SavedView>(&app.store, tenant)?);
        }
        views.sort_by(|left, right| (&left.name, &left.id).cmp(&(&right.name, &right.id)));
        let views: Vec<Value> = views.iter().map(as_json).collect();
        Ok(Reply::json("views", json!({"views": views})).compressed(accepts))
    })
    .await
}

/// Saves one, in the place of the author's own of that name and kind.
pub(crate) async fn save(
    State(app): State<SharedApp>,
    caller: Caller,
    body: Body,
) -> Result<Reply, ApiError> {
    let given: Given = read_json(&app, body, HINT).await?;
    check(&given)?;
    let now_ms = milliseconds(app.clock.now_ns());
    let view = SavedView {
        id: new_id(now_ms)?,
        name: given.name.trim().to_owned(),
        kind: given.kind,
        address: given.address,
        author: caller.name.to_string(),
        created_ms: now_ms,
    };
    off_the_reactor(move || {
        let mut answer = as_json(&view);
        let is_replaced = change_list(&app, &caller.tenant, |kept| put(kept, view, &caller))?;
        answer["replaced"] = is_replaced.into();
        Ok(Reply::json("view", answer))
    })
    .await
}

/// Forgets one.
pub(crate) async fn remove(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
) -> Result<Reply, ApiError> {
    remove_named::<SavedView>(app, caller, &parameters).await
}

/// Whether it took the place of another.
fn put(kept: &mut Vec<SavedView>, view: SavedView, caller: &Caller) -> Result<bool, ApiError> {
    let is_same = |it: &SavedView| it.name == view.name && it.kind == view.kind;
    if let Some(place) = kept.iter().position(is_same) {
        check_author(caller, &kept[place])?;
        kept[place] = view;
        return Ok(true);
    }
    if kept.len() >= MOST_VIEWS {
        let message = format!("there are {MOST_VIEWS} saved views, and no more may be");
        let error = ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", message);
        return Err(error.hint("remove one"));
    }
    kept.push(view);
    Ok(false)
}

fn check(given: &Given) -> Result<(), ApiError> {
    let bad = |message: String| ApiError::bad_request("bad_view", message).hint(HINT);
    let name = given.name.trim();
    let length = name.chars().count();
    if !(1..=MOST_NAME).contains(&length) || name.chars().any(char::is_control) {
        return Err(bad(format!(
            "a name has 1 to {MOST_NAME} characters on one line, not {length}"
        )));
    }
    let address = &given.address;
    if address.len() > MOST_ADDRESS_BYTES {
        let size = address.len();
        return Err(bad(format!(
            "the address has {size} bytes, at most {MOST_ADDRESS_BYTES} may be"
        )));
    }
    let is_query = address.starts_with('?') && !address.contains('#');
    if !is_query || address.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(bad(
            "the address is the window's from the question mark on, without what follows a #"
                .to_owned(),
        ));
    }
    let pairs = form_urlencoded::parse(&address.as_bytes()[1..]);
    let names: Vec<String> = pairs.map(|(name, _)| name.into_owned()).collect();
    if given.kind == ViewKind::Filters && names.iter().any(|name| name != "v" && name != "filters")
    {
        return Err(bad(
            "filters are saved as ?v=1&filters=…, and nothing else".to_owned()
        ));
    }
    Ok(())
}

fn as_json(view: &SavedView) -> Value {
    json!({
        "id": view.id,
        "name": view.name,
        "kind": view.kind,
        "address": view.address,
        "author": view.author,
        "created": view.created_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, kind: ViewKind, address: &str) -> Given {
        Given {
            name: name.to_owned(),
            kind,
            address: address.to_owned(),
        }
    }

    #[test]
    fn an_address_leads_nowhere_else() {
        let good = [
            (ViewKind::View, "?v=1"),
            (ViewKind::View, "?v=1&query={a=%22b%22}&from=now-1h"),
            (ViewKind::Filters, "?v=1&filters=hide%3Dpkg:net"),
        ];
        for (kind, address) in good {
            assert_eq!(check(&given("a", kind, address)), Ok(()), "{address}");
        }
        let long = format!("?v=1&query={}", "x".repeat(MOST_ADDRESS_BYTES));
        let bad = [
            (ViewKind::View, ""),
            (ViewKind::View, "https://evil.example/?v=1"),
            (ViewKind::View, "//evil.example"),
            (ViewKind::View, "?v=1#x"),
            (ViewKind::View, "?v=1\n"),
            (ViewKind::View, &long),
            (ViewKind::Filters, "?v=1&query={}"),
        ];
        for (kind, address) in bad {
            let error = check(&given("a", kind, address)).expect_err(address);
            assert_eq!(error.code, "bad_view");
        }
        for name in ["", "  ", "a\nb", &"x".repeat(101)] {
            assert!(
                check(&given(name, ViewKind::View, "?v=1")).is_err(),
                "{name}"
            );
        }
    }

    #[test]
    fn there_are_only_so_many() {
        let caller = Caller::anonymous();
        let view = |name: String| SavedView {
            id: name.clone(),
            name,
            kind: ViewKind::View,
            address: "?v=1".to_owned(),
            author: "anonymous".to_owned(),
            created_ms: 1,
        };
        let mut kept = Vec::new();
        for number in 0..MOST_VIEWS {
            assert_eq!(put(&mut kept, view(number.to_string()), &caller), Ok(false));
        }
        let error = put(&mut kept, view("more".to_owned()), &caller).expect_err("it is full");
        assert_eq!(error.code, "too_many");
        assert_eq!(put(&mut kept, view("7".to_owned()), &caller), Ok(true));
        assert_eq!(kept.len(), MOST_VIEWS);
    }
}
