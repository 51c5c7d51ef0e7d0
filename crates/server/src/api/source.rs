//! `GET /api/v1/source` and `POST /api/v1/files/source`: what the lines of a function took, and their text where it is at hand.

use candela_model::SourcePlace;
use candela_symbols::SourceFileError;
use candela_symbols::SourceRoots;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::code::AskedCode;
use crate::api::code::availability;
use crate::api::code::question_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::reply::Reply;
use crate::turns::Lane;

/// What gives a program lines.
const LINES_HINT: &str = "build the program with debug information (-g), or keep its debug file where candela finds it (candela symbols find PROGRAM), and record again";

pub(crate) async fn source(asked: Asked) -> Result<Reply, ApiError> {
    let question = question_of(&asked)?;
    let app = SharedApp::clone(&asked.app);
    let is_of_files = asked.is_of_files;
    asked
        .answer(Lane::Queries, move |engine, query| {
            let code = AskedCode::load(engine, query, &question)?;
            let mut value = code.head(query);
            let place = code.place();
            value["place"] = place.map_or(Value::Null, candela_formats::place_json);
            if let Some(place) = place
                && place.lines.is_empty()
            {
                value["lines_hint"] = json!(LINES_HINT);
            }
            value["source"] = match place {
                None => Value::Null,
                Some(place) if is_of_files => text_of_file(place),
                Some(place) => text_of(&app.source_roots, place),
            };
            let partial = code.answer.partial.as_deref();
            Ok(Reply::json("source", value).partial(partial))
        })
        .await
}

/// A profile file can name any path, and would read the sources of this host by it.
fn text_of_file(place: &SourcePlace) -> Value {
    if place.file.is_empty() {
        return unnamed();
    }
    availability(
        "not_stored",
        "sources on the server are read for stored profiles only",
        "open the file here",
    )
}

/// The text of the file that symbols of this very answer name; no other file is ever looked for.
fn text_of(roots: &SourceRoots, place: &SourcePlace) -> Value {
    if place.file.is_empty() {
        return unnamed();
    }
    let error = match roots.read(&place.file) {
        Ok(found) => {
            let mut value = availability("found", "", "");
            value["text"] = json!(found.text);
            return value;
        }
        Err(error) => error,
    };
    let message = error.to_string();
    match error {
        SourceFileError::NoRoots => availability(
            "no_roots",
            "this server does not know where sources are",
            "set server.source_roots to the folders that have them, or open the file here",
        ),
        SourceFileError::Outside { .. } => availability(
            "outside",
            &message,
            "add its folder to server.source_roots; as FROM=TO where it was built elsewhere",
        ),
        SourceFileError::Missing { .. } => availability(
            "missing",
            &message,
            "put it there, or map where it was built to where it is with FROM=TO in server.source_roots",
        ),
        _ => availability("unreadable", &message, "open the file here"),
    }
}

fn unnamed() -> Value {
    availability("unnamed", "the symbols name no source file", LINES_HINT)
}
