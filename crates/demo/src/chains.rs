//! Chains of frames that several programs go through: servers, allocators, the kernel.

use std::collections::BTreeMap;

use candela_model::FrameKind;

use crate::calls::Code;
use crate::calls::Place;
use crate::calls::place;

/// A frame of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainFrame {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) is_inlined: bool,
}

/// Frames, outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    kind: FrameKind,
    /// `None` where it is compiled into each program.
    binary: Option<&'static str>,
    pub(crate) frames: Vec<ChainFrame>,
}

/// Chains by their names.
#[derive(Clone, Debug)]
pub(crate) struct Chains(BTreeMap<&'static str, Chain>);

impl Chain {
    /// The code of its frames in a program.
    pub(crate) fn code(&self, program: Code) -> Code {
        Code {
            kind: self.kind,
            binary: self.binary.unwrap_or(program.binary),
        }
    }
}

impl Chains {
    /// Reads `== name | kind | binary` and the lines `function @ file:line` below each.
    pub(crate) fn parse(text: &'static str) -> Self {
        let sections = text.split("\n== ").skip(1);
        let chains = sections.map(|section| {
            let (heading, lines) = section.split_once('\n').expect("a chain has frames");
            let (name, code) = heading.split_once(" | ").expect("a chain has a kind");
            let (kind, binary) = code.split_once(" | ").expect("a chain has a binary");
            let lines = lines.lines().filter(|line| !line.is_empty());
            let chain = Chain {
                kind: FrameKind::from_name(kind),
                binary: (binary != "-").then_some(binary),
                frames: lines.map(frame).collect(),
            };
            (name, chain)
        });
        Self(chains.collect())
    }

    pub(crate) fn get(&self, name: &str) -> &Chain {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("no chain is called {name}"))
    }
}

fn frame(line: &'static str) -> ChainFrame {
    let (name, at) = line.split_once(" @ ").expect("a frame has a place");
    ChainFrame {
        name: name.trim_start_matches('^'),
        place: place(at),
        is_inlined: name.starts_with('^'),
    }
}
