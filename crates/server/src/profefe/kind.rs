//! What Profefe calls types, and the first parts of ours.

use crate::api_error::ApiError;

/// A type of Profefe's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cpu,
    Heap,
    Block,
    Mutex,
    Goroutine,
    Threadcreate,
    /// Whatever else there is.
    Other,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Cpu,
        Self::Heap,
        Self::Block,
        Self::Mutex,
        Self::Goroutine,
        Self::Threadcreate,
        Self::Other,
    ];

    /// The type of a parameter.
    ///
    /// # Errors
    /// 400 for what is none, and 501 for execution traces.
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        if text == "trace" {
            let status = axum::http::StatusCode::NOT_IMPLEMENTED;
            let message = "type \"trace\": execution traces are no profiles, and are not kept here";
            return Err(ApiError::new(status, "not_implemented", message));
        }
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            let names = Self::ALL.map(Self::name).join(", ");
            let message = format!("bad \"type\" {shown:?}: there are {names}");
            ApiError::bad_request("bad_type", message)
        })
    }

    /// The type of what is stored under a first part.
    pub(super) fn of_name(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.names().contains(&name))
            .unwrap_or(Self::Other)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Heap => "heap",
            Self::Block => "block",
            Self::Mutex => "mutex",
            Self::Goroutine => "goroutine",
            Self::Threadcreate => "threadcreate",
            Self::Other => "other",
        }
    }

    /// First parts of ours; the first is that of what comes in here.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &["process_cpu"],
            Self::Heap => &["memory"],
            Self::Block => &["block"],
            Self::Mutex => &["mutex"],
            Self::Goroutine => &["goroutine", "goroutines"],
            Self::Threadcreate => &["threadcreate"],
            Self::Other => &["other"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_as_a_type_is_of_that_type() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Ok(kind));
            assert_eq!(Kind::of_name(kind.names()[0]), kind);
        }
        assert_eq!(Kind::of_name("wall"), Kind::Other);
        for (text, status) in [("trace", 501), ("", 400), ("CPU", 400)] {
            let error = Kind::parse(text).expect_err(text);
            assert_eq!(error.status.as_u16(), status, "{text}");
        }
    }
}
