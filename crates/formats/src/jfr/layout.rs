//! How the values of each type are written, made from the metadata: what is not asked for is
//! stepped over, whatever it is.

use hashbrown::HashMap;

use crate::jfr::cursor::Cursor;
use crate::jfr::cursor::Damage;
use crate::jfr::cursor::Width;
use crate::jfr::metadata::Field;
use crate::jfr::metadata::Metadata;

/// The layouts of all types of a chunk.
#[derive(Debug)]
pub(crate) struct Layouts {
    by_id: HashMap<u64, u32>,
    values: Vec<Value>,
    /// By class; only structs have steps.
    steps: Vec<Vec<Step>>,
    /// By class: how deep structs nest in it.
    heights: Vec<usize>,
}

/// How a value of some type is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// So many bytes as they are.
    Bytes(usize),
    Number(Width),
    Float,
    Text,
    /// One field after the other: the position of the class.
    Struct(u32),
    /// No bytes at all.
    Nothing,
    /// A struct that contains itself, or nests deeper than any recorder writes.
    Unreadable,
}

/// One field of a struct or an event, in the order in which they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) value: Value,
    pub(crate) is_array: bool,
    /// Where a number goes, the bits of a float, or the position of anything else.
    slot: u8,
}

/// What stands in the place of a field, for those who ask for it: a recording may call anything
/// by the names that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The key of a constant.
    Key,
    Number,
    Byte,
    Float,
    Text,
    /// An array of structs.
    Structs,
    Other,
}

/// How to read the fields that are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    steps: Vec<Step>,
}

/// How many fields a plan can ask for.
pub(crate) const SLOTS: usize = 12;

/// What the fields asked for hold; 0 where the type has no such field, as is the key of no constant.
pub(crate) type Slots = [i64; SLOTS];

const NO_SLOT: u8 = u8::MAX;

/// `jdk.types.StackTrace` nests once, nothing in any JDK more than twice.
const MAX_NESTING: usize = 16;

impl Step {
    /// Whether something is written at all; of an array there is a count.
    fn takes_bytes(&self) -> bool {
        self.value != Value::Nothing || self.is_array
    }
}

impl Layouts {
    pub(crate) fn new(metadata: &Metadata<'_>) -> Self {
        let ids = metadata.classes.iter().enumerate();
        let mut layouts = Self {
            by_id: ids
                .map(|(position, class)| (class.id, position as u32))
                .collect(),
            values: vec![Value::Unreadable; metadata.classes.len()],
            steps: vec![Vec::new(); metadata.classes.len()],
            heights: vec![0; metadata.classes.len()],
        };
        let mut is_known = vec![false; metadata.classes.len()];
        for class in 0..metadata.classes.len() {
            layouts.lay_out(metadata, class, &mut is_known, 0);
        }
        layouts
    }

    /// The position of the class with this id.
    pub(crate) fn class(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|&position| position as usize)
    }

    /// How values of a class are written.
    pub(crate) fn value(&self, class: usize) -> Value {
        self.values[class]
    }

    /// The plan that reads the fields to which `slot` gives a place, and ends behind the last. Of
    /// several fields with one place the first gets it.
    pub(crate) fn plan(
        &self,
        metadata: &Metadata<'_>,
        class: usize,
        slot: impl Fn(&str, Shape) -> Option<u8>,
    ) -> Plan {
        let mut plan = self.whole_plan(metadata, class, slot);
        let last = plan.steps.iter().rposition(|step| step.slot != NO_SLOT);
        plan.steps.truncate(last.map_or(0, |last| last + 1));
        plan
    }

    /// The same, but it ends behind the value: for elements of an array.
    pub(crate) fn whole_plan(
        &self,
        metadata: &Metadata<'_>,
        class: usize,
        slot: impl Fn(&str, Shape) -> Option<u8>,
    ) -> Plan {
        let mut is_taken = [false; SLOTS];
        let steps = metadata.classes[class].fields.iter().map(|field| {
            let mut step = self.step(field);
            if let Some(slot) = slot(metadata.field_name(field), self.shape(field))
                && !std::mem::replace(&mut is_taken[usize::from(slot)], true)
            {
                step.slot = slot;
            }
            step
        });
        Plan {
            // Fields without bytes would cost time in each event, and no event has to grow for it.
            steps: steps
                .filter(|step| step.takes_bytes() || step.slot != NO_SLOT)
                .collect(),
        }
    }

    /// What stands in the place of a field.
    pub(crate) fn shape(&self, field: &Field) -> Shape {
        match self.step(field) {
            step if field.is_constant && !step.is_array => Shape::Key,
            Step {
                value: Value::Struct(_),
                is_array: true,
                ..
            } => Shape::Structs,
            step if step.is_array => Shape::Other,
            step => match step.value {
                Value::Number(_) => Shape::Number,
                Value::Float => Shape::Float,
                Value::Text => Shape::Text,
                Value::Bytes(1) => Shape::Byte,
                _ => Shape::Other,
            },
        }
    }

    /// Reads what a plan asks for.
    #[inline]
    pub(crate) fn read(
        &self,
        plan: &Plan,
        cursor: &mut Cursor<'_>,
        slots: &mut Slots,
    ) -> Result<(), Damage> {
        for (index, step) in plan.steps.iter().enumerate() {
            let Some(slot) = slots.get_mut(usize::from(step.slot)) else {
                self.skip_step(step, cursor)?;
                continue;
            };
            match step.value {
                Value::Number(width) if !step.is_array => *slot = cursor.number(width)?,
                Value::Float if !step.is_array => *slot = i64::from(cursor.float()?.to_bits()),
                _ => {
                    *slot = cursor.position() as i64;
                    if index + 1 < plan.steps.len() {
                        self.skip_step(step, cursor)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Steps over a value. This takes time in proportion to its bytes: each step of a struct takes
    /// one at least.
    #[inline]
    pub(crate) fn skip(&self, value: Value, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        match value {
            Value::Number(width) => cursor.skip_number(width),
            Value::Bytes(bytes) => cursor.skip(bytes),
            Value::Float => cursor.skip(4),
            Value::Text => cursor.skip_text(),
            Value::Struct(class) => {
                for step in &self.steps[class as usize] {
                    self.skip_step(step, cursor)?;
                }
                Ok(())
            }
            Value::Nothing => Ok(()),
            Value::Unreadable => Err(cursor.damage("a type is not described, or contains itself")),
        }
    }

    #[inline]
    fn skip_step(&self, step: &Step, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        if !step.is_array {
            return self.skip(step.value, cursor);
        }
        let count = cursor.count()?;
        if step.value == Value::Nothing {
            return Ok(());
        }
        for _ in 0..count {
            self.skip(step.value, cursor)?;
        }
        Ok(())
    }

    fn lay_out(
        &mut self,
        metadata: &Metadata<'_>,
        class: usize,
        is_known: &mut [bool],
        nesting: usize,
    ) {
        if is_known[class] || nesting > MAX_NESTING {
            return;
        }
        // Until it is done it stands as unreadable, and so does what contains itself.
        is_known[class] = true;
        let described = &metadata.classes[class];
        if let Some(value) = primitive(metadata.class_name(described)) {
            self.values[class] = value;
            return;
        }
        let mut steps = Vec::with_capacity(described.fields.len());
        let mut height = 0;
        for field in &described.fields {
            if !field.is_constant
                && let Some(inner) = self.class(field.class)
            {
                self.lay_out(metadata, inner, is_known, nesting + 1);
                height = height.max(self.heights[inner] + 1);
            }
            let step = self.step(field);
            if step.value == Value::Unreadable || height > MAX_NESTING {
                return;
            }
            if step.takes_bytes() {
                steps.push(step);
            }
        }
        self.heights[class] = height;
        self.values[class] = if steps.is_empty() {
            Value::Nothing
        } else {
            Value::Struct(class as u32)
        };
        self.steps[class] = steps;
    }

    fn step(&self, field: &Field) -> Step {
        let value = match self.class(field.class) {
            _ if field.is_constant => Value::Number(Width::Long),
            Some(class) => self.values[class],
            None => Value::Unreadable,
        };
        Step {
            value,
            is_array: field.is_array,
            slot: NO_SLOT,
        }
    }
}

/// How the types without fields are written.
fn primitive(name: &str) -> Option<Value> {
    let value = match name {
        "boolean" | "byte" => Value::Bytes(1),
        "char" => Value::Number(Width::Char),
        "short" => Value::Number(Width::Short),
        "int" => Value::Number(Width::Int),
        "long" => Value::Number(Width::Long),
        "float" => Value::Float,
        "double" => Value::Bytes(8),
        "java.lang.String" => Value::Text,
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_without_bytes_are_no_steps() {
        let mut metadata = Metadata::default();
        let long = metadata.add_class("long", 1);
        let empty = metadata.add_class("Empty", 2);
        let nested = metadata.add_class("Nested", 3);
        let event = metadata.add_class("jdk.NativeMethodSample", 4);
        metadata.add_field(nested, "nothing", 2, false);
        for _ in 0..1000 {
            metadata.add_field(event, "empty", 2, false);
            metadata.add_field(event, "nested", 3, false);
        }
        metadata.add_field(event, "many", 2, true);
        metadata.add_field(event, "startTime", 1, false);
        let layouts = Layouts::new(&metadata);
        assert_eq!(layouts.value(empty), Value::Nothing);
        assert_eq!(layouts.value(long), Value::Number(Width::Long));
        let slot = |name: &str, _| (name == "startTime").then_some(0);
        for plan in [
            layouts.plan(&metadata, event, slot),
            layouts.whole_plan(&metadata, event, slot),
        ] {
            // The count of the array, and the time.
            assert_eq!(plan.steps.len(), 2);
            let mut slots = [0; SLOTS];
            let mut cursor = Cursor::new(&[0, 7], 0, true);
            assert_eq!(layouts.read(&plan, &mut cursor, &mut slots), Ok(()));
            assert_eq!(slots[0], 7);
        }
    }
}
