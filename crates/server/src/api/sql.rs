//! `POST /api/v1/sql`.

use axum::body::Body;
use axum::body::to_bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use candela_sql::SqlAnswer;
use candela_sql::SqlError;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::app::SharedApp;
use crate::app::off_the_reactor;
use crate::auth::Caller;
use crate::parameters::Parameters;
use crate::reply::AcceptsGzip;
use crate::reply::Reply;
use crate::turns::Lane;

/// The largest body, bytes: the longest query with room for the JSON around it.
const BODY_BYTES: usize = 64 << 10;

const JSON: &str = "application/json";
const CSV: &str = "text/csv";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Arrow,
}

pub(crate) async fn sql(
    State(app): State<SharedApp>,
    caller: Caller,
    parameters: Parameters,
    accepts: AcceptsGzip,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, ApiError> {
    let tenant = caller.one_tenant()?;
    let form = form_of(&parameters, &headers)?;
    let text = statement_of(&read(&app, body).await?)?;
    let turn = app.turn(&caller, Lane::Sql).await?;
    let answer = app.sql.query_holding(tenant, &text, turn).await;
    let answer = answer.map_err(sql_error)?;
    off_the_reactor(move || {
        let reply = reply(&answer, form).map_err(sql_error)?;
        Ok(reply.compressed(accepts))
    })
    .await
}

async fn read(app: &SharedApp, body: Body) -> Result<Vec<u8>, ApiError> {
    let wait = app.limits.body_timeout;
    let bytes = tokio::time::timeout(wait, to_bytes(body, BODY_BYTES)).await;
    let bytes = bytes.map_err(|_| {
        let message = format!("the body did not arrive in {} s", wait.as_secs());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow_body", message)
    })?;
    let bytes = bytes.map_err(|error| {
        let message = format!("the body is longer than {BODY_BYTES} bytes, or broke off: {error}");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).hint("shorten the query")
    })?;
    Ok(bytes.to_vec())
}

/// SQL as it is, or `{"query": …}`. No statement starts with a brace, so that nobody has to tell.
fn statement_of(body: &[u8]) -> Result<String, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        ApiError::bad_request("bad_sql", format!("the body is no UTF-8: {error}"))
    })?;
    if !text.trim_start().starts_with('{') {
        return Ok(text.to_owned());
    }
    let hint = "send SQL, or {\"query\": \"SELECT …\"}";
    let json: Value = serde_json::from_str(text).map_err(|error| {
        ApiError::bad_request("bad_json", format!("the body is no JSON: {error}")).hint(hint)
    })?;
    let query = json["query"].as_str().map(str::to_owned);
    query
        .ok_or_else(|| ApiError::bad_request("bad_json", "the body has no text `query`").hint(hint))
}

/// `format` wins over Accept, which browsers and scripts fill with what they like.
fn form_of(parameters: &Parameters, headers: &HeaderMap) -> Result<Form, ApiError> {
    match parameters.one("format") {
        Some("json") => return Ok(Form::Json),
        Some("csv") => return Ok(Form::Csv),
        Some("arrow") => return Ok(Form::Arrow),
        Some(other) => {
            let message = format!("format: {other:?} is neither json, csv nor arrow");
            return Err(ApiError::bad_request("bad_format", message));
        }
        None => {}
    }
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let accepted = accepted.unwrap_or_default();
    let wanted = accepted.split(',').find_map(|part| {
        let kind = part.split(';').next().unwrap_or_default().trim();
        match kind {
            JSON => Some(Form::Json),
            CSV => Some(Form::Csv),
            ARROW => Some(Form::Arrow),
            _ => None,
        }
    });
    Ok(wanted.unwrap_or(Form::Json))
}

fn reply(answer: &SqlAnswer, form: Form) -> Result<Reply, SqlError> {
    let reply = match form {
        Form::Json => Reply::new(JSON, answer.to_json()?),
        Form::Csv => Reply::new(CSV, answer.to_csv()?),
        Form::Arrow => Reply::new(ARROW, answer.to_arrow_stream()?),
    };
    Ok(reply.partial(answer.partial_reason()))
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn sql_error(error: SqlError) -> ApiError {
    let message = error.to_string();
    match error {
        SqlError::Bad(_) => ApiError::bad_request("bad_sql", message)
            .hint("SHOW TABLES and DESCRIBE say what there is; names with capitals need \"…\""),
        SqlError::NotReadOnly(_) => ApiError::bad_request("read_only", message),
        SqlError::TextTooLong { .. } => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        }
        SqlError::Memory { .. }
        | SqlError::Time { .. }
        | SqlError::Rows { .. }
        | SqlError::AnswerBytes { .. } => {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "over_budget", message)
        }
        SqlError::Busy { .. } => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message).hint("try again")
        }
        SqlError::Unreadable(_) | SqlError::Store(_) | SqlError::Threads(_) | SqlError::Bug(_) => {
            tracing::error!("a SQL query failed: {message}");
            ApiError::internal("the query failed because of an error in the server")
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::Uri;

    use super::*;

    #[test]
    fn the_body_is_sql_or_json() {
        assert_eq!(statement_of(b"SELECT 1").expect("SQL"), "SELECT 1");
        assert_eq!(
            statement_of(b" {\"query\": \"SELECT 1\"}").expect("JSON"),
            "SELECT 1"
        );
        for bad in ["{", "{}", "{\"query\": 1}"] {
            assert_eq!(
                statement_of(bad.as_bytes()).expect_err(bad).code,
                "bad_json"
            );
        }
        assert_eq!(statement_of(b"\xff").expect_err("no text").code, "bad_sql");
    }

    #[test]
    fn the_parameter_wins_over_the_header() {
        let form = |query: &'static str, accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            form_of(&Parameters::of(&Uri::from_static(query)), &headers)
        };
        assert_eq!(form("/", "*/*").expect("a form"), Form::Json);
        assert_eq!(
            form("/", "text/html, text/csv;q=0.9").expect("a form"),
            Form::Csv
        );
        assert_eq!(form("/", ARROW).expect("a form"), Form::Arrow);
        assert_eq!(form("/?format=json", CSV).expect("a form"), Form::Json);
        assert!(form("/?format=xml", CSV).is_err());
    }
}
