//! A question about files in the shape in which the store is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::FromRequest;
use axum::extract::Request;
use candela_query::Engine;
use candela_query::Query;

use super::opened::OpenedFile;
use super::sent::SentFiles;
use crate::api::asked::Asked;
use crate::api::asked::OtherSide;
use crate::api::selection::Defaults;
use crate::api::selection::query_of;
use crate::api_error::ApiError;
use crate::app::SharedApp;

/// What an engine over files calls them.
const FILE: &str = "file";
const BASE: &str = "base";

/// A request that a handler of the store's routes answers, too.
pub(crate) struct OfFiles(pub(crate) Asked);

impl FromRequest<SharedApp> for OfFiles {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &SharedApp) -> Result<Self, ApiError> {
        SentFiles::from_request(request, app)
            .await?
            .into_question()
            .map(Self)
    }
}

impl SentFiles {
    pub(super) fn into_question(self) -> Result<Asked, ApiError> {
        let defaults = Defaults {
            query: query_of_all(&self.file, self.caller.query()),
            range: Some(self.file.range),
        };
        let query = query_of(&self.app, &self.parameters, defaults)?;
        let other = self.other_side(&query);
        let mut profiles = BTreeMap::from([(FILE.to_owned(), self.file.profiles.clone())]);
        if let Some(base) = &self.base {
            profiles.insert(BASE.to_owned(), base.profiles.clone());
        }
        Ok(Asked {
            engine: Engine::of_loose(profiles, Arc::clone(&self.app.clock)),
            app: self.app,
            caller: self.caller,
            accepts: self.accepts,
            reader: self.reader,
            parameters: self.parameters,
            query,
            other,
            is_of_files: true,
            slot: self.slot,
        })
    }
}

impl SentFiles {
    /// The other file, else this one. Of a part of this one it is by default the part before, as in the store.
    fn other_side(&self, query: &Query) -> Option<OtherSide> {
        if let Some(base) = &self.base {
            return Some(OtherSide {
                tenant: BASE.to_owned(),
                range: base.range,
            });
        }
        let is_given = |name| self.parameters.one(name).is_some();
        let is_of_all = query.range == self.file.range;
        let has_own_range = is_of_all || is_given("base_from") || is_given("base_to");
        has_own_range.then(|| OtherSide {
            tenant: FILE.to_owned(),
            range: self.file.range,
        })
    }
}

/// Everything of the type that is shown of a file where nobody says.
fn query_of_all(file: &OpenedFile, query: Query) -> Query {
    let default_type = file.default_type.as_ref();
    Query {
        tenants: vec![FILE.to_owned()],
        profile_type: default_type.map_or(query.profile_type, ToString::to_string),
        range: file.range,
        ..query
    }
}
