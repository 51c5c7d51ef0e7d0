//! Reading a profile from a file, standard input or an address.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use candela_formats::Format;
use candela_formats::Limits;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_model::Profile;

use crate::args::GlobalArgs;
use crate::args::files::ReadingArgs;
use crate::binaries::read_perf_data_with_binaries;
use crate::commands::client::Client;
use crate::commands::credentials::without_user;
use crate::commands::profiles::TypeChoice;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;
use crate::output;

/// A file of one's own may be larger than what a server takes from anybody.
const LARGEST_INFLATED: usize = 1 << 30;
const MOST_SAMPLES: usize = 100_000_000;

/// What a ZIP archive begins with.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// How many bytes a reader has at once: enough to tell a format by.
const BUFFER_BYTES: usize = 1 << 16;

/// Reads profiles of any format.
pub(crate) struct Input<'a> {
    global: &'a GlobalArgs,
    reading: &'a ReadingArgs,
    format: Option<Format>,
    /// Labels, service and names; the time is that of the file where the profile has none.
    options: ReadOptions,
}

/// What files hold, together.
#[derive(Debug, Default)]
pub(crate) struct FileProfile {
    pub(crate) profile: Profile,
    /// The sample type that the writer of the first file wants to be shown first.
    pub(crate) default_sample_type: Option<String>,
    /// Free text of pprof.
    pub(crate) comments: Vec<String>,
}

impl FileProfile {
    /// What a command shows of it.
    pub(crate) fn choice<'a>(&'a self, asked: Option<&'a str>) -> TypeChoice<'a> {
        TypeChoice {
            asked,
            writers: self.default_sample_type.as_deref(),
        }
    }
}

impl<'a> Input<'a> {
    pub(crate) fn new(global: &'a GlobalArgs, reading: &'a ReadingArgs) -> Self {
        let limits = Limits {
            max_inflated_bytes: LARGEST_INFLATED,
            max_samples: MOST_SAMPLES,
            ..Limits::default()
        };
        Self {
            global,
            reading,
            format: None,
            options: ReadOptions {
                limits,
                ..ReadOptions::default()
            },
        }
    }

    /// The same for input of a format that is told.
    pub(crate) fn of_format(mut self, name: Option<&str>) -> Result<Self, CliError> {
        let Some(name) = name else {
            return Ok(self);
        };
        let format = Format::from_name(name).filter(|format| format.is_readable());
        if format.is_none() {
            let readable = Format::all().filter(|format| format.is_readable());
            let readable: Vec<&str> = readable.map(Format::name).collect();
            let readable = readable.join(", ");
            return Err(CliError::usage(format!(
                "--from {name:?} is none of {readable}"
            )));
        }
        self.format = format;
        Ok(self)
    }

    /// The same with labels of every series and a service for those that name none.
    #[cfg(feature = "server")]
    pub(crate) fn with(mut self, set: impl FnOnce(&mut ReadOptions)) -> Self {
        set(&mut self.options);
        self
    }

    /// What is in the sources, together.
    pub(crate) fn read_all<S: AsRef<str>>(&self, sources: &[S]) -> Result<FileProfile, CliError> {
        let mut merged = FileProfile::default();
        for source in sources {
            let (profile, report) = self.read(source.as_ref())?;
            if sources.len() == 1 {
                merged.profile = profile;
            } else {
                merged.profile.absorb(&profile);
            }
            let wanted = &mut merged.default_sample_type;
            *wanted = wanted.take().or(report.default_sample_type);
            for comment in report.comments {
                if !merged.comments.contains(&comment) {
                    merged.comments.push(comment);
                }
            }
        }
        if merged.profile.sample_count() == 0 {
            return Err(CliError::no_data("no data: the files have no samples"));
        }
        Ok(merged)
    }

    /// A file, `-` for standard input, or an address.
    fn read(&self, source: &str) -> Result<(Profile, Report), CliError> {
        if source == "-" {
            return self.read_stream("standard input", io::stdin().lock(), SystemTime::now());
        }
        if is_address(source) {
            let bytes = Client::get_address(source)?;
            return self.read_stream(&shown_source(source), &bytes[..], SystemTime::now());
        }
        let path = Path::new(source);
        if source.starts_with('{') && !path.try_exists().unwrap_or(true) {
            return Err(CliError::usage(format!(
                "{source} is no file; `candela query` takes a selector with --query"
            )));
        }
        let metadata = fs::metadata(path).or_exit(ExitStatus::Failed, source)?;
        if metadata.is_dir() {
            return Err(CliError::failed(format!("{source}: it is a folder")));
        }
        let written = metadata.modified().unwrap_or_else(|_| SystemTime::now());
        let file = File::open(path).or_exit(ExitStatus::Failed, source)?;
        self.read_stream(source, file, written)
    }

    fn read_stream(
        &self,
        what: &str,
        mut input: impl Read,
        written: SystemTime,
    ) -> Result<(Profile, Report), CliError> {
        let mut start = Vec::new();
        // A pipe may give few bytes at once, so that one look into a buffer would not do.
        let mut first_bytes = input.by_ref().take(BUFFER_BYTES as u64);
        first_bytes
            .read_to_end(&mut start)
            .or_exit(ExitStatus::Failed, what)?;
        if start.starts_with(ZIP_MAGIC) {
            // What an archive holds stands at its end.
            let mut rest = input.by_ref().take(LARGEST_INFLATED as u64);
            rest.read_to_end(&mut start)
                .or_exit(ExitStatus::Failed, what)?;
            let inflated = candela_formats::inflate(&start, LARGEST_INFLATED);
            start = inflated.or_exit(ExitStatus::Failed, what)?.into_owned();
        }
        let format = match self.format {
            Some(format) => format,
            None => detected(what, &start)?,
        };
        let reader = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(input));
        let options = ReadOptions {
            now_ns: nanoseconds(written),
            ..self.options.clone()
        };
        let read = match format {
            // A recording of addresses: what they are called is in files of this machine.
            Format::PerfData => read_perf_data_with_binaries(reader, &options),
            _ => candela_formats::read(format, reader, &options),
        };
        let (profile, mut report) = read.or_exit(ExitStatus::Failed, what)?;
        self.tell(what, &report)?;
        // Other formats have the command line there, which may hold secrets and is not meant to be passed on.
        if format != Format::Pprof {
            report.comments.clear();
        }
        Ok((profile, report))
    }

    /// Says what was repaired or left out; a strict reading ends there.
    fn tell(&self, what: &str, report: &Report) -> Result<(), CliError> {
        let notes = report.notes.iter().map(ToString::to_string);
        let refused = report.rejected.iter().map(ToString::to_string);
        let lines: Vec<String> = notes.chain(refused).collect();
        if self.reading.strict && !lines.is_empty() {
            return Err(CliError::failed(format!(
                "{what}: refused with --strict: {}",
                lines.join("; ")
            )));
        }
        for line in lines.iter().filter(|_| !self.global.quiet) {
            output::note(&format!("{what}: {line}"));
        }
        Ok(())
    }
}

/// Whether a source is fetched over HTTP.
pub(crate) fn is_address(source: &str) -> bool {
    source.starts_with("http://") || source.starts_with("https://")
}

/// A source as it may be shown to others: an address without its user and its query.
pub(crate) fn shown_source(source: &str) -> String {
    if !is_address(source) {
        return source.to_owned();
    }
    let shown = without_user(source);
    let end = shown.find(['?', '#']).unwrap_or(shown.len());
    shown[..end].to_owned()
}

fn detected(what: &str, first_bytes: &[u8]) -> Result<Format, CliError> {
    if first_bytes.is_empty() {
        return Err(CliError::failed(format!("{what}: it is empty")));
    }
    if let Some(format) = candela_formats::detect(first_bytes) {
        return Ok(format);
    }
    if let Some(refusal) = candela_formats::refusal(first_bytes) {
        return Err(CliError::failed(format!("{what}: {refusal}")));
    }
    Err(CliError::failed(format!(
        "{what}: no profile format that can be read; `candela formats` lists them, and `candela \
         convert --from` names one"
    )))
}

/// Since the Unix epoch.
fn nanoseconds(time: SystemTime) -> i64 {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}
