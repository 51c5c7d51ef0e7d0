//! Bytes to a profile.

use candela_model::FrameKind;
use candela_model::Function;
use candela_model::FunctionId;
use candela_model::LabelSetId;
use candela_model::LabelValue;
use candela_model::Labels;
use candela_model::Link;
use candela_model::LinkId;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::MappingId;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;
use candela_model::Sample;
use candela_model::SampleLabel;
use candela_model::StackId;
use candela_model::StringId;

use super::CodecError;
use super::PAYLOAD_VERSION;
use super::varint::Decoder;

/// For each position in the bytes the id in the profile. They are the same in what we write;
/// interning anew means that even bytes which only look like ours make a valid profile.
#[derive(Default)]
struct Positions {
    strings: Vec<StringId>,
    functions: Vec<FunctionId>,
    mappings: Vec<MappingId>,
    locations: Vec<LocationId>,
    stacks: Vec<StackId>,
    label_sets: Vec<LabelSetId>,
    links: usize,
}

/// The profile that these bytes are the encoding of.
pub(crate) fn decode_profile(bytes: &[u8]) -> Result<Profile, CodecError> {
    let mut decoder = Decoder::new(bytes);
    let version = decoder.array::<1>()?[0];
    if version > PAYLOAD_VERSION {
        return Err(CodecError::Newer { found: version });
    }
    let mut profile = Profile::default();
    let mut positions = Positions::default();
    decode_symbols(&mut decoder, &mut profile, &mut positions)?;
    decode_stacks(&mut decoder, &mut profile, &mut positions)?;
    decode_label_sets(&mut decoder, &mut profile, &mut positions)?;
    positions.links = decoder.count("the number of links")?;
    profile.links.clear();
    for _ in 0..positions.links {
        profile.links.push(Link {
            trace_id: decoder.array()?,
            span_id: decoder.array()?,
        });
    }
    for _ in 0..decoder.count("the number of series")? {
        let series = decode_series(&mut decoder, &positions)?;
        profile.series.push(series);
    }
    Ok(profile)
}

fn string(decoder: &mut Decoder<'_>, positions: &Positions) -> Result<StringId, CodecError> {
    let index = decoder.index("a string id", positions.strings.len())?;
    Ok(positions.strings[index as usize])
}

fn decode_symbols(
    decoder: &mut Decoder<'_>,
    profile: &mut Profile,
    positions: &mut Positions,
) -> Result<(), CodecError> {
    let symbols = &mut profile.symbols;
    for _ in 0..decoder.count("the number of strings")? {
        let id = symbols.strings.intern(decoder.text()?);
        positions.strings.push(id);
    }
    for _ in 0..decoder.count("the number of functions")? {
        let function = Function {
            name: string(decoder, positions)?,
            system_name: string(decoder, positions)?,
            file: string(decoder, positions)?,
            start_line: decoder.narrow("a start line")?,
        };
        positions
            .functions
            .push(symbols.intern_function_ids(function));
    }
    for _ in 0..decoder.count("the number of mappings")? {
        let mapping = Mapping {
            memory_start: decoder.unsigned()?,
            memory_limit: decoder.unsigned()?,
            file_offset: decoder.unsigned()?,
            file: string(decoder, positions)?,
            build_id: string(decoder, positions)?,
        };
        positions.mappings.push(symbols.intern_mapping(mapping));
    }
    let mut lines = Vec::new();
    for _ in 0..decoder.count("the number of locations")? {
        let mapping = decoder.index("a mapping id", positions.mappings.len())?;
        let address = decoder.unsigned()?;
        let kind = FrameKind::from_number(decoder.array::<1>()?[0]);
        lines.clear();
        for _ in 0..decoder.count("the number of lines")? {
            let function = decoder.index("a function id", positions.functions.len())?;
            let line = decoder.narrow("a line")?;
            let column = decoder.narrow("a column")?;
            lines.push((positions.functions[function as usize], line, column));
        }
        let location =
            Location::new(kind, address).in_mapping(positions.mappings[mapping as usize]);
        positions
            .locations
            .push(symbols.intern_location(&location, &lines));
    }
    Ok(())
}

fn decode_stacks(
    decoder: &mut Decoder<'_>,
    profile: &mut Profile,
    positions: &mut Positions,
) -> Result<(), CodecError> {
    let mut stack = Vec::new();
    for _ in 0..decoder.count("the number of stacks")? {
        stack.clear();
        for _ in 0..decoder.count("the depth of a stack")? {
            let location = decoder.index("a location id", positions.locations.len())?;
            stack.push(positions.locations[location as usize]);
        }
        positions.stacks.push(profile.stacks.intern(&stack));
    }
    Ok(())
}

fn decode_label_sets(
    decoder: &mut Decoder<'_>,
    profile: &mut Profile,
    positions: &mut Positions,
) -> Result<(), CodecError> {
    for _ in 0..decoder.count("the number of label sets")? {
        let mut set = Vec::new();
        for _ in 0..decoder.count("the size of a label set")? {
            let key = string(decoder, positions)?;
            let value = match decoder.array::<1>()?[0] {
                0 => LabelValue::Text(string(decoder, positions)?),
                1 => LabelValue::Number {
                    value: decoder.signed()?,
                    unit: string(decoder, positions)?,
                },
                _ => return Err(decoder.out_of_range("the kind of a label value")),
            };
            set.push(SampleLabel { key, value });
        }
        positions.label_sets.push(profile.label_sets.intern(set));
    }
    Ok(())
}

fn decode_series(
    decoder: &mut Decoder<'_>,
    positions: &Positions,
) -> Result<ProfileSeries, CodecError> {
    let mut labels = Labels::default();
    for _ in 0..decoder.count("the number of labels")? {
        let name = decoder.text()?;
        labels.set(name, decoder.text()?);
    }
    let mut parts = [""; 5];
    for part in &mut parts {
        *part = decoder.text()?;
    }
    let [name, sample_type, sample_unit, period_type, period_unit] = parts;
    let profile_type = ProfileType::new(name, sample_type, sample_unit, period_type, period_unit);
    let mut series = ProfileSeries::new(labels, profile_type);
    series.start_ns = decoder.signed()?;
    series.duration_ns = decoder.signed()?;
    series.period = decoder.signed()?;
    let sample_count = decoder.count("the number of samples")?;
    series.samples.reserve(sample_count);
    for _ in 0..sample_count {
        let stack = decoder.index("a stack id", positions.stacks.len())?;
        let value = decoder.signed()?;
        let label_set = decoder.index("a label set id", positions.label_sets.len())?;
        let link = decoder.index("a link id", positions.links)?;
        series.samples.push(Sample {
            stack: positions.stacks[stack as usize],
            value,
            label_set: positions.label_sets[label_set as usize],
            link: LinkId(link),
            time_ns: decoder.signed()?,
        });
    }
    Ok(series)
}
