//! The first line of a sample: `comm pid/tid [cpu] time: period event: payload`. Each part but the
//! event's colon may be missing, and comm is any text.

/// What a header says; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header<'t> {
    /// The name of the thread, without padding.
    pub(crate) comm: &'t str,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
    pub(crate) cpu: Option<i64>,
    /// Nanoseconds of some clock.
    pub(crate) time_ns: Option<i64>,
    pub(crate) period: Option<u64>,
    pub(crate) event: &'t str,
    /// What stands behind the event: a frame, or the fields of a tracepoint.
    pub(crate) payload: &'t str,
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
struct Word<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

/// A thread behind its name.
#[derive(Clone, Copy, Debug, Default)]
struct Identity<'t> {
    comm: &'t str,
    pid: Option<i64>,
    tid: Option<i64>,
    cpu: Option<i64>,
}

/// Takes a header apart. With a time, a thread or no thread stands before it; without one, a thread
/// must stand before the event.
pub(crate) fn parse_header(line: &str) -> Option<Header<'_>> {
    timed_header(line).or_else(|| timeless_header(line))
}

/// Takes a header apart that has too little to be known as one: `comm tid`, `comm time:` or `event:`,
/// as with `-F comm,tid,ip`. Any text may look so, so that frames have to follow.
pub(crate) fn parse_bare_header(line: &str) -> Option<Header<'_>> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let mut recent = Recent::default();
    for word in words(line) {
        recent.push(word);
    }
    let last = recent.word(0)?;
    let before = line[..last.start].trim();
    if let Some(time_ns) = time_of(last.text) {
        return Some(Header {
            comm: before,
            time_ns: Some(time_ns),
            ..Header::default()
        });
    }
    if let Some(event) = last.text.strip_suffix(':') {
        return is_event_name(event).then_some(Header {
            comm: before,
            event,
            ..Header::default()
        });
    }
    let identity = recent.identity_at(0, line)?;
    Some(header(identity, None, ""))
}

/// Whether an event may be called so. Tools that print tables and addresses put colons behind
/// numbers; events of perf begin with a letter.
pub(crate) fn is_event_name(event: &str) -> bool {
    event.starts_with(char::is_alphabetic)
}

/// As comm is any text, the first time that has a thread before it is the time.
fn timed_header(line: &str) -> Option<Header<'_>> {
    let mut recent = Recent::default();
    let mut without_thread = None;
    for word in words(line) {
        let Some(time_ns) = time_of(word.text) else {
            recent.push(word);
            continue;
        };
        let rest = &line[word.end..];
        if let Some(identity) = recent.identity(line) {
            return Some(header(identity, Some(time_ns), rest));
        }
        if without_thread.is_none() {
            let identity = Identity {
                comm: line[..word.start].trim(),
                ..Identity::default()
            };
            without_thread = Some(header(identity, Some(time_ns), rest));
        }
        recent.push(word);
    }
    // Less sure, so that it has to end as headers do.
    without_thread.filter(|found| !found.event.is_empty())
}

fn timeless_header(line: &str) -> Option<Header<'_>> {
    let mut recent = Recent::default();
    for word in words(line) {
        let is_event = word.text.len() > 1 && word.text.ends_with(':');
        if !is_event {
            recent.push(word);
            continue;
        }
        if let Some((identity, period)) = recent.identity_and_period(line) {
            return Some(Header {
                period,
                ..header(identity, None, &line[word.start..])
            });
        }
        recent.push(word);
    }
    None
}

/// `rest` is what stands behind the time.
fn header<'t>(identity: Identity<'t>, time_ns: Option<i64>, rest: &'t str) -> Header<'t> {
    let mut rest = trim_start(rest);
    let first = first_word(rest).unwrap_or("");
    let mut period = None;
    if is_number(first) {
        // What is beyond 64 bits is as large as can be.
        period = Some(first.parse().unwrap_or(u64::MAX));
        rest = trim_start(&rest[first.len()..]);
    }
    let (event, payload) = event_of(rest);
    Header {
        comm: identity.comm,
        pid: identity.pid,
        tid: identity.tid,
        cpu: identity.cpu,
        time_ns,
        period,
        event,
        payload,
    }
}

/// The event up to the colon behind it, which names of events have inside, too. Empty when there is
/// none.
fn event_of(rest: &str) -> (&str, &str) {
    let first = first_word(rest).unwrap_or("");
    if let Some(event) = first.strip_suffix(':') {
        return (event, rest[first.len()..].trim());
    }
    if let Some(event) = rest.trim_end().strip_suffix(':') {
        return (event, "");
    }
    match rest.split_once(": ") {
        Some((event, payload)) => (event, payload.trim()),
        None => ("", rest.trim()),
    }
}

fn words(line: &str) -> impl Iterator<Item = Word<'_>> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let rest = &line[position..];
        let start = position + (rest.len() - trim_start(rest).len());
        let text = first_word(&line[start..])?;
        position = start + text.len();
        Some(Word {
            text,
            start,
            end: position,
        })
    })
}

/// As [`str::trim_start`], and quicker where it is ASCII.
fn trim_start(text: &str) -> &str {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let spaces = text.bytes().take_while(|byte| is_space(byte)).count();
    let rest = &text[spaces..];
    match rest.as_bytes().first() {
        Some(b'!'..=b'~') => rest,
        _ => rest.trim_start(),
    }
}

/// The first word of a text that begins with one, up to the next space of any kind.
fn first_word(text: &str) -> Option<&str> {
    let is_plain = |byte: &u8| matches!(byte, b'!'..=b'~');
    let plain = text.bytes().take_while(|byte| is_plain(byte)).count();
    match text.as_bytes().get(plain) {
        None | Some(b' ' | b'\t') if plain > 0 => Some(&text[..plain]),
        _ => text.split_whitespace().next(),
    }
}

/// The last words before the one that is looked at.
#[derive(Debug, Default)]
struct Recent<'t> {
    /// The latest first: a thread, a CPU, the mode, a date and a time of day.
    words: [Option<Word<'t>>; 5],
}

impl<'t> Recent<'t> {
    fn push(&mut self, word: Word<'t>) {
        self.words.rotate_right(1);
        self.words[0] = Some(word);
    }

    /// The thread whose last word is the latest, or is followed by a CPU, a mode and a date.
    fn identity(&self, line: &'t str) -> Option<Identity<'t>> {
        let mut latest = 0;
        if self.has(latest, is_time_of_day) {
            latest += 2;
        }
        if self.has(latest, is_mode) {
            latest += 1;
        }
        self.identity_at(latest, line)
    }

    fn identity_and_period(&self, line: &'t str) -> Option<(Identity<'t>, Option<u64>)> {
        let with_period = || {
            let word = self.words[0].filter(|word| is_number(word.text))?;
            let identity = self.identity_at(1, line)?;
            Some((identity, Some(word.text.parse().unwrap_or(u64::MAX))))
        };
        with_period().or_else(|| Some((self.identity_at(0, line)?, None)))
    }

    fn identity_at(&self, mut latest: usize, line: &'t str) -> Option<Identity<'t>> {
        let cpu = self.word(latest).and_then(|word| cpu_of(word.text));
        latest += usize::from(cpu.is_some());
        let thread = self.word(latest)?;
        let (pid, tid) = thread_of(thread.text)?;
        Some(Identity {
            comm: line[..thread.start].trim(),
            pid,
            tid,
            cpu,
        })
    }

    fn has(&self, position: usize, condition: fn(&str) -> bool) -> bool {
        self.word(position).is_some_and(|word| condition(word.text))
    }

    fn word(&self, position: usize) -> Option<Word<'t>> {
        self.words.get(position).copied().flatten()
    }
}

/// `1234.567890:` in nanoseconds.
fn time_of(word: &str) -> Option<i64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    if !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let digits = fraction.get(..9).unwrap_or(fraction);
    let nanoseconds = digits.parse::<i64>().ok()? * 10_i64.pow(9 - digits.len() as u32);
    let seconds: i64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// `tid` or `pid/tid`. What runs outside of all threads that are seen has -1.
fn thread_of(word: &str) -> Option<(Option<i64>, Option<i64>)> {
    let number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        text.parse::<i64>().ok().filter(|_| is_number(digits))
    };
    let known = |number: i64| (number >= 0).then_some(number);
    match word.split_once('/') {
        Some((pid, "")) => Some((known(number(pid)?), None)),
        Some((pid, tid)) => Some((known(number(pid)?), known(number(tid)?))),
        None => Some((None, known(number(word)?))),
    }
}

fn cpu_of(word: &str) -> Option<i64> {
    let digits = word.strip_prefix('[')?.strip_suffix(']')?;
    digits.parse().ok().filter(|_| is_number(digits))
}

/// `K`, `U` and what else `perf script -F +misc` writes.
fn is_mode(word: &str) -> bool {
    word.bytes().all(|byte| b"KUHGgtTSsEeMDP>?".contains(&byte))
}

/// The second word of `-F +tod`.
fn is_time_of_day(word: &str) -> bool {
    word.matches(':').count() == 2
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comm, pid, tid, CPU, time, period, event and payload.
    type Parts<'t> = (&'t str, i64, i64, i64, i64, Option<u64>, &'t str, &'t str);

    fn parts(line: &str) -> Option<Parts<'_>> {
        let found = parse_header(line)?;
        let number = |number: Option<i64>| number.unwrap_or(-1);
        Some((
            found.comm,
            number(found.pid),
            number(found.tid),
            number(found.cpu),
            number(found.time_ns),
            found.period,
            found.event,
            found.payload,
        ))
    }

    #[test]
    fn every_order_of_fields_is_taken_apart() {
        let cases = [
            (
                "go  6157  1224.147545:     250000 cpu-clock:uhH: ",
                (
                    "go",
                    -1,
                    6157,
                    -1,
                    1_224_147_545_000,
                    Some(250_000),
                    "cpu-clock:uhH",
                    "",
                ),
            ),
            (
                "iperf 27409/28744 [003] 441995.5: cpu-clock: ",
                (
                    "iperf",
                    27409,
                    28744,
                    3,
                    441_995_500_000_000,
                    None,
                    "cpu-clock",
                    "",
                ),
            ),
            (
                "func_ab 15294 cpu-clock: ",
                ("func_ab", -1, 15294, -1, -1, None, "cpu-clock", ""),
            ),
            (
                "t prog 20797          1      page-faults: ",
                ("t prog", -1, 20797, -1, -1, Some(1), "page-faults", ""),
            ),
            (
                "t prog  2287.075567:          1      page-faults: ",
                (
                    "t prog",
                    -1,
                    -1,
                    -1,
                    2_287_075_567_000,
                    Some(1),
                    "page-faults",
                    "",
                ),
            ),
            (
                "20797  2287.000000001:          1      page-faults: ",
                (
                    "",
                    -1,
                    20797,
                    -1,
                    2_287_000_000_001,
                    Some(1),
                    "page-faults",
                    "",
                ),
            ),
            (
                "t prog 20797 K      2287.075567:          1      page-faults: ",
                (
                    "t prog",
                    -1,
                    20797,
                    -1,
                    2_287_075_567_000,
                    Some(1),
                    "page-faults",
                    "",
                ),
            ),
            (
                "x 1 [000] 2020-01-01 12:00:00.123456 1.5: 7 cycles:",
                ("x", -1, 1, 0, 1_500_000_000, Some(7), "cycles", ""),
            ),
            (
                "    2/2\t\t[000] 0.0:\t\t\t1 event_name: properties",
                ("", 2, 2, 0, 0, Some(1), "event_name", "properties"),
            ),
            (
                "k/[2]  4/4\t\t[000] 0.0:\t\t\t1 e: p",
                ("k/[2]", 4, 4, 0, 0, Some(1), "e", "p"),
            ),
            (
                "comm 1.5: 2 part1\t0/0\t\t[000] 0.0: 1 cpu/cycles/u: p q",
                (
                    "comm 1.5: 2 part1",
                    0,
                    0,
                    0,
                    0,
                    Some(1),
                    "cpu/cycles/u",
                    "p q",
                ),
            ),
            (
                ":-1 -1/-1 1.0: sched:sched_switch: prev_comm=a 5 6.7: b",
                (
                    ":-1",
                    -1,
                    -1,
                    -1,
                    1_000_000_000,
                    None,
                    "sched:sched_switch",
                    "prev_comm=a 5 6.7: b",
                ),
            ),
            (
                "   dd 9 1.0:  1 cycles:u:  ffffffff9b201293 [unknown] ([unknown])",
                (
                    "dd",
                    -1,
                    9,
                    -1,
                    1_000_000_000,
                    Some(1),
                    "cycles:u",
                    "ffffffff9b201293 [unknown] ([unknown])",
                ),
            ),
            (
                "a 1 2.0: 3 raw 0x1c2:",
                ("a", -1, 1, -1, 2_000_000_000, Some(3), "raw 0x1c2", ""),
            ),
            (
                "a 1 2.0: 99999999999999999999999 cycles: ",
                ("a", -1, 1, -1, 2_000_000_000, Some(u64::MAX), "cycles", ""),
            ),
            ("a 1 2.0: ", ("a", -1, 1, -1, 2_000_000_000, None, "", "")),
        ];
        for (line, expected) in cases {
            assert_eq!(parts(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn little_is_a_header_where_frames_follow() {
        let bare = |line| {
            let found = parse_bare_header(line)?;
            Some((found.comm, found.tid, found.time_ns, found.event))
        };
        let cases = [
            ("perf 10447 ", ("perf", Some(10447), None, "")),
            ("swapper     0 [003] ", ("swapper", Some(0), None, "")),
            ("Web Content 12/13", ("Web Content", Some(13), None, "")),
            ("a b 1.5: ", ("a b", None, Some(1_500_000_000), "")),
            ("cycles:u: ", ("", None, None, "cycles:u")),
            ("perf cycles: ", ("perf", None, None, "cycles")),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_header(line), None, "{line}");
            assert_eq!(bare(line), Some(expected), "{line}");
        }
        for line in ["", "noise", " perf 1", "\t12", "1 f (x)", "n1: 12 0x48:"] {
            assert_eq!(bare(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_is_no_header_is_none() {
        for line in [
            "",
            "main;work 3",
            "\t          401b97 main+0x1f (./inline-counter)",
            "  t.c:4 (inlined)",
            "a 99999999999999999999.0: cycles:x",
            "Error: nothing here",
            "\u{a0}\u{2003}:",
        ] {
            assert_eq!(parse_header(line), None, "{line:?}");
        }
    }
}
