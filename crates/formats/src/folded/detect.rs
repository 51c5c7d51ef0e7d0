//! Telling folded stacks from other texts whose lines end in numbers, which are many.

use crate::folded::read::is_comment;
use crate::folded::read::last_count;
use crate::text_lines::decode_prefix;

/// What the lines of a drawn tree begin with: no function does.
const TREE_LINES: [char; 3] = ['│', '├', '└'];

/// A first line of this length whose end is not in sight is taken for a deep stack of long names.
const LONG_LINE_BYTES: usize = 32 << 10;

/// What the lines of a text are, but for empty ones and comments.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    all: usize,
    with_count: usize,
    /// Of these, such as only other texts have.
    of_others: usize,
    has_stack: bool,
}

/// Whether the start of some input looks like folded stacks. A stack of several frames makes sure of
/// what a text is; functions alone with numbers must not look like keys, labels or columns.
pub(crate) fn looks_folded(prefix: &[u8]) -> bool {
    let text = decode_prefix(prefix);
    if begins_as_document(&text) || text.starts_with("#!") {
        return false;
    }
    let has_controls = text.contains(|character: char| {
        character.is_control() && !matches!(character, '\n' | '\r' | '\t')
    });
    // The last line may be cut, and then its count is missing.
    let complete = match text.rfind('\n') {
        Some(end) => &text[..end],
        None if text.len() >= LONG_LINE_BYTES => return text.contains(';'),
        None => &text[..],
    };
    let lines = Lines::of(complete);
    // Names may have anything in them, but so have binary files.
    if has_controls && !(lines.has_stack && lines.with_count == lines.all) {
        return false;
    }
    let functions = match lines.has_stack {
        true => lines.with_count,
        // Functions alone in brackets may as well be what logs begin their lines with.
        false if text.starts_with('[') => 0,
        false => lines.with_count - lines.of_others,
    };
    functions > 0 && 2 * functions >= lines.all
}

/// Whether a text begins as JSON or as markup does, and not with a frame as `[libc.so.6]`, `{main}` or `<T as Trait>::call`:
/// the line of such a frame ends in a count.
fn begins_as_document(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['[', '{', '<']) else {
        return false;
    };
    let rest = rest.trim_start();
    let is_json = match text.as_bytes()[0] {
        b'[' => rest.starts_with(['{', '"']),
        b'{' => rest.starts_with('"'),
        _ => false,
    };
    let line = text.lines().next().unwrap_or("");
    let is_frame = last_count(line).is_some_and(|(frames, _)| frames.contains([']', '}', '>']));
    is_json || !is_frame
}

impl Lines {
    fn of(text: &str) -> Self {
        let mut lines = Self::default();
        let is_counted = |line: &&str| !line.trim().is_empty() && !is_comment(line);
        for line in text.lines().filter(is_counted) {
            lines.all += 1;
            let is_drawn = line.trim_start().starts_with(TREE_LINES);
            let Some((frames, _)) = last_count(line).filter(|_| !is_drawn) else {
                continue;
            };
            lines.with_count += 1;
            lines.of_others += usize::from(is_of_others(frames));
            lines.has_stack |= frames.contains(';') && !is_labelled(frames);
        }
        lines
    }
}

/// Whether what stands before a number is not a function: `key:`, `7:` as in lists,
/// `name{label="value"}`, or columns.
fn is_of_others(frames: &str) -> bool {
    let function = last_count(frames).map_or(frames, |(function, _)| function);
    let has_columns = function.contains('\t') || function.contains("  ");
    if is_labelled(function) || has_columns {
        return true;
    }
    let mut words = frames.split_whitespace();
    let is_key = |word: &str| word.ends_with(':');
    let is_number = |word: &str| {
        let digits = word.strip_suffix(':').unwrap_or("");
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    words.next().is_some_and(is_key) || frames.ends_with(':') || words.any(is_number)
}

/// As metrics are: `name{label="value"}`.
fn is_labelled(text: &str) -> bool {
    text.ends_with('}') && text.contains("=\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_alone_are_folded_stacks_too() {
        for text in [
            "main 5\n",
            "main 5",
            "main\t5\n",
            "main 3 5\nwork 0 7\n",
            "main\t3\t5\n",
            "main  3  5\n",
            "operator new(unsigned long) 5\nstd::vector<int>::push_back 7\n",
            "main_[k] 5\r\nwork 7.5\r\n",
            "-[NSView setNeedsDisplay:] 5\n[unknown] 7\n(garbage collector) 9\n",
            "key: a;b 5\ntotal: 7\ntotal: 7\n",
            "[libc.so.6];main 5\n[vmlinux];open;read 7\n",
            "[unknown] 5\n[unknown];main 7\n",
            "[1-thread tid=5];main 5\n",
            "[[vdso]];f 1\n",
            "<T as work::Run>::run;free 5\nmain;work 7\n",
            "<T as work::Run>::run 5\n",
            "<{closure#0} as Run>::run;free 5\n",
            "{main};work 5\n{main};work;hash 7\n",
            "{{closure}};work 5\n",
            "main;\u{1b}[31mred 10\n",
            "# mode: wall\n# unit: ns\n# interval: 100\n# cpu: 4\n\nmain;work 5\n",
        ] {
            assert!(looks_folded(text.as_bytes()), "{text}");
        }
        let deep = "work::a_function_with_a_long_name;".repeat(2000);
        assert!(looks_folded(&deep.as_bytes()[..64 << 10]));
        let no_stack = deep.replace(';', " ");
        assert!(!looks_folded(&no_stack.as_bytes()[..64 << 10]));
    }

    #[test]
    fn texts_with_numbers_at_the_end_of_lines_are_none() {
        for text in [
            "version: 1\ncreator: callgrind-3.5.0\npid: 14542\npart: 2\n\
             desc: Timerange: Basic block 41 - 42\n\nsummary: 0\n\ntotals: 0\n",
            "packet {\n  clocks {\n    clock_id: 6\n    timestamp: 67\n  }\n  trusted_uid: 99\n}\n",
            "# HELP jobs The number of jobs, at most 5\n# TYPE jobs counter\n\
             jobs{level=\"0\"} 1\njobs{level=\"2\",of=\"a b\"} 1 1700000000\n",
            "Version: 2.9.6\nFile format: 4\n1\t0\t0\t0.000195\t392400\t{main}\t1\t\t/t.php\t0\n\
             3\t2\t1\t0.000280\t392400\n3\t3\t1\t0.000334\t392400\n\t\t\t0.000750\t323312\n",
            "COST CENTRE  MODULE             SRC            %time %alloc\n\
             unionBy.loop Data.List.Ordered  Ordered.hs:237  71.4   91.9\n\
             union        Data.List.Ordered  Ordered.hs:231  22.3    0.0\n",
            ".\n├── main: self 0 total 10\n│   └── Lambda;run: self 10 total 10\n",
            "[5, \"a;b\", 7\n",
            "[12:30:07] started 5\n[12:30:08] ended 7\n",
            "[\"a;b\", 7\n",
            "[ {\"name\": \"a;b\", \"n\": 7\n7\n",
            "{\"name\": \"a;b\", \"n\": 7\n}\n",
            "{\n  \"a;b\": 7\n}\n",
            "{ \"a;b\": 7\n}\n",
            "<?xml version=\"1.0\"?>\n<a b=\"c;d\"> 5\n</a>\n",
            "<!DOCTYPE html>\n<title>a;b</title>\n5 7\n",
            "<html>\na;b 5\na;c 7\n",
            "\u{1b}[31mred 10\n",
            "main;a 1\nrest of some \u{1} file\n",
            "#!/bin/sh\n# waits\nwork; sleep 5\n",
            "# HELP x y\n# TYPE x counter\nx{a=\"b;c\"} 5\n",
            "# only; comments 5\n# nothing else 7\n",
            "samples/count cpu/nanoseconds\n  19  190000000: 1 2 3 \n 542 5420000000: 4 5 2 3 \n",
        ] {
            assert!(!looks_folded(text.as_bytes()), "{text}");
        }
    }
}
