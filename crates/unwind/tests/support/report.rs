//! Reads what a program reports about itself, or an observer about it.

use candela_unwind::{Registers, dwarf};
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

/// Bytes of stack that are copied before a walk, as a sampler would.
const STACK_COPY: usize = 64 << 10;

/// One thread at one moment.
pub(crate) struct Report {
    pub(crate) registers: Registers,
    pub(crate) maps: Vec<Map>,
    /// Address and bytes; the stack comes first.
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
    /// The return addresses of the calls that it is in, innermost first, where an observer has followed them.
    pub(crate) callers: Vec<u64>,
    /// The process that an observer has started.
    process: u32,
    /// The memory of the process, while it is stopped.
    live: Option<File>,
}

/// An executable mapping.
pub(crate) struct Map {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) path: String,
}

impl Report {
    /// Runs `program`, which reports about itself once.
    pub(crate) fn of(program: &Path) -> Report {
        let output = Command::new(program)
            .output()
            .expect("the test program runs");
        assert!(output.status.success(), "{program:?} failed: {output:?}");
        Report::read(&mut &*output.stdout).expect("one report")
    }

    /// The next report of an observer of process `pid`, which is stopped meanwhile.
    pub(crate) fn of_stopped(pid: u32, input: &mut impl BufRead) -> Option<Report> {
        Some(Report::read(input)?.with_memory_of(pid))
    }

    /// The next report of an observer of a process that it has started, and that is stopped meanwhile.
    pub(crate) fn of_stepped(input: &mut impl BufRead) -> Option<Report> {
        let report = Report::read(input)?;
        let process = report.process;
        Some(report.with_memory_of(process))
    }

    fn with_memory_of(mut self, pid: u32) -> Report {
        let memory = File::open(format!("/proc/{pid}/mem")).expect("observed, so readable");
        let mut stack = vec![0; STACK_COPY];
        let rsp = self.registers.rsp();
        let length = memory
            .read_at(&mut stack, rsp)
            .expect("the stack is readable");
        stack.truncate(length);
        self.memory.push((rsp, stack));
        self.live = Some(memory);
        self
    }

    /// The word at `address`, from the report or from the stopped process.
    pub(crate) fn read_word(&self, address: u64) -> Option<u64> {
        for (base, bytes) in &self.memory {
            let Some(offset) = address.checked_sub(*base) else {
                continue;
            };
            let Ok(offset) = usize::try_from(offset) else {
                continue;
            };
            if let Some(word) = bytes
                .get(offset..)
                .and_then(|bytes| bytes.first_chunk::<8>())
            {
                return Some(u64::from_le_bytes(*word));
            }
        }
        let mut word = [0; 8];
        self.live.as_ref()?.read_exact_at(&mut word, address).ok()?;
        Some(u64::from_le_bytes(word))
    }

    fn read(input: &mut impl BufRead) -> Option<Report> {
        let mut words_of_registers = Vec::new();
        let mut is_complete = false;
        let mut maps = Vec::new();
        let mut memory = Vec::new();
        let mut callers = Vec::new();
        let mut process = 0;
        loop {
            let mut line = String::new();
            input.read_line(&mut line).expect("readable");
            let mut words = line.split_ascii_whitespace();
            let name = words.next()?;
            let mut number = || hex(words.next().expect("a number"));
            let (first, second) = (number(), number());
            let mut take = || {
                let mut bytes = vec![0; second as usize];
                input
                    .read_exact(&mut bytes)
                    .expect("as many bytes as announced");
                bytes
            };
            match name {
                "REGISTERS" => words_of_registers.extend([first, second]),
                "ALL" => {
                    is_complete = true;
                    words_of_registers.extend([first, second]);
                }
                "MAPS" => maps = parse_maps(&String::from_utf8(take()).expect("text")),
                "MEMORY" => memory.push((first, take())),
                "CALLER" => callers.push(first),
                "PROCESS" => process = first as u32,
                _ => break,
            }
        }
        let registers = match is_complete {
            true => all_registers(&words_of_registers),
            false => some_registers(&words_of_registers),
        };
        Some(Report {
            registers,
            maps,
            memory,
            callers,
            process,
            live: None,
        })
    }
}

/// rip, rsp, rbp, rbx: what a program knows about itself.
fn some_registers(words: &[u64]) -> Registers {
    let mut general = [0; 16];
    general[usize::from(dwarf::RSP)] = words[1];
    general[usize::from(dwarf::RBP)] = words[2];
    general[usize::from(dwarf::RBX)] = words[3];
    Registers {
        general,
        rip: words[0],
    }
}

/// The general registers in DWARF order, then rip.
fn all_registers(words: &[u64]) -> Registers {
    let general = words[..16].try_into().expect("sixteen words");
    Registers {
        general,
        rip: words[16],
    }
}

fn parse_maps(text: &str) -> Vec<Map> {
    let mut maps = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if !fields[1].contains('x') {
            continue;
        }
        let (start, end) = fields[0].split_once('-').expect("a range");
        let path = fields.get(5).copied().unwrap_or("").to_owned();
        maps.push(Map {
            start: hex(start),
            end: hex(end),
            offset: hex(fields[2]),
            path,
        });
    }
    maps
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("hex")
}
