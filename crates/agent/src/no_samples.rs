//! The source of a recording in which nothing is sampled: what it has is read at its end.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::collector::Collector;
use crate::collector::SourceWork;
use crate::error::AgentError;
use crate::status::SourceStatus;
use crate::symbolize::Scale;
use crate::windows::WindowId;
use crate::windows::Windows;

/// Takes no samples, and needs no privileges for it.
#[derive(Debug)]
pub(crate) struct NoSamples;

impl Collector for NoSamples {
    fn windows(&self) -> Vec<WindowId> {
        Vec::new()
    }

    /// Nobody asks: there is no window.
    fn scale(&self, _window: WindowId) -> Scale {
        Scale::in_use()
    }

    fn warm_up(&mut self, _stop: &AtomicBool) -> Result<(), AgentError> {
        Ok(())
    }

    fn only_family_of(&mut self, _pid: u32) {}

    fn has_family_left(&self) -> bool {
        false
    }

    fn starts_at(&mut self, _start_ns: u64) -> Result<(), AgentError> {
        Ok(())
    }

    fn collect(&mut self, timeout: Duration, _windows: &mut Windows) -> Result<(), AgentError> {
        std::thread::park_timeout(timeout);
        Ok(())
    }

    fn settle(&mut self, _end_ns: u64, _windows: &mut Windows) -> Result<(), AgentError> {
        Ok(())
    }

    fn sweep(&mut self) {}

    fn status(&mut self) -> SourceStatus {
        SourceStatus::default()
    }

    fn work(&self) -> SourceWork {
        SourceWork::default()
    }
}
