//! What to observe and how to name it.
//!
//! The agent samples what runs on the CPUs of a host by `candela-ebpf`, gives the kernel the unwind
//! tables that stacks need, walks in user space what the kernel could not, names every frame by
//! `candela-symbols`, and labels series by process, container and service. Profiles go to an
//! [`Exporter`]; while it takes none they wait in a bounded spool. Whatever is dropped is counted by
//! reason ([`AgentStatus::drops`]). What programs offer of themselves over HTTP is scraped
//! ([`ScrapeJob`]).
//!
//! This crate never sees storage or queries.
//!
//! ```no_run
//! use candela_agent::{Agent, AgentOptions, InProcess};
//!
//! let exporter = InProcess::new(|profile| {
//!     println!("{} series", profile.series.len());
//!     Ok(())
//! });
//! let agent = Agent::start(AgentOptions::default(), Box::new(exporter))?;
//! // ... until the program should end:
//! let status = agent.stop()?;
//! println!("{} samples", status.quality.samples);
//! # Ok::<(), candela_agent::AgentError>(())
//! ```
#![forbid(unsafe_code)]

mod agent;
mod allocations;
mod collector;
mod containers;
mod cost;
mod cpu;
mod doctor;
mod dump;
mod error;
mod export;
mod filters;
mod go_heaps;
mod kinds;
mod labels;
mod ledger;
mod limits;
mod missing_frames;
mod no_samples;
mod observation;
mod on_demand;
mod options;
mod pipeline;
mod places;
mod processes;
mod record;
mod sample_context;
mod schedule;
mod scrape;
mod short_stacks;
mod source;
mod stack_key;
mod status;
mod symbolize;
mod tables;
mod window;
mod windows;

pub use candela_ebpf::CAPABILITIES;
pub use candela_ebpf::Capability;
pub use candela_ebpf::Check;
pub use candela_ebpf::Clock;
pub use candela_ebpf::ExplicitEvent;
pub use candela_ebpf::MOST_EXPLICIT_EVENTS;
pub use candela_ebpf::Switch;
pub use candela_ebpf::SwitchRecorder;
pub use candela_ebpf::Wakers;
pub use candela_ebpf::defect;
pub use candela_ebpf::monotonic_ns;
pub use candela_preload::DEFAULT_INTERVAL as DEFAULT_ALLOCATION_INTERVAL;
pub use candela_preload::FILE_NAME as ALLOCATION_LIBRARY_NAME;
pub use candela_preload::INTERVAL_VARIABLE as ALLOCATION_INTERVAL_VARIABLE;
pub use candela_preload::LIBRARY as ALLOCATION_LIBRARY;

pub use crate::agent::Agent;
pub use crate::agent::AgentHandle;
pub use crate::agent::AgentObserver;
pub use crate::allocations::UnseenAllocations;
pub use crate::containers::ContainerFacts;
pub use crate::containers::ContainerSocket;
pub use crate::containers::KubernetesOptions;
pub use crate::doctor::capabilities;
pub use crate::doctor::kind_checks;
pub use crate::dump::Dump;
pub use crate::dump::DumpOptions;
pub use crate::dump::DumpedFrame;
pub use crate::dump::DumpedThread;
pub use crate::dump::NoStack;
pub use crate::dump::ThreadState;
pub use crate::dump::dump;
pub use crate::error::AgentError;
pub use crate::export::ExportError;
pub use crate::export::Exporter;
pub use crate::export::InProcess;
pub use crate::export::OtlpGrpc;
pub use crate::export::OtlpGrpcOptions;
pub use crate::export::SpoolOptions;
pub use crate::export::Vitals;
pub use crate::filters::ProcessRule;
pub use crate::filters::SampleFilters;
pub use crate::go_heaps::GoHeapError;
pub use crate::kinds::Kind;
pub use crate::kinds::Kinds;
pub use crate::labels::CgroupFacts;
pub use crate::labels::Labeler;
pub use crate::labels::PodContainer;
pub use crate::labels::ProcessFacts;
pub use crate::labels::ServiceRule;
pub use crate::labels::command_line;
pub use crate::labels::parse_cgroup;
pub use crate::labels::program_name;
pub use crate::ledger::DropReason;
pub use crate::ledger::Ledger;
pub use crate::missing_frames::CodeReport;
pub use crate::missing_frames::Explanation;
pub use crate::missing_frames::FrameCause;
pub use crate::missing_frames::FrameCheckOptions;
pub use crate::missing_frames::FrameReport;
pub use crate::missing_frames::Problem;
pub use crate::missing_frames::SampledCode;
pub use crate::missing_frames::SampledFrames;
pub use crate::missing_frames::StoredCode;
pub use crate::missing_frames::StoredEnds;
pub use crate::missing_frames::StoredFrameReport;
pub use crate::missing_frames::check_frames;
pub use crate::missing_frames::check_stored_frames;
pub use crate::missing_frames::explain_drop;
pub use crate::missing_frames::explain_result;
pub use crate::on_demand::ON_DEMAND_PORT;
pub use crate::on_demand::OnDemandError;
pub use crate::on_demand::OnDemandHandle;
pub use crate::on_demand::OnDemandOptions;
pub use crate::on_demand::OnDemandServer;
pub use crate::on_demand::trusted_program;
pub use crate::options::AgentOptions;
pub use crate::options::AgentTargets;
pub use crate::options::RecordOptions;
pub use crate::options::RecordTargets;
pub use crate::record::RecordReport;
pub use crate::record::Recording;
pub use crate::record::record;
pub use crate::scrape::Credentials;
pub use crate::scrape::Cumulative;
pub use crate::scrape::DeltaError;
pub use crate::scrape::EmptyEndpoint;
pub use crate::scrape::FailingEndpoint;
pub use crate::scrape::ProfileReading;
pub use crate::scrape::RelabelAction;
pub use crate::scrape::RelabelError;
pub use crate::scrape::RelabelRule;
pub use crate::scrape::RelabelSpec;
pub use crate::scrape::ScrapeConfigError;
pub use crate::scrape::ScrapeJob;
pub use crate::scrape::ScrapeJobStatus;
pub use crate::scrape::ScrapeScheme;
pub use crate::scrape::ScrapeStatus;
pub use crate::scrape::ScrapedProfile;
pub use crate::scrape::SecretSource;
pub use crate::scrape::StaticTargets;
pub use crate::scrape::Subtracted;
pub use crate::scrape::TargetDiscovery;
pub use crate::scrape::TargetFileError;
pub use crate::scrape::TargetFiles;
pub use crate::scrape::TargetGroup;
pub use crate::scrape::default_profiles;
pub use crate::scrape::parse_target_file;
pub use crate::scrape::parse_target_groups;
pub use crate::scrape::relabel;
pub use crate::short_stacks::ShortStacks;
pub use crate::source::Missing;
pub use crate::status::AgentStatus;
pub use crate::status::CostStatus;
pub use crate::status::DeliveryStatus;
pub use crate::status::ProgramStatus;
pub use crate::status::Quality;
pub use crate::status::SourceStatus;
pub use crate::status::SymbolStatus;
pub use crate::symbolize::event_type;
