//! The thread that scrapes: it finds targets, starts what is due, and takes what comes back.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::time::Instant;

use candela_formats::Note;
use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Temporality;

use crate::error::AgentError;
use crate::export::ProfileQueue;
use crate::ledger::DropReason;
use crate::scrape::batch::Batch;
use crate::scrape::decode::Scraped;
use crate::scrape::delta::Subtracted;
use crate::scrape::delta::is_total;
use crate::scrape::discovery::StaticTargets;
use crate::scrape::discovery::TargetDiscovery;
use crate::scrape::endpoint::Endpoint;
use crate::scrape::endpoint::endpoints;
use crate::scrape::failure::Failure;
use crate::scrape::failure::FailureReason;
use crate::scrape::fetch::Fetcher;
use crate::scrape::job::ScrapeJob;
use crate::scrape::job::check_jobs;
use crate::scrape::profiles::ProfileReading;
use crate::scrape::progress::Progress;
use crate::scrape::progress::Turnaround;
use crate::scrape::progress::until_place;
use crate::scrape::request;
use crate::scrape::request::Answer;
use crate::scrape::request::Request;
use crate::scrape::request::unix_ns;
use crate::scrape::status::EmptyEndpoint;
use crate::scrape::status::FailingEndpoint;
use crate::scrape::status::MOST_LISTED;
use crate::scrape::status::ScrapeJobStatus;
use crate::scrape::target_files::TargetFiles;
use crate::status::StatusBoard;

/// How often targets are looked for.
const REFRESH: Duration = Duration::from_secs(5);

/// How often the list of what fails is made anew at most: it may be of all endpoints.
const SHOW: Duration = Duration::from_secs(1);

/// How long a stop may go unnoticed.
const TURN: Duration = Duration::from_millis(200);

/// Requests at once. Each is a thread that mostly waits.
const MOST_RUNNING: usize = 256;

/// Endpoints of all jobs.
const MOST_ENDPOINTS: usize = 20_000;

/// Scrapes the targets of some jobs.
#[derive(Debug)]
pub(crate) struct Scraper {
    jobs: Vec<Job>,
    extra_labels: Labels,
    endpoints: HashMap<u128, Progress>,
    due: BTreeSet<(Instant, u128)>,
    running: usize,
    shared: Arc<request::Shared>,
    sender: SyncSender<Answer>,
    answers: Receiver<Answer>,
    batch: Batch,
    board: Arc<StatusBoard>,
    /// Whether what is failing or empty is not what the board shows.
    has_news: bool,
}

#[derive(Debug)]
struct Job {
    job: ScrapeJob,
    fetcher: Arc<Fetcher>,
    discoveries: Vec<Box<dyn TargetDiscovery>>,
}

// === impl Scraper ===

impl Scraper {
    /// # Errors
    /// What is wrong with a job.
    pub(crate) fn new(
        jobs: &[ScrapeJob],
        extra_labels: &Labels,
        profiles: ProfileQueue,
        board: Arc<StatusBoard>,
    ) -> Result<Self, AgentError> {
        check_jobs(jobs)?;
        // Decoded profiles are large, so few wait here.
        let (sender, answers) = sync_channel(1);
        let jobs: Vec<Job> = jobs.iter().map(Job::new).collect::<Result<_, _>>()?;
        for job in &jobs {
            let status = ScrapeJobStatus::default();
            board
                .parts()
                .scrape
                .jobs
                .insert(job.job.name.clone(), status);
        }
        Ok(Self {
            jobs,
            extra_labels: extra_labels.clone(),
            endpoints: HashMap::new(),
            due: BTreeSet::new(),
            running: 0,
            shared: Arc::default(),
            sender,
            answers,
            batch: Batch::new(profiles),
            board,
            has_news: false,
        })
    }

    /// Runs until the flag is set. Requests that are under way then end by themselves, within their
    /// timeouts, and nobody takes what they bring.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        let mut next_refresh = Instant::now();
        let mut next_show = next_refresh;
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= next_refresh {
                self.refresh(now);
                next_refresh = now + REFRESH;
            }
            self.start_due(now);
            if self.batch.due().is_some_and(|due| due <= now) {
                self.batch.flush();
            }
            if self.has_news && now >= next_show {
                self.show_endpoints();
                next_show = now + SHOW;
            }
            let next_due = self.due.first().map(|(due, _)| *due);
            let wakes = [next_due, self.batch.due(), Some(now + TURN)];
            let wake = wakes.into_iter().flatten().min().unwrap_or(now + TURN);
            let timeout = wake.saturating_duration_since(Instant::now());
            if let Ok(answer) = self.answers.recv_timeout(timeout) {
                self.take(answer, Instant::now());
            }
        }
        self.batch.finish();
    }

    /// Looks for targets. What stays keeps its state, also where others come and go.
    fn refresh(&mut self, now: Instant) {
        for position in 0..self.jobs.len() {
            let job = &mut self.jobs[position];
            // Each of them, so that none is skipped once another has changed.
            let changes = job
                .discoveries
                .iter_mut()
                .map(|discovery| discovery.refresh());
            if changes.fold(false, |any, changed| any | changed) {
                self.set_targets(position, now);
            }
        }
    }

    fn set_targets(&mut self, position: usize, now: Instant) {
        let job = &self.jobs[position];
        let mut found = Found::of(position, job);
        let others = self.endpoints.values();
        let others = others
            .filter(|progress| progress.endpoint.job != position)
            .count();
        found.keep_at_most(MOST_ENDPOINTS.saturating_sub(others));
        found.note_problems(&job.job.name, &self.board);
        let interval = job.job.interval;
        let mut wanted: HashMap<u128, Endpoint> = HashMap::new();
        for mut endpoint in found.endpoints {
            for (name, value) in self.extra_labels.iter() {
                endpoint.labels.set_default(name, value);
            }
            wanted.insert(endpoint.key(), endpoint);
        }
        let due = &mut self.due;
        self.endpoints.retain(|key, progress| {
            let stays = progress.endpoint.job != position || wanted.remove(key).is_some();
            if !stays {
                due.remove(&(progress.due, *key));
            }
            stays
        });
        for (key, endpoint) in wanted {
            let place = endpoint.phase_ns(interval);
            let at = now + until_place(place, interval, unix_ns());
            due.insert((at, key));
            self.endpoints.insert(key, Progress::new(endpoint, at));
        }
        self.has_news = true;
    }

    fn start_due(&mut self, now: Instant) {
        while let Some(&(due, key)) = self.due.first() {
            if due > now {
                return;
            }
            self.due.remove(&(due, key));
            let Some(progress) = self.endpoints.get_mut(&key) else {
                continue;
            };
            let interval = self.jobs[progress.endpoint.job].job.interval;
            let place = progress.endpoint.phase_ns(interval);
            let until = until_place(place, interval, unix_ns());
            progress.due = now + until + interval * progress.rest();
            self.due.insert((progress.due, key));
            self.start(key);
        }
    }

    fn start(&mut self, key: u128) {
        let Some(progress) = self.endpoints.get_mut(&key) else {
            return;
        };
        let job = &self.jobs[progress.endpoint.job];
        let is_busy = progress.is_running || self.running >= MOST_RUNNING;
        let request = Request {
            key,
            endpoint: Arc::clone(&progress.endpoint),
            fetcher: Arc::clone(&job.fetcher),
            timeout: job.job.timeout + progress.endpoint.window.unwrap_or_default(),
        };
        let (shared, sender) = (Arc::clone(&self.shared), self.sender.clone());
        let spawned = !is_busy && {
            let name = "candela-request";
            let thread = std::thread::Builder::new().name(name.to_owned());
            let clocks = Arc::clone(&self.board.clocks);
            let work = move || {
                let _counted = clocks.count_this(name);
                request::run(&request, &shared, &sender);
            };
            thread.spawn(work).is_ok()
        };
        if spawned {
            progress.is_running = true;
            self.running += 1;
            return;
        }
        let failure = Failure::new(FailureReason::Busy, "too many requests run already");
        self.count_failure(key, failure);
    }

    fn take(&mut self, answer: Answer, now: Instant) {
        self.running = self.running.saturating_sub(1);
        let Answer {
            key,
            job,
            start_ns,
            end_ns,
            result,
        } = answer;
        let Some(progress) = self.endpoints.get_mut(&key) else {
            // Nobody knows the totals any more that it would be subtracted from.
            let gone = result.map_or_else(|failure| failure.reason, |_| FailureReason::TargetGone);
            self.count_reason(job, gone);
            return;
        };
        progress.is_running = false;
        if let Ok(scraped) = &result
            && progress.silence.heard(&scraped.profile)
        {
            self.has_news = true;
            if let Some(hint) = progress.silence.cause(&progress.endpoint.profile) {
                tracing::info!(url = progress.endpoint.url, hint, "a profile stays empty");
            }
        }
        match result.and_then(|scraped| read_times(scraped, progress, start_ns, end_ns)) {
            Ok((scraped, subtracted)) => self.count_success(key, &scraped, subtracted, now),
            Err(failure) => self.count_failure(key, failure),
        }
    }

    fn count_success(
        &mut self,
        key: u128,
        scraped: &Scraped,
        subtracted: Option<Subtracted>,
        now: Instant,
    ) {
        self.batch.add(&scraped.profile, now);
        let Some(progress) = self.endpoints.get_mut(&key) else {
            return;
        };
        let turnaround = progress.ended(None);
        let position = progress.endpoint.job;
        if turnaround == Turnaround::Works {
            tracing::info!(url = progress.endpoint.url, "is scraped again");
        }
        self.change_status(position, |status| {
            status.scrapes += 1;
            status.first_scrapes += u64::from(subtracted == Some(Subtracted::First));
            status.restarts += u64::from(subtracted == Some(Subtracted::Restarted));
            status.samples += scraped.profile.sample_count() as u64;
            status.bytes += scraped.bytes;
            for Note { code, count, .. } in &scraped.notes {
                *status.notes.entry((*code).to_owned()).or_default() += count;
            }
        });
        self.has_news |= turnaround != Turnaround::None;
    }

    fn count_failure(&mut self, key: u128, failure: Failure) {
        let Some(progress) = self.endpoints.get_mut(&key) else {
            return;
        };
        let turnaround = progress.ended(Some(&failure));
        let position = progress.endpoint.job;
        let url = &progress.endpoint.url;
        let Failure { reason, detail } = failure;
        if turnaround == Turnaround::Fails {
            tracing::warn!(url, reason = reason.name(), detail, "a scrape failed");
        }
        self.count_reason(position, reason);
        self.has_news = true;
    }

    fn count_reason(&self, position: usize, reason: FailureReason) {
        self.board.ledger.add(DropReason::ScrapeFailed, 1);
        self.change_status(position, |status| {
            status.scrapes += 1;
            *status.failures.entry(reason.name().to_owned()).or_default() += 1;
        });
    }

    fn change_status(&self, position: usize, change: impl FnOnce(&mut ScrapeJobStatus)) {
        let name = &self.jobs[position].job.name;
        let mut parts = self.board.parts();
        change(parts.scrape.jobs.entry(name.clone()).or_default());
    }

    /// Lists endpoints that somebody should look at.
    fn show_endpoints(&mut self) {
        let mut counts = vec![0; self.jobs.len()];
        let mut failing: Vec<FailingEndpoint> = Vec::new();
        let mut empty: Vec<EmptyEndpoint> = Vec::new();
        for progress in self.endpoints.values() {
            let position = progress.endpoint.job;
            let job = &self.jobs[position].job.name;
            let url = &progress.endpoint.url;
            let silent = progress.silence.cause(&progress.endpoint.profile);
            if let Some(hint) = silent.filter(|_| empty.len() < MOST_LISTED) {
                empty.push(EmptyEndpoint {
                    job: job.clone(),
                    url: url.clone(),
                    hint: hint.to_owned(),
                });
            }
            let Some(failure) = &progress.failure else {
                continue;
            };
            counts[position] += 1;
            if failing.len() < MOST_LISTED {
                failing.push(FailingEndpoint {
                    job: job.clone(),
                    url: url.clone(),
                    reason: failure.reason.name().to_owned(),
                    detail: failure.detail.clone(),
                    failures: progress.failures_in_a_row,
                });
            }
        }
        failing.sort_by(|left, right| (&left.job, &left.url).cmp(&(&right.job, &right.url)));
        empty.sort_by(|left, right| (&left.job, &left.url).cmp(&(&right.job, &right.url)));
        for (position, count) in counts.into_iter().enumerate() {
            self.change_status(position, |status| status.failing = count);
        }
        let mut parts = self.board.parts();
        parts.scrape.failing = failing;
        parts.scrape.empty = empty;
        self.has_news = false;
    }
}

// === impl Job ===

impl Job {
    fn new(job: &ScrapeJob) -> Result<Self, AgentError> {
        let mut discoveries: Vec<Box<dyn TargetDiscovery>> = Vec::new();
        if !job.static_targets.is_empty() {
            discoveries.push(Box::new(StaticTargets::new(&job.static_targets)));
        }
        if !job.target_files.is_empty() {
            discoveries.push(Box::new(TargetFiles::new(&job.target_files)?));
        }
        Ok(Self {
            fetcher: Arc::new(Fetcher::new(job)?),
            job: job.clone(),
            discoveries,
        })
    }
}

/// What the discoveries of a job know now.
#[derive(Default)]
struct Found {
    endpoints: Vec<Endpoint>,
    targets: u64,
    dropped: u64,
    problems: Vec<String>,
}

// === impl Found ===

impl Found {
    fn of(position: usize, job: &Job) -> Self {
        let mut found = Self::default();
        for discovery in &job.discoveries {
            found.problems.extend(discovery.problems().iter().cloned());
            for labels in discovery.targets() {
                match endpoints(position, &job.job, labels) {
                    Ok(Some(endpoints)) => {
                        found.targets += 1;
                        found.endpoints.extend(endpoints);
                    }
                    Ok(None) => found.dropped += 1,
                    Err(problem) => found.problems.push(problem.to_string()),
                }
            }
        }
        found
    }

    fn keep_at_most(&mut self, most: usize) {
        let count = self.endpoints.len();
        if count > most {
            let problem = format!("{count} profiles to ask for, only {most} are: use more agents");
            self.problems.insert(0, problem);
            self.endpoints.truncate(most);
        }
    }

    /// Shows them, and says them once: this is called when something has changed.
    fn note_problems(&self, job: &str, board: &StatusBoard) {
        let mut parts = board.parts();
        let status = parts.scrape.jobs.entry(job.to_owned()).or_default();
        for problem in self.problems.iter().take(MOST_LISTED) {
            if !status.problems.contains(problem) {
                tracing::warn!(job, problem, "targets are missing");
            }
        }
        status.targets = self.targets;
        status.dropped_targets = self.dropped;
        status.endpoints = self.endpoints.len() as u64;
        status.problems = self.problems.iter().take(MOST_LISTED).cloned().collect();
    }
}

/// Says which times the values of an answer are of, by our clock, as everything else that the agent
/// sends: those of targets differ. Totals become what was added.
fn read_times(
    mut scraped: Scraped,
    progress: &mut Progress,
    start_ns: i64,
    end_ns: i64,
) -> Result<(Scraped, Option<Subtracted>), Failure> {
    let profile = &mut scraped.profile;
    let before_ns = std::mem::replace(&mut progress.answered_ns, 0);
    // A clock that was set back tells no length.
    let since = (before_ns > 0).then_some(before_ns.min(end_ns));
    let mut subtracted = None;
    match progress.endpoint.profile.reading {
        ProfileReading::Moment => set_times(profile, |_| (end_ns, 0)),
        ProfileReading::Window => {
            let elapsed_ns = (end_ns - start_ns).max(0);
            set_times(profile, |series| {
                let said_ns = series.duration_ns;
                let is_possible = (1..=elapsed_ns).contains(&said_ns);
                (start_ns, if is_possible { said_ns } else { elapsed_ns })
            });
        }
        ProfileReading::SinceLast => {
            set_times(profile, |series| {
                let is_added = series.profile_type.temporality() == Temporality::Delta;
                times_since(since.filter(|_| is_added), end_ns)
            });
        }
        ProfileReading::Cumulative => {
            let failure = |error: crate::scrape::delta::DeltaError| {
                Failure::new(FailureReason::NotSubtractable, &error.to_string())
            };
            subtracted = Some(progress.totals.subtract(profile).map_err(failure)?);
            set_times(profile, |series| {
                let is_added = is_total(&series.profile_type);
                times_since(since.filter(|_| is_added), end_ns)
            });
        }
    }
    progress.answered_ns = end_ns;
    Ok((scraped, subtracted))
}

fn set_times(profile: &mut Profile, times: impl Fn(&ProfileSeries) -> (i64, i64)) {
    for series in &mut profile.series {
        (series.start_ns, series.duration_ns) = times(series);
    }
}

/// From the answer before to this one; what is a state is of this moment.
fn times_since(since: Option<i64>, end_ns: i64) -> (i64, i64) {
    match since {
        Some(since_ns) => (since_ns, end_ns - since_ns),
        None => (end_ns, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_targets_that_are_gone_are_counted() {
        let board = Arc::new(StatusBoard::default());
        let (queue, received) = ProfileQueue::for_tests(Arc::clone(&board));
        let jobs = [ScrapeJob::new("a"), ScrapeJob::new("b")];
        let mut scraper =
            Scraper::new(&jobs, &Labels::default(), queue, Arc::clone(&board)).expect("sound jobs");
        let scraped = Scraped {
            profile: Profile::default(),
            notes: Vec::new(),
            bytes: 1,
        };
        let late = Failure::new(FailureReason::Timeout, "late");
        for result in [Ok(scraped), Err(late)] {
            let answer = Answer {
                key: 7,
                job: 1,
                start_ns: 1,
                end_ns: 2,
                result,
            };
            scraper.take(answer, Instant::now());
        }
        assert_eq!(board.ledger.get(DropReason::ScrapeFailed), 2);
        let status = board.parts().scrape.jobs["b"].clone();
        let failures = [("target_gone", 1), ("timeout", 1)];
        let failures = failures.map(|(reason, count)| (reason.to_owned(), count));
        assert_eq!(status.failures, failures.into());
        assert_eq!(status.scrapes, 2);
        drop(received);
    }
}
