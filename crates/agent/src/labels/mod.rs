//! From facts about a process to the labels of its series.

mod cgroup;
mod command_line;
mod facts;
mod kubernetes;
mod naming;
mod process_context;
mod series;
mod service_rules;

pub use self::cgroup::CgroupFacts;
pub use self::cgroup::parse_cgroup;
pub use self::command_line::program_name;
pub use self::facts::ProcessFacts;
pub use self::facts::command_line;
pub(crate) use self::facts::published_context;
pub use self::kubernetes::PodContainer;
pub(crate) use self::naming::Named;
pub(crate) use self::naming::Namer;
pub(crate) use self::naming::Unsettled;
pub(crate) use self::process_context::AttributeKey;
pub(crate) use self::process_context::is_context_mapping;
pub use self::series::Labeler;
pub use self::service_rules::ServiceRule;
