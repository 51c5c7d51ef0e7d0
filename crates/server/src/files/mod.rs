//! `/api/v1/files`: the questions of `/api/v1`, about a profile file that comes with the request.
//!
//! Nothing of a file is stored. Its profile is in memory for as long as the request takes, and for some
//! minutes more, so that the next question about it need not send it again.

mod about;
mod asked;
mod held;
mod opened;
mod sent;

pub(crate) use self::about::about;
pub(crate) use self::asked::OfFiles;
pub(crate) use self::held::HeldFiles;
