//! What the programs of the shop call, as texts that read like a flame graph.
//!
//! A line is `function @ file:line`, two spaces deeper than its caller; `^` before it says that it is
//! inlined. `use NAME` is a chain of frames (`chains.rs`), and what is below it hangs at its end. `lib NAME |
//! kind | binary | place` is a frame of other code, as is what is below it. `= 4` is the weight of the time in the
//! line itself, and behind `;` stand `thread=NAME/COUNT` and `route=…` of all below. After the tree come
//! `wait`, `heap` and `lock` lines: a function, a chain below it, and how much.

use candela_model::FrameKind;

use crate::chains::Chains;

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Line {
        file: &'static str,
        line: u32,
    },
    /// There is no name for it.
    Address(u64),
    /// There is a name and no line.
    Unknown,
}

/// What kind of code, and in which file it was loaded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) kind: FrameKind,
    pub(crate) binary: &'static str,
}

/// Threads of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    pub(crate) threads: usize,
}

/// A frame with those above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) code: Code,
    pub(crate) is_inlined: bool,
    pub(crate) parent: Option<usize>,
    /// Of the time in itself.
    pub(crate) weight: f64,
    pub(crate) pool: Pool,
    pub(crate) route: Option<&'static str>,
}

/// A place where a program waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) call: usize,
    pub(crate) reason: &'static str,
    /// Seconds a second, at a load of 1.
    pub(crate) seconds: f64,
}

/// A place where a program allocates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heap {
    pub(crate) call: usize,
    /// MiB a second, at a load of 1.
    pub(crate) allocated: f64,
    /// MiB.
    pub(crate) in_use: f64,
}

/// A place where a program waits for a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub(crate) call: usize,
    /// How often a second, at a load of 1.
    pub(crate) contentions: f64,
    /// How long, milliseconds.
    pub(crate) delay: f64,
}

/// A program of the shop.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    code: Code,
    pub(crate) calls: Vec<Call>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) heaps: Vec<Heap>,
    pub(crate) locks: Vec<Lock>,
}

/// A caller that lines below may have.
#[derive(Clone, Copy)]
struct Open {
    call: usize,
    /// Of frames below.
    code: Code,
}

/// Reads a program. The texts are of this crate and a test reads them all, so what is wrong with one
/// is told by a panic.
pub(crate) fn parse(text: &'static str, chains: &Chains) -> Program {
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut lines = lines.filter(|line| !line.starts_with('#'));
    let heading = lines.next().and_then(|line| line.strip_prefix("program "));
    let [name, kind, binary] = parts(heading.expect("a program has a heading"));
    let code = Code {
        kind: FrameKind::from_name(kind),
        binary,
    };
    let mut program = Program {
        name,
        code,
        calls: Vec::new(),
        waits: Vec::new(),
        heaps: Vec::new(),
        locks: Vec::new(),
    };
    let mut open: Vec<Open> = Vec::new();
    for line in lines {
        match line.split_once(' ') {
            Some(("wait", rest)) => program.add_wait(rest, chains),
            Some(("heap", rest)) => program.add_heap(rest, chains),
            Some(("lock", rest)) => program.add_lock(rest, chains),
            _ => {
                let depth = (line.len() - line.trim_start().len()) / 2;
                assert!(depth <= open.len(), "{line} is too deep");
                open.truncate(depth);
                let added = program.add_line(line.trim_start(), open.last().copied(), chains);
                open.push(added);
            }
        }
    }
    program
}

impl Program {
    fn add_line(&mut self, line: &'static str, above: Option<Open>, chains: &Chains) -> Open {
        let (line, attributes) = match line.split_once(" ; ") {
            Some((line, attributes)) => (line, attributes),
            None => (line, ""),
        };
        let (line, weight) = match line.rsplit_once(" = ") {
            Some((line, weight)) => (line, number(weight)),
            None => (line, 0.0),
        };
        let first = self.calls.len();
        let inherited = above.map_or(self.code, |above| above.code);
        let parent = above.map(|above| above.call);
        let below = if let Some(chain) = line.strip_prefix("use ") {
            self.add_chain(chain, parent, chains);
            inherited
        } else if let Some(foreign) = line.strip_prefix("lib ") {
            self.add_foreign(foreign, parent)
        } else {
            let (name, at) = line.split_once(" @ ").expect("a frame has a place");
            self.add_call(name, place(at), inherited, parent);
            inherited
        };
        for attribute in attributes.split(" ; ").filter(|text| !text.is_empty()) {
            self.set(first, attribute);
        }
        let last = self.calls.len() - 1;
        self.calls[last].weight = weight;
        Open {
            call: last,
            code: below,
        }
    }

    fn add_foreign(&mut self, text: &'static str, parent: Option<usize>) -> Code {
        let mut fields = text.split(" | ");
        let mut next = || fields.next();
        let (name, kind, binary) = (next(), next(), next());
        let code = Code {
            kind: FrameKind::from_name(kind.expect("other code has a kind")),
            binary: binary.expect("other code has a binary"),
        };
        let at = next().map_or(Place::Unknown, place);
        self.add_call(name.unwrap_or_default(), at, code, parent);
        code
    }

    /// The last frame of a chain.
    fn add_chain(&mut self, name: &str, parent: Option<usize>, chains: &Chains) -> usize {
        let chain = chains.get(name);
        let code = chain.code(self.code);
        let mut last = parent;
        for frame in &chain.frames {
            let call = self.add_call(frame.name, frame.place, code, last);
            self.calls[call].is_inlined = frame.is_inlined;
            last = Some(call);
        }
        last.expect("a chain has frames")
    }

    fn add_call(
        &mut self,
        name: &'static str,
        place: Place,
        code: Code,
        parent: Option<usize>,
    ) -> usize {
        let above = parent.map(|parent| &self.calls[parent]);
        let pool = Pool {
            name: self.name,
            threads: 1,
        };
        self.calls.push(Call {
            name: name.trim_start_matches('^'),
            place,
            code,
            is_inlined: name.starts_with('^'),
            parent,
            weight: 0.0,
            pool: above.map_or(pool, |above| above.pool),
            route: above.and_then(|above| above.route),
        });
        self.calls.len() - 1
    }

    /// Sets what a line says of itself for all of its frames; those below it get it from them.
    fn set(&mut self, first: usize, attribute: &'static str) {
        let (key, value) = attribute.split_once('=').expect("an attribute has a value");
        for call in &mut self.calls[first..] {
            match key {
                "route" => call.route = Some(value),
                "thread" => {
                    let (name, threads) = value.rsplit_once('/').expect("a pool has a size");
                    let threads = number(threads) as usize;
                    call.pool = Pool { name, threads };
                }
                _ => panic!("no attribute is called {key}"),
            }
        }
    }

    fn add_wait(&mut self, text: &'static str, chains: &Chains) {
        let [below, chain, reason, seconds] = parts(text);
        let wait = Wait {
            call: self.add_below(below, chain, chains),
            reason,
            seconds: number(seconds),
        };
        self.waits.push(wait);
    }

    fn add_heap(&mut self, text: &'static str, chains: &Chains) {
        let [below, chain, allocated, in_use] = parts(text);
        let heap = Heap {
            call: self.add_below(below, chain, chains),
            allocated: number(allocated),
            in_use: number(in_use),
        };
        self.heaps.push(heap);
    }

    fn add_lock(&mut self, text: &'static str, chains: &Chains) {
        let [below, chain, contentions, delay] = parts(text);
        let lock = Lock {
            call: self.add_below(below, chain, chains),
            contentions: number(contentions),
            delay: number(delay),
        };
        self.locks.push(lock);
    }

    /// The end of some chains below the first call of a function.
    fn add_below(&mut self, function: &str, names: &str, chains: &Chains) -> usize {
        let found = self.calls.iter().position(|call| call.name == function);
        let mut call = found.unwrap_or_else(|| panic!("{} calls no {function}", self.name));
        for name in names.split(' ') {
            call = self.add_chain(name, Some(call), chains);
        }
        call
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn stack(&self, call: usize) -> impl Iterator<Item = &Call> {
        let first = Some(&self.calls[call]);
        std::iter::successors(first, |call| call.parent.map(|parent| &self.calls[parent]))
    }
}

/// `file:line`, or an address.
pub(crate) fn place(text: &'static str) -> Place {
    if let Some(digits) = text.strip_prefix("0x") {
        let address = u64::from_str_radix(digits, 16);
        return Place::Address(address.expect("an address has hexadecimal digits"));
    }
    let (file, line) = text.rsplit_once(':').expect("a place has a line");
    Place::Line {
        file,
        line: line.parse().expect("a line is a number"),
    }
}

fn number(text: &str) -> f64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

fn parts<const N: usize>(text: &'static str) -> [&'static str; N] {
    let parts: Vec<&str> = text.split(" | ").collect();
    parts
        .try_into()
        .unwrap_or_else(|_| panic!("{text} has not {N} parts"))
}
