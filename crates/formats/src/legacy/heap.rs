//! `heap profile: OBJECTS: BYTES [OBJECTS: BYTES] @ TYPE/RATE`: what is in use, and in brackets what
//! was ever allocated.

use candela_model::FrameKind;
use candela_model::Profile;
use candela_model::ProfileType;
use candela_model::SampleLabel;

use crate::error::ReadError;
use crate::legacy::TEXT_NAME;
use crate::legacy::address_stacks::AddressStacks;
use crate::legacy::address_stacks::Whole;
use crate::legacy::go_frames::Record;
use crate::legacy::go_frames::name_frames;
use crate::legacy::lines::Lines;
use crate::legacy::lines::calls;
use crate::legacy::memory_map;
use crate::legacy::unsample::unsampled;
use crate::naming;
use crate::options::ReadOptions;
use crate::report::Report;

/// What the first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    content: Content,
    /// Bytes per sample; 1 or less says that values are as they are.
    rate: i64,
    /// Whether the brackets have something of their own.
    has_allocations: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Go and sampling C++ servers write it.
    Heap,
    /// How the heap grew.
    Growth,
    /// What the heap holds without using it.
    Fragmentation,
}

/// Objects and bytes in use, and in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) in_use: (i64, i64),
    pub(crate) allocated: (i64, i64),
}

/// A line as taken apart.
struct Sample {
    leaf_first: Vec<u64>,
    values: Vec<i64>,
    block_size: i64,
}

pub(crate) fn read(
    header: &Header,
    mut lines: Lines<'_>,
    options: &ReadOptions,
) -> Result<(Profile, Report), ReadError> {
    let types = header.types();
    let mut stacks = AddressStacks::new(&options.limits, FrameKind::Native, types.len());
    while let Some(record) = Record::next(&mut lines, &options.limits) {
        match header.sample(record.line.text) {
            Some(sample) => sample.add_to(&mut stacks, &record)?,
            None => stacks.bad_line(record.line.offset),
        }
    }
    let memory_map =
        memory_map::read_behind_heading(&mut lines, &options.limits, &mut stacks.report);
    let whole = Whole {
        types,
        period: header.rate.max(1),
        duration_ns: 0,
        memory_map,
        addresses_are_ids: false,
    };
    stacks.finish(TEXT_NAME, whole, options)
}

impl Header {
    /// The header behind `heap profile:`.
    pub(crate) fn parse(rest: &str) -> Option<Self> {
        let (amounts, source) = rest.split_once('@')?;
        let amounts = Amounts::parse(amounts)?;
        let (name, rate) = source.trim().split_once('/').unwrap_or((source.trim(), ""));
        let rate = match rate {
            "" => 0,
            rate => rate.parse::<i64>().ok()?,
        };
        // The samplers of `heap` choose at random up to RATE, which is half of it on average.
        let (content, rate) = match name {
            "heap_v2" | "heapz_v2" => (Content::Heap, rate),
            "heap" => (Content::Heap, rate / 2),
            "heapprofile" => (Content::Heap, 1),
            "growth" | "growthz" => (Content::Growth, 1),
            "fragmentation" | "fragmentationz" => (Content::Fragmentation, 1),
            _ => return None,
        };
        Some(Self {
            content,
            rate,
            has_allocations: content == Content::Heap && amounts.brackets_differ(),
        })
    }

    /// As many as a sample has values.
    fn types(&self) -> Vec<ProfileType> {
        match self.content {
            Content::Heap => heap_types(self.has_allocations),
            Content::Growth => {
                let growth = ("growth", "bytes");
                [("objects", "count"), growth]
                    .map(|sample| naming::typed("memory_growth", sample, growth))
                    .to_vec()
            }
            Content::Fragmentation => {
                let space = ("space", "bytes");
                [("objects", "count"), space]
                    .map(|sample| naming::typed("memory_fragmentation", sample, space))
                    .to_vec()
            }
        }
    }

    fn sample(&self, text: &str) -> Option<Sample> {
        let (amounts, stack) = text.split_once('@')?;
        let amounts = Amounts::parse(amounts).filter(Amounts::are_sound)?;
        let leaf_first = calls(stack)?;
        Some(Sample {
            leaf_first,
            values: amounts.values(self.rate, self.has_allocations),
            block_size: amounts.block_size(),
        })
    }
}

/// The types of memory in use, behind those of all allocations where there are some: the order that
/// Go writes.
pub(crate) fn heap_types(has_allocations: bool) -> Vec<ProfileType> {
    let space = ("space", "bytes");
    let mut types = Vec::new();
    if has_allocations {
        types.push(naming::profile_type(
            ("alloc_objects", "count"),
            space,
            None,
        ));
        types.push(naming::profile_type(("alloc_space", "bytes"), space, None));
    }
    types.push(naming::profile_type(
        ("inuse_objects", "count"),
        space,
        None,
    ));
    types.push(naming::profile_type(("inuse_space", "bytes"), space, None));
    types
}

impl Amounts {
    /// `OBJECTS: BYTES [OBJECTS: BYTES]`, spaces as they come.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (in_use, brackets) = text.split_once('[')?;
        let (brackets, behind) = brackets.split_once(']')?;
        let pair = |text: &str| {
            let (count, bytes) = text.split_once(':')?;
            Some((count.trim().parse().ok()?, bytes.trim().parse().ok()?))
        };
        let amounts = Self {
            in_use: pair(in_use)?,
            allocated: pair(brackets)?,
        };
        behind.trim().is_empty().then_some(amounts)
    }

    /// Whether the brackets say more than what is in use, or nothing at all.
    pub(crate) fn brackets_differ(&self) -> bool {
        let differs = |all: i64, in_use: i64| all != in_use && all != 0;
        differs(self.allocated.0, self.in_use.0) || differs(self.allocated.1, self.in_use.1)
    }

    /// Bytes without an object are of nothing.
    pub(crate) fn are_sound(&self) -> bool {
        let is_sound = |(count, bytes): (i64, i64)| count != 0 || bytes == 0;
        is_sound(self.in_use) && is_sound(self.allocated)
    }

    /// What the amounts stand for, in the order of [`heap_types`].
    pub(crate) fn values(&self, rate: i64, has_allocations: bool) -> Vec<i64> {
        let mut values = Vec::with_capacity(4);
        let with_allocations = [self.allocated, self.in_use];
        for (count, bytes) in &with_allocations[usize::from(!has_allocations)..] {
            let (count, bytes) = unsampled(*count, *bytes, rate);
            values.extend([count, bytes]);
        }
        values
    }

    /// Bytes of an object.
    pub(crate) fn block_size(&self) -> i64 {
        let (count, bytes) = if self.in_use.0 != 0 {
            self.in_use
        } else {
            self.allocated
        };
        bytes.checked_div(count).unwrap_or(0)
    }
}

impl Sample {
    fn add_to(
        mut self,
        stacks: &mut AddressStacks<'_>,
        record: &Record<'_>,
    ) -> Result<(), ReadError> {
        if !record.frames.is_empty() {
            stacks.set_kind(FrameKind::Go);
        }
        name_frames(&mut self.leaf_first, &record.frames, stacks);
        let labels = vec![block_size_label(self.block_size, stacks)];
        let label_set = stacks.label_set(labels);
        stacks.add(&self.leaf_first, label_set, &self.values)
    }
}

/// The label that Go's pprof form has, too: without a unit, so that both forms are equal.
pub(crate) fn block_size_label(bytes: i64, stacks: &mut AddressStacks<'_>) -> SampleLabel {
    stacks.number_label("bytes", bytes, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_is_scaled() {
        let parse = |source: &str| Header::parse(&format!(" 1: 2 [ 1: 2] @ {source}"));
        let cases = [
            ("heap_v2/524288", Content::Heap, 524_288),
            ("heapz_v2/7", Content::Heap, 7),
            ("heap/1048576", Content::Heap, 524_288),
            ("heapprofile", Content::Heap, 1),
            ("heap_v2", Content::Heap, 0),
            ("growthz", Content::Growth, 1),
            ("fragmentationz", Content::Fragmentation, 1),
        ];
        for (source, content, rate) in cases {
            let header = parse(source).expect(source);
            assert_eq!((header.content, header.rate), (content, rate), "{source}");
            assert!(!header.has_allocations);
        }
        assert_eq!(parse("heat"), None);
        assert_eq!(Header::parse("1: 2 @ heap"), None);
        let both = Header::parse("1: 2 [3: 4] @ heap/8").expect("sound");
        assert_eq!(both.types().len(), 4);
    }
}
