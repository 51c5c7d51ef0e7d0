//! A server, asked again and again.

use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::time::Duration;

use candela_formats::ReadOptions;
use candela_model::Profile;
use candela_model::SERVICE_NAME_LABEL;
use serde_json::Value;

use super::kind::Kind;
use super::snapshot::Group;
use super::snapshot::Snapshot;
use super::source::Question;
use super::source::Source;
use crate::args::GlobalArgs;
use crate::args::top::TopArgs;
use crate::commands::client::Client;
use crate::errors::CliError;
use crate::errors::Context;
use crate::errors::ExitStatus;

/// How often the server is asked.
const REFRESH: Duration = Duration::from_secs(2);

/// What is asked of which server.
#[derive(Debug)]
pub(super) struct Asker {
    client: Client,
    selector: String,
    pids: Vec<u32>,
    window: Duration,
}

/// A picture, and the service that its trees are of.
type Picture = (Option<String>, Snapshot);

/// How long the profiles took, seconds: those of the kind that took longest. `None` where none says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Profiled(Option<f64>);

/// A thread that asks, so that the view never waits for a server.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    questions: Sender<Question>,
    answers: Receiver<Picture>,
    asked: Question,
    server: String,
    selector: String,
    window: Duration,
}

// === impl Asker ===

impl Asker {
    pub(super) fn new(
        global: &GlobalArgs,
        arguments: &TopArgs,
        window: Duration,
    ) -> Result<Self, CliError> {
        Ok(Self {
            client: Client::new(global)?,
            selector: arguments.query.clone().unwrap_or_else(|| "{}".to_owned()),
            pids: arguments.pids.clone(),
            // As the server is asked for it.
            window: Duration::from_secs(window.as_secs().max(1)),
        })
    }

    /// The last seconds, as the server has them.
    pub(super) fn ask(&self, group: Option<&str>) -> Result<Snapshot, CliError> {
        let selector = selector_of(&self.selector, group);
        let mut profile = Profile::default();
        let mut groups: Vec<Group> = Vec::new();
        let mut profiled = Profiled::default();
        for kind in Kind::ALL {
            let found = self.profile(kind, &selector)?;
            profile.absorb(&found);
            self.add_groups(kind, &mut groups)?;
            // Of everything: what does not run at times is profiled all the same.
            let from = self.from();
            let parameters = self.parameters(kind, "{}", &from);
            profiled.add(&self.client.get_json("/api/v1/services", &parameters)?);
        }
        let seconds = profiled.0.unwrap_or(self.window.as_secs_f64());
        Ok(Snapshot::new(profile, seconds, groups))
    }

    fn profile(&self, kind: Kind, selector: &str) -> Result<Profile, CliError> {
        let from = self.from();
        let pids = self.pid_filter();
        let mut parameters = self.parameters(kind, selector, &from);
        parameters.extend(pids.as_deref().map(|pids| ("tagfocus", pids)));
        let bytes = self.client.get("/api/v1/pprof", &parameters)?;
        let (mut profile, _) =
            candela_formats::read_pprof(bytes.as_slice(), &ReadOptions::default())
                .or_exit(ExitStatus::Failed, "answer of the server")?;
        profile
            .series
            .retain(|series| series.profile_type.sample_unit == "nanoseconds");
        for series in &mut profile.series {
            // A pprof file does not have the first part of the type's name.
            series.profile_type = kind.profile_type();
        }
        Ok(profile)
    }

    fn add_groups(&self, kind: Kind, groups: &mut Vec<Group>) -> Result<(), CliError> {
        let from = self.from();
        let pids = self.pid_filter();
        let mut parameters = self.parameters(kind, &self.selector, &from);
        parameters.push(("group_by", SERVICE_NAME_LABEL));
        parameters.extend(pids.as_deref().map(|pids| ("tagfocus", pids)));
        let answer = self.client.get_json("/api/v1/series", &parameters)?;
        for series in answer["series"].as_array().into_iter().flatten() {
            let service = series["labels"][SERVICE_NAME_LABEL].as_str();
            let service = service.unwrap_or("(no service)");
            let points = series["points"].as_array().into_iter().flatten();
            let sum: f64 = points.filter_map(|point: &Value| point[1].as_f64()).sum();
            let known = groups.iter().position(|group| group.key == service);
            let position = known.unwrap_or_else(|| {
                groups.push(Group {
                    key: service.to_owned(),
                    name: String::new(),
                    values: [0; 2],
                });
                groups.len() - 1
            });
            groups[position].values[kind.index()] += sum as i64;
        }
        Ok(())
    }

    fn parameters<'a>(
        &self,
        kind: Kind,
        selector: &'a str,
        from: &'a str,
    ) -> Vec<(&'a str, &'a str)> {
        vec![
            ("query", selector),
            ("type", kind.short_name()),
            ("from", from),
            ("to", "now"),
        ]
    }

    fn from(&self) -> String {
        format!("now-{}s", self.window.as_secs().max(1))
    }

    /// Behind a key one of several expressions is enough; each is one of a whole number.
    fn pid_filter(&self) -> Option<String> {
        let pids: Vec<String> = self.pids.iter().map(|pid| format!("^{pid}$")).collect();
        (!pids.is_empty()).then(|| format!("pid={}", pids.join(",")))
    }
}

// === impl Profiled ===

impl Profiled {
    /// Adds what an answer about services says of its kind.
    fn add(&mut self, services: &Value) {
        let milliseconds = services["profiled_ms"].as_f64();
        let seconds = milliseconds.map(|milliseconds| milliseconds / 1e3);
        self.0 = match (self.0, seconds) {
            (Some(known), Some(seconds)) => Some(known.max(seconds)),
            (known, seconds) => known.or(seconds),
        };
    }
}

// === impl RemoteSource ===

impl RemoteSource {
    /// Asks once, so that a wrong address is an error, and then again and again.
    pub(crate) fn start(asker: Asker, server: &str) -> Result<Self, CliError> {
        let first = asker.ask(None)?;
        let (questions, question_receiver) = channel();
        let (answer_sender, answers) = channel();
        let source = Self {
            questions,
            answers,
            asked: Question::default(),
            server: server.trim_end_matches('/').to_owned(),
            selector: asker.selector.clone(),
            window: asker.window,
        };
        std::thread::Builder::new()
            .name("candela-asker".to_owned())
            .spawn(move || ask_on(&asker, first, &question_receiver, &answer_sender))
            .or_exit(ExitStatus::Failed, "cannot start a thread")?;
        Ok(source)
    }
}

impl Source for RemoteSource {
    fn refresh(&mut self, question: &Question) -> Result<Option<Snapshot>, CliError> {
        if self.asked != *question {
            self.asked = question.clone();
            let sent = self.questions.send(question.clone());
            sent.or_exit(ExitStatus::Failed, "the thread that asks has ended")?;
        }
        // What was asked before the service was another one may still come.
        let is_asked = |(group, _): &Picture| *group == self.asked.group;
        let picture = self.answers.try_iter().filter(is_asked).last();
        Ok(picture.map(|(_, snapshot)| snapshot))
    }

    fn url(&self, question: &Question, kind: Kind) -> Option<String> {
        let selector = selector_of(&self.selector, question.group.as_deref());
        let from = format!("now-{}s", self.window.as_secs().max(1));
        let parameters = [
            ("v", "1"),
            ("query", selector.as_str()),
            ("type", kind.short_name()),
            ("from", from.as_str()),
        ];
        let pairs = parameters.map(|(name, value)| format!("{name}={}", percent_encoded(value)));
        Some(format!("{}/?{}", self.server, pairs.join("&")))
    }
}

/// What the thread does, until the view is gone.
fn ask_on(
    asker: &Asker,
    mut last: Snapshot,
    questions: &Receiver<Question>,
    answers: &Sender<Picture>,
) {
    let mut question = Question::default();
    let mut of: Option<String> = None;
    loop {
        if answers.send((of.clone(), last.clone())).is_err() {
            return;
        }
        let before = question.group.clone();
        loop {
            match questions.recv_timeout(REFRESH) {
                Ok(next) => question = next,
                Err(RecvTimeoutError::Timeout) if question.is_paused => continue,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if question.group != before {
                break;
            }
        }
        match asker.ask(question.group.as_deref()) {
            Ok(snapshot) => last = snapshot,
            // A server that is started anew is back soon.
            Err(error) => {
                if of != question.group {
                    last.forget_trees();
                }
                last.note = Some(error.to_string());
            }
        }
        of.clone_from(&question.group);
    }
}

/// A selector that also asks for one service.
fn selector_of(selector: &str, service: Option<&str>) -> String {
    let Some(service) = service else {
        return selector.to_owned();
    };
    let inner = selector.trim().trim_start_matches('{');
    let inner = inner.trim_end_matches('}').trim().trim_end_matches(',');
    let value = service.replace('\\', "\\\\").replace('"', "\\\"");
    let matcher = format!("{SERVICE_NAME_LABEL}=\"{value}\"");
    match inner {
        "" => format!("{{{matcher}}}"),
        inner => format!("{{{inner}, {matcher}}}"),
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(group: Option<&str>, seconds: f64) -> Picture {
        let snapshot = Snapshot::new(Profile::default(), seconds, Vec::new());
        (group.map(str::to_owned), snapshot)
    }

    #[test]
    fn answers_for_another_service_are_not_shown() {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let mut source = RemoteSource {
            questions,
            answers,
            asked: Question::default(),
            server: String::new(),
            selector: "{}".to_owned(),
            window: Duration::from_secs(60),
        };
        let mut seconds_of = |group: Option<&str>| {
            let question = Question {
                group: group.map(str::to_owned),
                is_paused: false,
            };
            let snapshot = source.refresh(&question).expect("an answer or none");
            snapshot.map(|snapshot| snapshot.seconds)
        };
        let send = |picture: Picture| answer.send(picture).expect("somebody listens");
        send(picture(None, 1.0));
        assert_eq!(seconds_of(None), Some(1.0));
        send(picture(None, 2.0));
        assert_eq!(seconds_of(Some("shop")), None, "it is of everything");
        send(picture(Some("shop"), 3.0));
        send(picture(None, 4.0));
        assert_eq!(seconds_of(Some("shop")), Some(3.0));
        send(picture(Some("shop"), 5.0));
        assert_eq!(seconds_of(Some("till")), None);
        let asked: Vec<Option<String>> = asked.try_iter().map(|it: Question| it.group).collect();
        assert_eq!(asked, [Some("shop".to_owned()), Some("till".to_owned())]);
    }

    #[test]
    fn the_time_that_was_profiled_is_that_of_the_longer_kind() {
        let seconds = |milliseconds: &[Option<f64>]| {
            let mut profiled = Profiled::default();
            for profiled_ms in milliseconds {
                profiled.add(&serde_json::json!({"profiled_ms": profiled_ms}));
            }
            profiled.0
        };
        assert_eq!(seconds(&[None, None]), None);
        assert_eq!(seconds(&[Some(9_500.0), None]), Some(9.5));
        assert_eq!(seconds(&[Some(10_000.0), Some(20_000.0)]), Some(20.0));
    }

    #[test]
    fn a_service_joins_the_selector() {
        assert_eq!(selector_of("{}", None), "{}");
        assert_eq!(selector_of("{}", Some("a\"b")), r#"{service_name="a\"b"}"#);
        assert_eq!(
            selector_of(r#"{host="x"}"#, Some("api")),
            r#"{host="x", service_name="api"}"#
        );
    }

    #[test]
    fn addresses_hold_any_selector() {
        assert_eq!(percent_encoded(r#"{a="b c"}"#), "%7Ba%3D%22b%20c%22%7D");
    }
}
