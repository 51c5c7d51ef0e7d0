//! Who the threads of a trace are.

use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::SampleLabel;
use candela_model::StringId;
use hashbrown::HashMap;
use serde::Deserialize;

use crate::chrome_trace::event::Event;
use crate::error::ReadError;
use crate::named_stacks::NamedStacks;
use crate::options::Limits;
use crate::work::STEPS_PER_ENTRY;
use crate::work::Work;

/// Names of processes and threads, which may be told anywhere in a trace.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Each as process and thread.
    threads: Vec<(String, String)>,
    positions: HashMap<(String, String), usize>,
    thread_names: HashMap<usize, String>,
    process_names: HashMap<String, String>,
    work: Work,
}

/// What a thread takes: its identifiers twice, its events or samples and its labels.
const STEPS_PER_THREAD: usize = 4 * STEPS_PER_ENTRY;

#[derive(Deserialize)]
struct NameArgs {
    name: String,
}

impl Threads {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            threads: Vec::new(),
            positions: HashMap::new(),
            thread_names: HashMap::new(),
            process_names: HashMap::new(),
            work: Work::new(limits),
        }
    }

    /// The position of a thread, which is made when it is new.
    ///
    /// # Errors
    /// When there are too many: a thread takes ten times the memory of the event that names it.
    pub(crate) fn position(&mut self, pid: &str, tid: &str) -> Result<usize, ReadError> {
        let key = (pid.to_owned(), tid.to_owned());
        if let Some(&known) = self.positions.get(&key) {
            return Ok(known);
        }
        self.work.spend(STEPS_PER_THREAD)?;
        let position = self.threads.len();
        self.threads.push(key.clone());
        self.positions.insert(key, position);
        Ok(position)
    }

    /// Takes an event of metadata.
    pub(crate) fn tell(&mut self, event: &Event<'_>) -> Result<(), ReadError> {
        let Ok(NameArgs { name }) = serde_json::from_slice(event.args) else {
            return Ok(());
        };
        match event.name().as_str() {
            "process_name" => {
                self.process_names.insert(event.pid.to_owned(), name);
            }
            "thread_name" => {
                let thread = self.position(event.pid, event.tid)?;
                self.thread_names.insert(thread, name);
            }
            _ => {}
        }
        Ok(())
    }

    /// Labels that say which thread it is.
    ///
    /// # Errors
    /// When the names of processes, which all of their threads have, are too much together.
    pub(crate) fn label_set(
        &mut self,
        thread: usize,
        stacks: &mut NamedStacks<'_>,
    ) -> Result<LabelSetId, ReadError> {
        let Some((pid, tid)) = self.threads.get(thread) else {
            return Ok(LabelSetId(0));
        };
        let labels = [
            (
                "thread_name",
                or_empty(self.thread_names.get(&thread)),
                false,
            ),
            ("process_name", or_empty(self.process_names.get(pid)), false),
            ("thread_id", tid.as_str(), true),
            ("pid", pid.as_str(), true),
        ];
        let mut set = Vec::new();
        for (key, value, is_number) in labels {
            if value.is_empty() {
                continue;
            }
            let value = stacks.cut(value);
            self.work.spend(value.len())?;
            let strings = &mut stacks.profile.symbols.strings;
            let number = value.parse().ok().filter(|_| is_number);
            let value = match number {
                Some(value) => LabelValue::Number {
                    value,
                    unit: StringId(0),
                },
                None => LabelValue::Text(strings.intern(value)),
            };
            let key = strings.intern(key);
            set.push(SampleLabel { key, value });
        }
        Ok(stacks.profile.label_sets.intern(set))
    }
}

fn or_empty(name: Option<&String>) -> &str {
    name.map_or("", String::as_str)
}
