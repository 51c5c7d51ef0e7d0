//! The stacks of buckets, as stacks of any other sample.

use std::sync::Arc;

use candela_symbols::GoFunctions;
use hashbrown::HashMap;

/// Where each stack of Go begins.
const ENTRY: &str = "runtime.goexit";

/// What allocates for others.
const RUNTIME: [&str; 2] = ["runtime.", "internal/runtime/"];

/// What the tables of a program say of its stacks.
#[derive(Debug)]
pub(super) struct GoStacks {
    /// `None` where the program has no tables that can be read.
    functions: Option<GoFunctions>,
    /// What to subtract from an address of the process.
    bias: u64,
    /// By address of the process, innermost function first.
    known: HashMap<u64, Arc<[Arc<str>]>>,
}

impl GoStacks {
    pub(super) fn new(functions: Option<GoFunctions>, bias: u64) -> Self {
        Self {
            functions,
            bias,
            known: HashMap::new(),
        }
    }

    /// The addresses to symbolize of a stack of return addresses.
    ///
    /// As in `runtime/pprof` what the runtime itself does on top is left out, unless there is nothing else, and so
    /// is the entry of the goroutine. Functions that were inlined into others, for which the runtime records an
    /// address each, are one place in the code.
    pub(super) fn places(&mut self, stack: &[u64]) -> Box<[u64]> {
        let of_program = stack
            .iter()
            .position(|&address| !self.is_of_runtime(address));
        let mut rest = &stack[of_program.unwrap_or_default()..];
        let mut places = Vec::with_capacity(rest.len());
        while let Some((&address, behind)) = rest.split_first() {
            let place = call_before(address);
            let functions = self.functions_at(place);
            if functions.first().is_some_and(|name| **name == *ENTRY) {
                break;
            }
            places.push(place);
            let callers = functions.iter().skip(1).zip(behind);
            let inlined_into = callers.take_while(|(name, caller)| {
                let at_caller = self.functions_at(call_before(**caller));
                at_caller.first() == Some(*name)
            });
            rest = &behind[inlined_into.count()..];
        }
        places.into()
    }

    /// As `runtime.FuncForPC` names it, which looks at the address itself.
    fn is_of_runtime(&mut self, address: u64) -> bool {
        let functions = self.functions_at(address);
        let name = functions.first();
        name.is_some_and(|name| RUNTIME.iter().any(|prefix| name.starts_with(prefix)))
    }

    fn functions_at(&mut self, address: u64) -> Arc<[Arc<str>]> {
        let (functions, bias) = (&mut self.functions, self.bias);
        let names = self.known.entry(address).or_insert_with(|| {
            let found = functions.as_mut();
            let found = found.map(|it| it.names_at(address.wrapping_sub(bias)));
            found.unwrap_or_default().into()
        });
        Arc::clone(names)
    }
}

/// Return addresses name what follows the call; the call is before them.
fn call_before(address: u64) -> u64 {
    address.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stacks of a program whose functions are these, by the address of the call.
    fn stacks(functions: &[(u64, &[&str])]) -> GoStacks {
        let mut stacks = GoStacks::new(None, 0);
        for &(address, names) in functions {
            let names: Arc<[Arc<str>]> = names.iter().map(|&name| Arc::from(name)).collect();
            stacks.known.insert(address, Arc::clone(&names));
            stacks.known.insert(address + 1, names);
        }
        stacks
    }

    #[test]
    fn what_the_runtime_does_and_where_it_begins_is_left_out() {
        let mut stacks = stacks(&[
            (0x10, &["runtime.makeslice"]),
            (0x20, &["internal/runtime/maps.grow"]),
            (0x30, &["main.work"]),
            (0x40, &["runtime.main"]),
            (0x50, &["runtime.goexit"]),
        ]);
        let whole = stacks.places(&[0x11, 0x21, 0x31, 0x41, 0x51]);
        assert_eq!(*whole, [0x30, 0x40]);
        let of_runtime = stacks.places(&[0x11, 0x41, 0x51]);
        assert_eq!(*of_runtime, [0x10, 0x40], "there is nothing else");
        assert!(stacks.places(&[]).is_empty());
    }

    #[test]
    fn inlined_functions_are_one_place_with_what_they_are_in() {
        let mut stacks = stacks(&[
            (0x10, &["main.inner", "main.middle", "main.outer"]),
            (0x14, &["main.middle", "main.outer"]),
            (0x18, &["main.outer"]),
            (0x30, &["main.main"]),
        ]);
        assert_eq!(*stacks.places(&[0x11, 0x15, 0x19, 0x31]), [0x10, 0x30]);
        // Cut where the stack was too deep: the place tells the rest.
        assert_eq!(*stacks.places(&[0x11, 0x15]), [0x10]);
        // A function calls itself by another one that is inlined.
        assert_eq!(*stacks.places(&[0x19, 0x11, 0x15, 0x19]), [0x18, 0x10]);
    }

    #[test]
    fn addresses_of_nobody_are_kept() {
        assert_eq!(*stacks(&[]).places(&[0x11, 0x21]), [0x10, 0x20]);
    }
}
