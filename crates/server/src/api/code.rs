//! What `/source` and `/disassembly` have in common: which code is asked for, and what it has of a
//! selection.

use candela_model::Profile;
use candela_model::SourcePlace;
use candela_model::SourceQuestion;
use candela_query::Answer;
use candela_query::Engine;
use candela_query::Query;
use serde_json::Value;
use serde_json::json;

use crate::api::asked::Asked;
use crate::api::errors::query_error;
use crate::api::head::answer_head;
use crate::api_error::ApiError;

/// The code that was asked for in a selection.
pub(crate) struct AskedCode<'a> {
    question: &'a SourceQuestion,
    pub(crate) answer: Answer<Profile>,
    /// All that has it by file and binary, the heaviest first.
    pub(crate) places: Vec<SourcePlace>,
}

/// # Errors
/// 400 without a function and a file.
pub(crate) fn question_of(asked: &Asked) -> Result<SourceQuestion, ApiError> {
    // Where a profile file is asked about, `file` is which one.
    let source_file = if asked.is_of_files {
        "source_file"
    } else {
        "file"
    };
    let one = |name| asked.parameters.one(name).map(str::to_owned);
    let question = SourceQuestion {
        function: one("function"),
        file: one(source_file),
        binary: one("binary"),
    };
    if question.function.is_none() && question.file.is_none() {
        let message = format!("function and {source_file} are missing");
        return Err(
            ApiError::bad_request("missing_parameter", message).hint(format!(
                "function=NAME, an exact name of the functions of top, or {source_file}=PATH as there"
            )),
        );
    }
    Ok(question)
}

impl<'a> AskedCode<'a> {
    pub(crate) fn load(
        engine: &Engine,
        query: &Query,
        question: &'a SourceQuestion,
    ) -> Result<Self, ApiError> {
        let answer = engine.profile_of_code(query).map_err(query_error)?;
        let profile_type = answer.profile_type.as_ref();
        let places = profile_type.map_or_else(Vec::new, |profile_type| {
            let everywhere = question.everywhere();
            answer.value.source_values(profile_type, &everywhere)
        });
        Ok(Self {
            question,
            answer,
            places,
        })
    }

    pub(crate) fn place(&self) -> Option<&SourcePlace> {
        self.question.choose(&self.places)
    }

    /// What every answer about code begins with.
    pub(crate) fn head(&self, query: &Query) -> Value {
        let question = self.question;
        let mut head = answer_head(query, &self.answer);
        let series = self.answer.value.series.iter();
        let total = series.fold(0_i64, |sum, series| sum.saturating_add(series.total()));
        head["total"] = json!(total);
        head["samples"] = json!(self.answer.samples);
        head["function"] = json!(question.function);
        head["places"] = candela_formats::places_json(&self.places);
        if self.place().is_none() && head["hint"].is_null() {
            let what = [&question.function, &question.file, &question.binary];
            let what: Vec<&str> = what.into_iter().flatten().map(String::as_str).collect();
            head["hint"] = json!(format!(
                "no stack of this selection has {}; /api/v1/top lists what there is",
                what.join(" of ")
            ));
        }
        head
    }
}

/// Something that may not be at hand, with what to do then.
pub(crate) fn availability(state: &str, message: &str, hint: &str) -> Value {
    json!({"state": state, "message": message, "hint": hint})
}
