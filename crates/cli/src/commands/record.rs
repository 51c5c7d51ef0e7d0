//! `candela record`: samples now, into a file, a server or a table.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytesize::ByteSize;
use candela_agent::DropReason;
use candela_agent::ExportError;
use candela_agent::Exporter;
use candela_agent::Kinds;
use candela_agent::OtlpGrpc;
use candela_agent::RecordOptions;
use candela_agent::RecordTargets;
use candela_agent::Recording;
use candela_agent::Wakers;
use candela_formats::Format;
use candela_formats::PprofOptions;
use candela_formats::Report;
use candela_formats::WriteOptions;
use candela_formats::count_samples;
use candela_model::Profile;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;

use super::preload;
use super::process_counts;
use super::profiles::TypeChoice;
use super::profiles::html_options;
use super::profiles::output_format;
use super::profiles::tell_cut;
use super::profiles::unasked_type;
use super::record_kinds;
use super::record_kinds::Kind;
use super::sample_filters;
use super::sampling;
use crate::args::GlobalArgs;
use crate::args::record::RecordArgs;
use crate::args::record::WakersArg;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// What a recording was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// What ran already.
    Running,
    /// A command that runs on.
    Command,
    EndedCommand,
}

/// What somebody hears who asks for stacks as of perf.
const STACKS_NOTE: &str = "note: stacks are always taken, of every program, whatever it was compiled with: -g and --call-graph change nothing";

/// How long a recording without a command takes unless told otherwise.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

pub(crate) fn run(global: &GlobalArgs, arguments: &RecordArgs) -> Result<ExitCode, CliError> {
    // Everything that can be refused is refused before anything is sampled.
    let format = output_format(arguments.format.as_deref(), arguments.output.as_deref())?;
    let mut kinds = record_kinds::parse(&arguments.kinds)
        .map_err(|error| CliError::usage(format!("-e {error}")))?;
    let events =
        record_kinds::events(&kinds).map_err(|error| CliError::usage(format!("-e {error}")))?;
    let is_command = !arguments.command.is_empty();
    let settings = super::settings(global, Vec::new())?;
    let exporter = server_exporter(global)?;
    let stop = super::signals::stop_signal()?;
    let duration = match (arguments.duration, is_command) {
        (Some(duration), _) => Some(duration),
        (None, true) => None,
        (None, false) => Some(DEFAULT_DURATION),
    };
    let interval = match kinds.contains(&Kind::ALLOC) && is_command {
        true => Some(preload::interval(&super::environment())?),
        false => None,
    };
    if kinds.contains(&Kind::ALLOC) && !global.quiet {
        preload::note_unseen(arguments.command.first());
    }
    let sampled = record_kinds::to_agent(&kinds);
    if arguments.wakers.is_some() && !has_wakers(sampled) && !global.quiet {
        output::note("note: --wakers is about waits: add -e off-cpu, wall or lock");
    }
    if (arguments.with_stacks || arguments.call_graph.is_some()) && !global.quiet {
        output::note(STACKS_NOTE);
    }
    if arguments.min_block.is_some() && !has_waits(sampled) && !global.quiet {
        output::note("note: --min-block is about waits: add -e off-cpu, wall, lock or runq");
    }
    let mut agent = sampling::options(&settings)?;
    match arguments.wakers {
        None => {}
        Some(WakersArg::Name) => agent.wakers = Wakers::Names,
        Some(WakersArg::Stack) => agent.wakers = Wakers::Stacks,
    }
    if let Some(min_block) = arguments.min_block {
        agent.min_block_time = min_block;
    }
    let options = RecordOptions {
        rate_hz: arguments.rate,
        kinds: sampled,
        inseparable: record_kinds::inseparable(&kinds),
        events,
        tell: match global.quiet {
            true => |_| {},
            false => |missing| output::note(&missing.to_string()),
        },
        duration,
        stop: stop.flag(),
        filters: sample_filters::of_flags(&arguments.include, &arguments.exclude)?,
        agent,
        ..RecordOptions::new(targets(arguments)?)
    };
    let progress = Progress::start(global, duration, is_command);
    let recorded = candela_agent::record(options, || progress.begin());
    drop(progress);
    let mut recording = recorded.map_err(|error| sampling::failure(&error))?;
    record_kinds::retain_recorded(&mut kinds, &recording.report.missing);
    record_kinds::add_wall(&mut recording.profile, &kinds);
    let was_interrupted = stop.flag().load(Ordering::SeqCst);
    if let Some(directory) = recording.library_left.as_ref().filter(|_| !global.quiet) {
        output::note(&format!(
            "note: programs of the command still run, so that {} stays; a later recording of allocations removes it",
            directory.display()
        ));
    }

    if recording.profile.sample_count() > 0 {
        deliver(global, arguments, format, &recording, &kinds, exporter)?;
        return Ok(exit_code(&recording));
    }
    // A file that was asked for is there, and is not the one of last week.
    if let Some(path) = file_of(arguments) {
        let format = format.unwrap_or(Format::Text);
        for mut result in record_kinds::results(&recording.profile, &kinds, format) {
            let (bytes, _) = render(format, &mut result.profile, global.limit)?;
            output::write_file(&result.path(path, format), &bytes)?;
        }
    }
    let subject = match (is_command, recording.exit_status) {
        (false, _) => Subject::Running,
        (true, None) => Subject::Command,
        (true, Some(_)) => Subject::EndedCommand,
    };
    let count = |reason| recording.report.count(reason);
    let reason = if count(DropReason::ExcludedByRule) > 0 {
        "no samples: --include and --exclude leave all of them out".to_owned()
    } else if let Some(short_waits) = short_waits(&recording) {
        format!("no samples: {short_waits} left out")
    } else {
        why_empty(&kinds, subject, interval)
    };
    if is_command {
        if !global.quiet {
            output::note(&reason);
        }
        return Ok(exit_code(&recording));
    }
    if was_interrupted {
        return Err(CliError::new(
            ExitStatus::Interrupted,
            "interrupted before there was a sample",
        ));
    }
    Err(CliError::no_data(reason))
}

/// Whether samples of any of these kinds tell who woke their threads.
fn has_wakers(kinds: Kinds) -> bool {
    kinds.has(candela_agent::Kind::OffCpu) || kinds.has(candela_agent::Kind::Lock)
}

fn has_waits(kinds: Kinds) -> bool {
    has_wakers(kinds) || kinds.has(candela_agent::Kind::RunQueue)
}

/// Why there is no sample, for people. `interval` is that of a command's allocations, bytes.
fn why_empty(kinds: &[Kind], subject: Subject, interval: Option<u64>) -> String {
    let is_cpu = kinds == [Kind::CPU];
    if let Some(interval) = interval.filter(|_| kinds == [Kind::ALLOC]) {
        let size = ByteSize(interval.max(1));
        return format!(
            "no samples: programs of the command allocated too little by malloc (a sample stands for {size} on \
             average), or are none whose allocations are seen"
        );
    }
    let reason = match (subject, is_cpu) {
        (Subject::Command | Subject::EndedCommand, true) => "the command used too little CPU time",
        (Subject::EndedCommand, false) => "nothing of this happened before the command ended",
        (Subject::Running, true) => "nothing of this ran on a CPU while recording",
        (Subject::Running | Subject::Command, false) => "nothing of this happened while recording",
    };
    format!("no samples: {reason}")
}

/// The file that the result goes to; none when it goes to standard output.
fn file_of(arguments: &RecordArgs) -> Option<&Path> {
    let path = arguments.output.as_deref()?;
    (path != Path::new("-")).then_some(path)
}

/// The recording in a format: with all times, which only a recording has.
fn render(
    format: Format,
    profile: &mut Profile,
    limit: usize,
) -> Result<(Vec<u8>, Report), CliError> {
    let shown = unasked_type(profile, None);
    if format == Format::Pprof {
        count_samples(profile);
    }
    let options = WriteOptions {
        limit,
        pprof: PprofOptions {
            keep_times: true,
            default_sample_type: shown.map(|it| it.sample_type),
            ..PprofOptions::default()
        },
        html: html_options(),
        ..WriteOptions::default()
    };
    let mut bytes = Vec::new();
    let report = candela_formats::write(format, profile, &mut bytes, &options)
        .or_exit(ExitStatus::Failed, "result")?;
    Ok((bytes, report))
}

fn targets(arguments: &RecordArgs) -> Result<RecordTargets, CliError> {
    if let Some((program, rest)) = arguments.command.split_first() {
        let mut command = Command::new(program);
        command.args(rest);
        return Ok(RecordTargets::Command(command));
    }
    if !arguments.pids.is_empty() {
        return Ok(RecordTargets::Pids(arguments.pids.clone()));
    }
    if let Some(path) = &arguments.cgroup {
        return Ok(RecordTargets::Cgroup(path.clone()));
    }
    if arguments.all {
        return Ok(RecordTargets::All);
    }
    Err(CliError::usage(
        "nothing to record: give -a for the whole host, -p PID, --cgroup PATH, or -- CMD",
    ))
}

fn server_exporter(global: &GlobalArgs) -> Result<Option<OtlpGrpc>, CliError> {
    let Some(server) = &global.server else {
        return Ok(None);
    };
    sampling::exporter(global, server).map(Some)
}

fn deliver(
    global: &GlobalArgs,
    arguments: &RecordArgs,
    format: Option<Format>,
    recording: &Recording,
    kinds: &[Kind],
    exporter: Option<OtlpGrpc>,
) -> Result<(), CliError> {
    let shown = format.unwrap_or(Format::Text);
    let mut files = Vec::new();
    for mut result in record_kinds::results(&recording.profile, kinds, shown) {
        let is_file = file_of(arguments).is_some();
        // On a terminal an empty table says nothing; a file that was asked for is there.
        if !is_file && result.profile.sample_count() == 0 {
            continue;
        }
        let (bytes, report) = render(shown, &mut result.profile, global.limit)?;
        for note in report.notes.iter().filter(|_| !global.quiet) {
            output::note(&format!("note: {note}"));
        }
        match file_of(arguments) {
            Some(path) => {
                let path = result.path(path, shown);
                output::write_file(&path, &bytes)?;
                files.push(path.display().to_string());
            }
            None => print(arguments, format, &bytes)?,
        }
        tell_cut(global, &result.profile, TypeChoice::default(), shown);
    }
    if shown == Format::Text && file_of(arguments).is_none() {
        let counts = process_counts::text(&recording.profile, kinds, global.limit);
        if !counts.is_empty() {
            print(arguments, format, counts.as_bytes())?;
        }
    }
    summarize(global, recording, &files);
    let Some(mut exporter) = exporter else {
        return Ok(());
    };
    let exported = exporter.export(&recording.profile);
    exported.map_err(|error| export_failure(&exporter.name(), &error))
}

fn print(arguments: &RecordArgs, format: Option<Format>, bytes: &[u8]) -> Result<(), CliError> {
    if format == Some(Format::Pprof) || format == Some(Format::Otlp) {
        output::refuse_binary_on_terminal("this format")?;
    }
    // A command's own output stays apart from ours: its table goes to standard error.
    let is_table_of_command = format.is_none() && !arguments.command.is_empty();
    if is_table_of_command {
        output::note(String::from_utf8_lossy(bytes).trim_end());
        return Ok(());
    }
    output::print(bytes)
}

/// A server that does not want a profile was reached.
fn export_failure(server: &str, error: &ExportError) -> CliError {
    let status = match error {
        ExportError::Unavailable { .. } => ExitStatus::Unreachable,
        ExportError::NotAllowed { .. } => ExitStatus::Permission,
        ExportError::Rejected { .. } | ExportError::PartlyRejected { .. } => ExitStatus::Failed,
    };
    CliError::new(status, format!("server {server}: {error}"))
}

/// One line on how good the recording is.
fn summarize(global: &GlobalArgs, recording: &Recording, files: &[String]) {
    if global.quiet {
        return;
    }
    let report = &recording.report;
    let seconds = report.duration_ns as f64 / 1e9;
    let shortcomings = [
        (report.lost_samples(), "samples lost"),
        (
            report.count(DropReason::FrameUnnamed),
            "frames without a name",
        ),
    ];
    let mut losses: String = shortcomings
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    if let Some(short_waits) = short_waits(recording) {
        losses.push_str(&format!(", {short_waits} left out"));
    }
    let place = match files {
        [] => String::new(),
        files => format!(" in {}", files.join(", ")),
    };
    // Heaps are read, not sampled: their stacks are whole, and none of them came from the kernel.
    if report.quality.samples == 0 {
        let stacks = recording.profile.sample_count();
        output::note(&format!(
            "{stacks} entries of heaps in {seconds:.1} s{losses}{place}"
        ));
        return;
    }
    let sureness = match is_cpu_alone(&recording.profile) {
        true => sureness(report.quality.samples),
        false => String::new(),
    };
    output::note(&format!(
        "{} samples in {seconds:.1} s{sureness}, {:.1} % of stacks complete{losses}{place}",
        report.quality.samples,
        report.quality.complete_share() * 100.0,
    ));
}

/// Whether each sample is worth the same, so that shares are counted in samples.
fn is_cpu_alone(profile: &Profile) -> bool {
    let mut series = profile.series.iter();
    series.all(|series| series.profile_type.name == "process_cpu")
}

/// Within what a share that is found to be a tenth lies of the truth, 95 times of 100: 1.96 standard errors of a
/// binomial distribution.
fn sureness(samples: u64) -> String {
    let error = (0.1 * 0.9 / samples as f64).sqrt() * 1.96;
    format!(" (10 % is 10 ± {:.1} %)", error * 100.0)
}

/// Waits that were shorter than somebody wanted to see, and what they add up to.
fn short_waits(recording: &Recording) -> Option<String> {
    let report = &recording.report;
    let count = report.count(DropReason::ShortWait);
    let time = Duration::from_nanos(report.count(DropReason::ShortWaitTime));
    (count > 0).then(|| format!("{count} short waits of {time:.1?} in all"))
}

/// The command's own status, as a shell tells it; else success.
fn exit_code(recording: &Recording) -> ExitCode {
    let Some(status) = recording.exit_status else {
        return ExitCode::SUCCESS;
    };
    let signalled = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signalled).unwrap_or(1);
    ExitCode::from(u8::try_from(code & 0xff).expect("masked to eight bits"))
}

/// A bar on a terminal while samples are taken.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn start(global: &GlobalArgs, duration: Option<Duration>, is_command: bool) -> Self {
        // A command writes to the same terminal.
        if global.quiet || is_command || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        bar.set_prefix(format!("{:?}", duration.unwrap_or_default()));
        bar.set_message("reading the programs that run");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    /// The duration begins.
    fn begin(&self) {
        let Some(bar) = &self.0 else {
            return;
        };
        let template = "{spinner} recording, {elapsed} of {prefix}, Ctrl-C ends early";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.reset_elapsed();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use candela_formats::ReadOptions;
    use candela_model::Sample;

    use super::*;

    #[test]
    fn shares_are_as_sure_as_samples_are_many() {
        assert_eq!(sureness(400), " (10 % is 10 ± 2.9 %)");
        assert_eq!(sureness(10_000), " (10 % is 10 ± 0.6 %)");
    }

    #[test]
    fn a_recording_without_samples_is_written_in_every_format() {
        for format in Format::all() {
            let mut results = record_kinds::results(&Profile::default(), &[Kind::CPU], format);
            let mut profile = results.remove(0).profile;
            // A page needs the window, which not every build has.
            let has_place = format != Format::Html || html_options().template.is_some();
            if format.is_writable() && has_place {
                let written = render(format, &mut profile, 30);
                assert!(written.is_ok(), "{format}: {:?}", written.err());
            }
        }
    }

    #[test]
    fn the_reason_for_no_samples_is_true_of_what_was_recorded() {
        let command = why_empty(&[Kind::ALLOC], Subject::Command, Some(512 * 1024));
        assert!(
            command.contains("512.0 KiB") && !command.contains("ended"),
            "{command}"
        );
        let other = [Kind::CPU, Kind::ALLOC];
        let still_running = why_empty(&other, Subject::Command, Some(512 * 1024));
        assert!(!still_running.contains("ended"), "{still_running}");
        let ended = why_empty(&other, Subject::EndedCommand, Some(512 * 1024));
        assert!(ended.contains("before the command ended"), "{ended}");
        let running = why_empty(&[Kind::CPU], Subject::Running, None);
        assert!(running.contains("ran on a CPU"), "{running}");
    }

    #[test]
    fn times_are_kept_in_pprof() {
        let mut results = record_kinds::results(&Profile::default(), &[Kind::CPU], Format::Pprof);
        let mut profile = results.remove(0).profile;
        let series = &mut profile.series[0];
        series.start_ns = 1_000_000_000;
        series.duration_ns = 1_000_000_000;
        for time_ns in [1_100_000_000, 1_200_000_000] {
            let sample = Sample::new(candela_model::StackId::default(), 5);
            series.samples.push(Sample { time_ns, ..sample });
        }
        let (bytes, _) = render(Format::Pprof, &mut profile, 30).expect("written");
        let read = candela_formats::read_pprof(bytes.as_slice(), &ReadOptions::default());
        let (read, _) = read.expect("a profile");
        let mut times: Vec<i64> = read.series[0].samples.iter().map(|s| s.time_ns).collect();
        times.sort_unstable();
        assert_eq!(times, [1_100_000_000, 1_200_000_000]);
    }

    #[test]
    fn only_a_server_that_is_away_is_unreachable() {
        let reason = || "why".to_owned();
        let cases = [
            (
                ExportError::Unavailable { reason: reason() },
                ExitStatus::Unreachable,
            ),
            (
                ExportError::NotAllowed { reason: reason() },
                ExitStatus::Permission,
            ),
            (
                ExportError::Rejected { reason: reason() },
                ExitStatus::Failed,
            ),
            (
                ExportError::PartlyRejected {
                    series: 1,
                    reason: reason(),
                },
                ExitStatus::Failed,
            ),
        ];
        for (error, status) in cases {
            assert_eq!(export_failure("s", &error).status, status, "{error}");
        }
    }
}
