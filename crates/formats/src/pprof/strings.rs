//! The string table of a file.

use std::borrow::Cow;

use candela_model::Profile;
use candela_model::StringId;

use crate::error::ReadError;
use crate::options::Limits;
use crate::pprof::read::corrupt;
use crate::protobuf::reader::Span;

/// The string table; strings are interned when something uses them.
#[derive(Debug)]
pub(crate) struct Strings<'a> {
    data: &'a [u8],
    spans: Vec<Span>,
    ids: Vec<StringId>,
    limits: Limits,
    pub(crate) repaired: u64,
    pub(crate) cut: u64,
}

const NOT_INTERNED: StringId = StringId(u32::MAX);

impl<'a> Strings<'a> {
    pub(crate) fn new(data: &'a [u8], spans: Vec<Span>, limits: Limits) -> Self {
        let mut ids = vec![NOT_INTERNED; spans.len()];
        ids[0] = StringId(0);
        Self {
            data,
            spans,
            ids,
            limits,
            repaired: 0,
            cut: 0,
        }
    }

    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The id of string number `index`, which the message at `user` refers to.
    #[inline]
    pub(crate) fn id(
        &mut self,
        profile: &mut Profile,
        index: u64,
        user: Span,
    ) -> Result<StringId, ReadError> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        match self.ids.get(position) {
            Some(&NOT_INTERNED) => Ok(self.intern(profile, position)),
            Some(&id) => Ok(id),
            None => Err(self.dangling(index, user)),
        }
    }

    pub(crate) fn text(&mut self, index: u64, user: Span) -> Result<Cow<'a, str>, ReadError> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(span) = self.spans.get(position) else {
            return Err(self.dangling(index, user));
        };
        let bytes = &self.data[span.range()];
        Ok(self.short_text(bytes))
    }

    /// The text of some bytes, no longer than it may be.
    fn short_text(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        // Most text is some, and this finds that out faster than looking for where it is none.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        };
        let is_long = text.len() > self.limits.max_string_bytes;
        self.repaired += u64::from(matches!(text, Cow::Owned(_)));
        self.cut += u64::from(is_long);
        match text {
            text if !is_long => text,
            Cow::Borrowed(text) => Cow::Borrowed(self.limits.cut(text)),
            Cow::Owned(text) => Cow::Owned(self.limits.cut(&text).to_owned()),
        }
    }

    fn intern(&mut self, profile: &mut Profile, position: usize) -> StringId {
        let text = self.short_text(&self.data[self.spans[position].range()]);
        let id = profile.symbols.strings.intern(&text);
        self.ids[position] = id;
        id
    }

    #[cold]
    fn dangling(&self, index: u64, user: Span) -> ReadError {
        let count = self.spans.len();
        corrupt(
            format!("string {index} does not exist, there are {count}"),
            user,
        )
    }
}
