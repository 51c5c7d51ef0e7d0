//! Names that stand in full once and are numbers from then on: `fn=(12) main`, then `fn=(12)`.

use candela_model::StringId;
use hashbrown::HashMap;

use crate::named_stacks::NamedStacks;

/// The numbers of one kind of name: objects, files or functions.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<u64, StringId>,
}

/// What callgrind writes for what it does not know.
const UNKNOWN: &str = "???";

impl Names {
    /// The name that is meant by what stands behind `=`.
    pub(crate) fn resolve(&mut self, text: &[u8], stacks: &mut NamedStacks<'_>) -> StringId {
        let Some((number, name)) = split_number(text) else {
            return intern(text, stacks);
        };
        if !name.is_empty() {
            let name = intern(name, stacks);
            self.numbers.insert(number, name);
            return name;
        }
        if let Some(&known) = self.numbers.get(&number) {
            return known;
        }
        stacks.report.note(
            "names_undefined",
            "names that are numbers which no line explains stand as these numbers",
        );
        intern(text, stacks)
    }
}

/// Whether a name breaks off within its number, as at the end of a file that is not whole.
pub(crate) fn is_cut(text: &[u8]) -> bool {
    let number = text.strip_prefix(b"(");
    number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

/// The number and what stands behind it.
fn split_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let rest = text.strip_prefix(b"(")?;
    let end = rest.iter().position(|&byte| byte == b')')?;
    let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((number, rest[end + 1..].trim_ascii_start()))
}

fn intern(text: &[u8], stacks: &mut NamedStacks<'_>) -> StringId {
    let text = stacks.text(text.trim_ascii_end());
    let text = stacks.cut(&text);
    let text = if text == UNKNOWN { "" } else { text };
    stacks.profile.symbols.strings.intern(text)
}
