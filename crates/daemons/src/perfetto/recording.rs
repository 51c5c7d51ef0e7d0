//! The work of a daemon that takes snapshots: who wants one, when it is whole, and where it goes.

use std::io::Write;
use std::time::Duration;

use candela_fleet::trace_config::SnapshotTrigger;

use crate::daemon::DaemonContext;
use crate::daemon::SnapshotAnswer;
use crate::error::DaemonError;
use crate::error::OutboxError;
use crate::perfetto::engine::TraceEngine;
use crate::perfetto::engine::WantedSnapshot;
use crate::perfetto::trigger_port::PortKeeper;
use crate::perfetto::verdict::judge;

const SUFFIX: &str = "perfetto-trace.pb";

/// How late a trigger is noticed at most.
const POLL: Duration = Duration::from_millis(100);

/// What a recording goes by.
#[derive(Debug)]
pub(crate) struct RecordingOptions<'daemon> {
    pub(crate) trigger: &'daemon SnapshotTrigger,
    /// Whether a snapshot without CPU samples is none.
    pub(crate) wants_samples: bool,
    /// Between snapshots that nobody asks for.
    pub(crate) interval: Option<Duration>,
    /// How long a snapshot waits, beyond the delay of its trigger, until it is taken as it is.
    pub(crate) patience: Duration,
}

/// An engine at work.
pub(crate) struct Recording<'daemon> {
    options: RecordingOptions<'daemon>,
    context: &'daemon DaemonContext,
    engine: Box<dyn TraceEngine>,
    port: Option<PortKeeper>,
    is_started: bool,
    /// When the next snapshot is taken that nobody asks for, since boot.
    next: Option<Duration>,
    /// Those who wait for the engine.
    asked: Vec<Option<SnapshotAnswer>>,
    dues: Vec<Due>,
    /// How many snapshots were triggered.
    count: u64,
    /// Why the last snapshot is lost.
    lost: Option<String>,
    told: Option<String>,
}

/// A snapshot that was triggered.
struct Due {
    wanted: WantedSnapshot,
    /// When it is taken whatever is in it, since boot.
    at_last: Duration,
    answer: Option<SnapshotAnswer>,
}

impl<'daemon> Recording<'daemon> {
    pub(crate) fn new(
        options: RecordingOptions<'daemon>,
        context: &'daemon DaemonContext,
        engine: Box<dyn TraceEngine>,
        port: Option<PortKeeper>,
    ) -> Self {
        Self {
            options,
            context,
            engine,
            port,
            is_started: false,
            next: None,
            asked: Vec::new(),
            dues: Vec::new(),
            count: 0,
            lost: None,
            told: None,
        }
    }

    /// Takes snapshots until the daemon is stopped.
    ///
    /// # Errors
    /// When the engine cannot go on.
    pub(crate) fn run(mut self) -> Result<(), DaemonError> {
        let mut ended = Ok(());
        while ended.is_ok() && !self.context.stop.is_set() {
            self.tell_start();
            if let Some(port) = &mut self.port {
                port.keep(self.context.clock.monotonic());
            }
            ended = self.engine.turn(POLL);
            self.hear();
            self.trigger();
            self.take_those_that_are_whole();
            self.tell_problems();
        }
        let reason = match &ended {
            Ok(()) => "the daemon ends; ask again when it runs".to_owned(),
            Err(error) => error.to_string(),
        };
        let triggered = self.dues.into_iter().map(|due| due.answer);
        for answer in self.asked.into_iter().chain(triggered).flatten() {
            answer(Err(reason.clone()));
        }
        ended.and(self.engine.finish())
    }

    fn tell_start(&mut self) {
        if self.is_started || !self.engine.is_recording() {
            return;
        }
        self.is_started = true;
        (self.context.started)();
        // With it whatever was told before is history.
        self.told = None;
        let now = self.context.clock.monotonic();
        self.next = self.options.interval.map(|interval| now + interval);
    }

    /// Who wants a snapshot: at the port, of the server, or because it is time.
    fn hear(&mut self) {
        while let Some(answer) = self.port.as_ref().and_then(PortKeeper::next) {
            self.asked.push(Some(answer));
        }
        while let Ok(request) = self.context.requests.try_recv() {
            self.asked.push(Some(request.answer));
        }
        let now = self.context.clock.monotonic();
        if let (Some(at), Some(interval)) = (self.next, self.options.interval)
            && now >= at
        {
            self.asked.push(None);
            // Those that were missed, because the machine slept, are not made up for.
            let regular = at + interval;
            self.next = Some(if regular > now {
                regular
            } else {
                now + interval
            });
        }
    }

    /// Triggers what was asked for, once the engine records.
    fn trigger(&mut self) {
        if !self.engine.is_recording() {
            return;
        }
        for answer in std::mem::take(&mut self.asked) {
            let now = self.context.clock.unix().as_nanos();
            let delay = Duration::from_millis(self.options.trigger.stop_delay_ms.into());
            let wanted = WantedSnapshot {
                number: self.count,
                triggered_ns: u64::try_from(now).unwrap_or(u64::MAX),
                until_ns: i64::try_from(now + delay.as_nanos()).unwrap_or(i64::MAX),
            };
            self.count += 1;
            match self.engine.trigger(&wanted) {
                Ok(()) => self.dues.push(Due {
                    wanted,
                    at_last: self.context.clock.monotonic() + delay + self.options.patience,
                    answer,
                }),
                Err(error) => self.settle(Err(error), answer),
            }
        }
    }

    fn take_those_that_are_whole(&mut self) {
        let now = self.context.clock.monotonic();
        let engine = &self.engine;
        let is_ripe = |due: &mut Due| engine.is_whole(&due.wanted) || now >= due.at_last;
        for due in self.dues.extract_if(.., is_ripe).collect::<Vec<_>>() {
            let taken = self.take(&due.wanted);
            self.settle(taken, due.answer);
        }
    }

    fn take(&mut self, wanted: &WantedSnapshot) -> Result<String, DaemonError> {
        let packets = self.engine.snapshot(wanted)?;
        judge(
            &packets,
            &self.options.trigger.name,
            self.options.wants_samples,
        )?;
        let outbox = &self.context.outbox;
        let mut file = outbox.begin()?;
        let path = outbox.root().to_owned();
        let written = file.write_all(&packets);
        written.map_err(|source| OutboxError::File { path, source })?;
        let seconds = i64::try_from(wanted.triggered_ns / 1_000_000_000).unwrap_or(i64::MAX);
        Ok(file.publish(seconds, SUFFIX)?)
    }

    fn settle(&mut self, taken: Result<String, DaemonError>, answer: Option<SnapshotAnswer>) {
        self.lost = taken.as_ref().err().map(ToString::to_string);
        if let Err(error) = &taken {
            tracing::error!(%error, "a snapshot is lost");
        }
        if let Some(answer) = answer {
            answer(taken.map_err(|error| error.to_string()));
        }
    }

    /// Tells what does not work although the daemon runs, when it has changed: nobody may have asked for a snapshot
    /// that is lost.
    fn tell_problems(&mut self) {
        let port = self.port.as_ref().and_then(PortKeeper::problem);
        let problems = [port, self.lost.as_deref()];
        let problems: Vec<&str> = problems.into_iter().flatten().collect();
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        if problem != self.told {
            self.told.clone_from(&problem);
            (self.context.notice)(problem);
        }
    }
}
