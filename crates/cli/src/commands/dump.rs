//! `candela dump`: what each thread of a process does now.

use std::process::ExitCode;

use candela_agent::AgentOptions;
use candela_agent::Dump;
use candela_agent::DumpOptions;
use candela_agent::DumpedFrame;
use candela_agent::DumpedThread;
use candela_agent::NoStack;
use candela_agent::ThreadState;
use serde_json::Value;
use serde_json::json;

use super::sampling;
use super::signals;
use crate::args::GlobalArgs;
use crate::args::dump::DumpArgs;
use crate::args::dump::DumpFormat;
use crate::errors::CliError;
use crate::errors::ExitStatus;
use crate::output;

/// Threads without a stack.
struct Lack {
    /// Whether no thread has one.
    is_all: bool,
    error: CliError,
}

pub(crate) fn run(global: &GlobalArgs, arguments: &DumpArgs) -> Result<ExitCode, CliError> {
    let settings = super::settings(global, Vec::new())?;
    let stop = signals::stop_signal()?;
    let options = DumpOptions {
        pid: arguments.pid,
        stop: stop.flag(),
        agent: AgentOptions {
            // Files that would have to be fetched first come too late for now.
            debuginfod_urls: Vec::new(),
            ..sampling::options(&settings)?
        },
    };
    let dump = candela_agent::dump(options).map_err(|error| sampling::failure(&error))?;
    match arguments.format {
        DumpFormat::Text => output::print_text(&text_of(&dump))?,
        DumpFormat::Json => output::print_json(&json_of(&dump))?,
    }
    let Some(lack) = lack_of_stacks(&dump) else {
        return Ok(ExitCode::SUCCESS);
    };
    if lack.is_all {
        return Err(lack.error);
    }
    if !global.quiet {
        output::note(&format!("note: {}", lack.error));
    }
    Ok(ExitCode::SUCCESS)
}

fn lack_of_stacks(dump: &Dump) -> Option<Lack> {
    let reason = dump.no_stack?;
    let count = dump.threads.len();
    let without = dump
        .threads
        .iter()
        .filter(|it| it.frames.is_empty())
        .count();
    let message = format!(
        "{without} of {count} threads of process {} have no stack: {reason}",
        dump.pid
    );
    let status = match reason {
        NoStack::Forbidden => ExitStatus::Permission,
        _ => ExitStatus::NoData,
    };
    Some(Lack {
        is_all: without == count,
        error: CliError::new(status, message),
    })
}

fn text_of(dump: &Dump) -> String {
    let count = dump.threads.len();
    let threads = if count == 1 { "thread" } else { "threads" };
    let mut text = format!("process {}: {count} {threads}\n", dump.pid);
    for thread in &dump.threads {
        text.push_str(&thread_text(thread));
    }
    text
}

fn thread_text(thread: &DumpedThread) -> String {
    let name = candela_formats::printable(&thread.name);
    let state = match &thread.state {
        ThreadState::Waiting(reason) => format!("waiting ({reason})"),
        other => state_name(other).to_owned(),
    };
    let mut text = format!("\nthread {} \"{name}\": {state}\n", thread.tid);
    if thread.frames.is_empty() {
        text.push_str("    no stack: it could not be taken\n");
    }
    for frame in &thread.frames {
        text.push_str(&format!("    {}\n", frame_text(frame)));
    }
    text
}

/// `FUNCTION (FILE:LINE)`, without lines `FUNCTION (BINARY)`.
fn frame_text(frame: &DumpedFrame) -> String {
    let place = match (frame.file.is_empty(), frame.line) {
        (true, _) => frame
            .mapping
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned(),
        (false, 0) => frame.file.clone(),
        (false, line) => format!("{}:{line}", frame.file),
    };
    let inlined = if frame.is_inlined { " inlined" } else { "" };
    let text = match place.is_empty() {
        true => format!("{}{inlined}", frame.function),
        false => format!("{} ({place}){inlined}", frame.function),
    };
    candela_formats::printable(&text)
}

fn json_of(dump: &Dump) -> Value {
    let threads: Vec<Value> = dump.threads.iter().map(thread_json).collect();
    json!({
        "schema": "candela/dump/v1",
        "pid": dump.pid,
        "time_ms": dump.time_ns / 1_000_000,
        "threads": threads,
    })
}

fn thread_json(thread: &DumpedThread) -> Value {
    let frames: Vec<Value> = thread.frames.iter().map(frame_json).collect();
    let mut value = json!({
        "thread_id": thread.tid,
        "thread_name": thread.name,
        "state": state_name(&thread.state),
        "frames": frames,
    });
    if let ThreadState::Waiting(reason) = &thread.state {
        value["off_cpu_reason"] = json!(reason);
    }
    value
}

fn frame_json(frame: &DumpedFrame) -> Value {
    json!({
        "function": frame.function,
        "file": frame.file,
        "line": frame.line,
        "mapping": frame.mapping,
        "kind": frame.kind.as_str(),
        "inlined": frame.is_inlined,
    })
}

fn state_name(state: &ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "running",
        ThreadState::Runnable => "runnable",
        ThreadState::Waiting(_) => "waiting",
        ThreadState::Stopped => "stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, function: Option<&str>) -> DumpedThread {
        let frame = |function: &str| DumpedFrame {
            function: function.to_owned(),
            file: String::new(),
            line: 0,
            mapping: String::new(),
            kind: candela_model::FrameKind::Native,
            is_inlined: false,
        };
        DumpedThread {
            tid,
            name: "worker".to_owned(),
            state: ThreadState::Waiting("other".to_owned()),
            frames: function.map(frame).into_iter().collect(),
        }
    }

    fn dump(threads: Vec<DumpedThread>, no_stack: Option<NoStack>) -> Dump {
        Dump {
            pid: 7,
            time_ns: 0,
            threads,
            no_stack,
        }
    }

    #[test]
    fn threads_without_a_stack_are_told_with_the_reason() {
        let whole = dump(vec![thread(7, Some("main"))], None);
        assert!(lack_of_stacks(&whole).is_none());
        let one = dump(
            vec![thread(7, Some("main")), thread(8, None)],
            Some(NoStack::NotSeen),
        );
        let lack = lack_of_stacks(&one).expect("one lacks it");
        assert!(
            lack.error
                .to_string()
                .contains("1 of 2 threads of process 7"),
            "{}",
            lack.error
        );
        assert!(!lack.is_all);
        for (reason, status) in [
            (NoStack::Forbidden, ExitStatus::Permission),
            (NoStack::NotSeen, ExitStatus::NoData),
        ] {
            let none = dump(vec![thread(7, None)], Some(reason));
            let lack = lack_of_stacks(&none).expect("it lacks it");
            assert!(lack.is_all && lack.error.status == status);
            assert!(
                lack.error.to_string().contains(&reason.to_string()),
                "{}",
                lack.error
            );
        }
    }
}
