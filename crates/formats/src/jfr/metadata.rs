//! What the metadata event of a chunk says of its types.

use std::borrow::Cow;

use crate::jfr::chunk::Chunk;
use crate::jfr::chunk::METADATA_TYPE;
use crate::jfr::cursor::Cursor;
use crate::jfr::cursor::Damage;
use crate::jfr::cursor::Text;
use crate::jfr::cursor::Width;

/// The types of a chunk, each with its fields in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Metadata<'a> {
    strings: Vec<Cow<'a, str>>,
    pub(crate) classes: Vec<Class>,
}

/// A type: a primitive, a struct or an event. Names are positions in the strings.
#[derive(Debug)]
pub(crate) struct Class {
    name: usize,
    pub(crate) id: u64,
    pub(crate) fields: Vec<Field>,
}

/// A field of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    name: usize,
    /// The id of its type.
    pub(crate) class: u64,
    /// Whether only the key of a constant stands in its place.
    pub(crate) is_constant: bool,
    pub(crate) is_array: bool,
    pub(crate) unit: TimeUnit,
}

/// What a number that is a time span counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    #[default]
    Ticks,
    Nanoseconds(i64),
}

/// JDK 25 has 7,000 strings and as many elements; each costs far more in memory than in the file.
const MAX_STRINGS: usize = 1 << 18;
const MAX_ELEMENTS: usize = 1 << 18;

/// Root, region, class, field, annotation: five levels.
const MAX_DEPTH: usize = 16;

const TIMESPAN: &str = "jdk.jfr.Timespan";

impl<'a> Metadata<'a> {
    /// Reads the metadata event at `position`.
    pub(crate) fn parse(
        chunk: &Chunk<'a>,
        position: usize,
        repaired: &mut u64,
    ) -> Result<Self, Damage> {
        let event = chunk.event(position)?;
        let mut cursor = Cursor::new(&chunk.data[..event.end], event.body, chunk.is_compressed);
        if event.type_id != METADATA_TYPE {
            return Err(cursor.damage("no metadata event is where it should be"));
        }
        // Start, duration and number of the event.
        for _ in 0..3 {
            cursor.skip_number(Width::Long)?;
        }
        let count = cursor.count()?;
        if count > MAX_STRINGS {
            return Err(cursor.damage("the metadata has more strings than any recorder writes"));
        }
        let mut strings = Vec::with_capacity(count);
        for _ in 0..count {
            strings.push(match cursor.text(usize::MAX, repaired)? {
                Text::Here(text) => text,
                Text::Constant(_) => Cow::Borrowed(""),
            });
        }
        let mut parser = Parser {
            cursor,
            metadata: Self {
                strings,
                classes: Vec::new(),
            },
            annotations: Vec::new(),
            elements: 0,
        };
        parser.element(Parent::Other, 0)?;
        parser.apply_annotations();
        Ok(parser.metadata)
    }

    pub(crate) fn class_name(&self, class: &Class) -> &str {
        &self.strings[class.name]
    }

    pub(crate) fn field_name(&self, field: &Field) -> &str {
        &self.strings[field.name]
    }

    /// The position of the class with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.classes
            .iter()
            .position(|class| self.class_name(class) == name)
    }
}

#[cfg(test)]
impl Metadata<'_> {
    /// Adds a class without fields and says where it is.
    pub(crate) fn add_class(&mut self, name: &str, id: u64) -> usize {
        self.strings.push(Cow::Owned(name.to_owned()));
        self.classes.push(Class {
            name: self.strings.len() - 1,
            id,
            fields: Vec::new(),
        });
        self.classes.len() - 1
    }

    /// Adds a field behind the others of a class.
    pub(crate) fn add_field(&mut self, class: usize, name: &str, type_id: u64, is_array: bool) {
        self.strings.push(Cow::Owned(name.to_owned()));
        self.classes[class].fields.push(Field {
            name: self.strings.len() - 1,
            class: type_id,
            is_constant: false,
            is_array,
            unit: TimeUnit::Ticks,
        });
    }
}

impl TimeUnit {
    /// The unit of an annotation `jdk.jfr.Timespan`.
    fn from_name(name: &str) -> Self {
        match name {
            "NANOSECONDS" => Self::Nanoseconds(1),
            "MICROSECONDS" => Self::Nanoseconds(1_000),
            "MILLISECONDS" => Self::Nanoseconds(1_000_000),
            "SECONDS" => Self::Nanoseconds(1_000_000_000),
            _ => Self::Ticks,
        }
    }
}

/// What an element stands in.
#[derive(Clone, Copy, Debug)]
enum Parent {
    Other,
    Class(usize),
    Field(usize, usize),
}

/// An annotation of a field; its type may be described after it.
#[derive(Clone, Copy, Debug)]
struct Annotation {
    class: usize,
    field: usize,
    type_id: u64,
    unit: TimeUnit,
}

/// The attributes that matter, of any element.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    name: usize,
    id: u64,
    class: u64,
    is_constant: bool,
    is_array: bool,
    unit: TimeUnit,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    metadata: Metadata<'a>,
    annotations: Vec<Annotation>,
    elements: usize,
}

impl Parser<'_> {
    fn element(&mut self, parent: Parent, depth: usize) -> Result<(), Damage> {
        self.elements += 1;
        if depth > MAX_DEPTH || self.elements > MAX_ELEMENTS {
            let problem = "the metadata has more elements than any recorder writes";
            return Err(self.cursor.damage(problem));
        }
        let element = self.string()?;
        let attributes = self.attributes()?;
        let classes = &mut self.metadata.classes;
        let inside = match (&*self.metadata.strings[element], parent) {
            ("class", _) => {
                classes.push(Class {
                    name: attributes.name,
                    id: attributes.id,
                    fields: Vec::new(),
                });
                Parent::Class(classes.len() - 1)
            }
            ("field", Parent::Class(class)) => {
                let fields = &mut classes[class].fields;
                fields.push(Field {
                    name: attributes.name,
                    class: attributes.class,
                    is_constant: attributes.is_constant,
                    is_array: attributes.is_array,
                    unit: TimeUnit::Ticks,
                });
                Parent::Field(class, fields.len() - 1)
            }
            ("annotation", Parent::Field(class, field)) => {
                self.annotations.push(Annotation {
                    class,
                    field,
                    type_id: attributes.class,
                    unit: attributes.unit,
                });
                Parent::Other
            }
            _ => Parent::Other,
        };
        for _ in 0..self.cursor.count()? {
            self.element(inside, depth + 1)?;
        }
        Ok(())
    }

    fn attributes(&mut self) -> Result<Attributes, Damage> {
        let mut attributes = Attributes::default();
        for _ in 0..self.cursor.count()? {
            let key = self.string()?;
            let value = self.string()?;
            let text = &*self.metadata.strings[value];
            match &*self.metadata.strings[key] {
                "name" => attributes.name = value,
                "id" => attributes.id = type_id(text),
                "class" => attributes.class = type_id(text),
                "constantPool" => attributes.is_constant = text == "true",
                "dimension" => attributes.is_array = text != "0",
                "value" => attributes.unit = TimeUnit::from_name(text),
                _ => {}
            }
        }
        Ok(attributes)
    }

    /// The position of a string, which exists.
    fn string(&mut self) -> Result<usize, Damage> {
        let index = self.cursor.number(Width::Int)?;
        match usize::try_from(index) {
            Ok(index) if index < self.metadata.strings.len() => Ok(index),
            _ => Err(self
                .cursor
                .damage("the metadata refers to a string that does not exist")),
        }
    }

    fn apply_annotations(&mut self) {
        let Some(timespan) = self.metadata.find(TIMESPAN) else {
            return;
        };
        let timespan = self.metadata.classes[timespan].id;
        for annotation in &self.annotations {
            if annotation.type_id == timespan {
                let class = &mut self.metadata.classes[annotation.class];
                class.fields[annotation.field].unit = annotation.unit;
            }
        }
    }
}

/// Ids are written as decimal numbers, by some recorders as negative ones. Thousands of elements may
/// share a text, which is not looked at when it has more digits than a number.
fn type_id(text: &str) -> u64 {
    const MOST_DIGITS: usize = 20;
    if text.len() > MOST_DIGITS {
        return u64::MAX;
    }
    let signed = text.parse::<i64>().map(|id| id as u64);
    signed.or_else(|_| text.parse()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_no_more_digits_than_numbers() {
        let cases = [
            ("7", 7),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
            ("-9223372036854775808", 1 << 63),
            ("00000000000000000007", 7),
            ("000000000000000000007", u64::MAX),
            ("", u64::MAX),
        ];
        for (text, expected) in cases {
            assert_eq!(type_id(text), expected, "{text}");
        }
    }
}
