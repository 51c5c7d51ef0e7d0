//! Synthetic profiles with the shape of real ones: ten thousand stacks a service drawn by Zipf's
//! law, mean depth 21, stacks that share most of their frames.

use candela_model::FrameKind;
use candela_model::FunctionId;
use candela_model::Labels;
use candela_model::Location;
use candela_model::LocationId;
use candela_model::Mapping;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::Sample;

const STACKS: usize = 10_000;
const LOCATIONS: usize = 2_550;
const PERIOD_NS: i64 = 10_000_000;

/// Who is profiled, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) services: usize,
    /// Of each service.
    pub(crate) pods: usize,
    /// From one cpu profile of a pod to its next.
    pub(crate) interval_ns: i64,
    /// Stacks that are drawn for a profile, those that come twice included.
    pub(crate) draws: usize,
}

/// Numbers that are the same in each run (SplitMix64).
#[derive(Debug)]
struct Random(u64);

/// The stacks of one service.
#[derive(Debug)]
struct Service {
    name: String,
    /// Locations by number: function, file and line.
    functions: Vec<(String, String, u32)>,
    /// Location numbers, root first.
    stacks: Vec<Vec<u32>>,
    /// Cumulated probability of the stacks up to each one.
    cumulated: Vec<f64>,
}

/// Profiles in the order of their time.
#[derive(Debug)]
pub(crate) struct Generator {
    shape: Shape,
    random: Random,
    services: Vec<Service>,
    start_ns: i64,
    next: usize,
}

impl Shape {
    /// That of S1: a profile every 15 s.
    pub(crate) const FLEET: Self = Self {
        services: 20,
        pods: 5,
        interval_ns: 15_000_000_000,
        draws: 700,
    };
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Generator {
    pub(crate) fn new(shape: Shape, start_ns: i64) -> Self {
        let mut random = Random(42);
        let services = (0..shape.services)
            .map(|number| Service::new(number, &mut random))
            .collect();
        Self {
            shape,
            random,
            services,
            start_ns,
            next: 0,
        }
    }

    /// The next profile: of the next pod, after all pods of the next interval.
    pub(crate) fn profile(&mut self) -> Profile {
        let Shape {
            services,
            pods,
            interval_ns,
            draws,
        } = self.shape;
        let round = self.next / (services * pods);
        let place = self.next % (services * pods);
        self.next += 1;
        let service = &self.services[place / pods];
        let pod = format!("{}-7d9c5b6f4-{}", service.name, place % pods);
        let mut counts = vec![0_i64; STACKS];
        for _ in 0..draws {
            let at = self.random.unit();
            let stack = service.cumulated.partition_point(|&upto| upto < at);
            counts[stack.min(STACKS - 1)] += 1;
        }
        let mut profile = Profile::default();
        let labels = Labels::from_pairs([
            ("service_name", service.name.as_str()),
            ("namespace", "production"),
            ("pod", &pod),
        ]);
        let profile_type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
            .parse()
            .expect("five parts");
        let mut series = ProfileSeries::new(labels, profile_type);
        // Pods do not sample in step.
        let lag_ns = place as i64 * interval_ns / (services * pods) as i64;
        series.start_ns = self.start_ns + round as i64 * interval_ns + lag_ns;
        series.duration_ns = interval_ns;
        series.period = PERIOD_NS;
        let mapping = mapping(&mut profile, &service.name);
        for (stack, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let leaf_first: Vec<LocationId> = service.stacks[stack]
                .iter()
                .rev()
                .map(|&number| location(&mut profile, service, mapping, number))
                .collect();
            let stack = profile.stacks.intern(&leaf_first);
            series.samples.push(Sample::new(stack, count * PERIOD_NS));
        }
        profile.series.push(series);
        profile
    }
}

impl Service {
    fn new(number: usize, random: &mut Random) -> Self {
        let name = format!("service-{number:02}");
        let functions = (0..LOCATIONS)
            .map(|location| {
                // Three lines of a function on average.
                let function = location / 3;
                let package = function % 40;
                (
                    format!(
                        "acme::{}::module_{package:02}::Handler::method_{function}",
                        &name
                    ),
                    format!("src/module_{package:02}/handler.rs"),
                    (function * 7 + location % 3) as u32 + 1,
                )
            })
            .collect();
        let mut stacks: Vec<Vec<u32>> = vec![vec![0]];
        while stacks.len() < STACKS {
            let from = &stacks[random.below(stacks.len())];
            // 4.56 new frames on average at a depth around 21.
            let depth = 13 + random.below(9) + random.below(9);
            let added = 1 + random.below(5) + random.below(5) / 2 + random.below(3);
            let shared = depth.saturating_sub(added).clamp(1, from.len());
            let mut stack = from[..shared].to_vec();
            while stack.len() < depth.max(shared + 1) {
                stack.push(random.below(LOCATIONS) as u32);
                if stack.len() >= shared + added {
                    break;
                }
            }
            stacks.push(stack);
        }
        // Which stack is how frequent has nothing to do with when it was made.
        for index in (1..stacks.len()).rev() {
            stacks.swap(index, random.below(index + 1));
        }
        let weights: Vec<f64> = (1..=STACKS).map(|rank| 1.0 / rank as f64).collect();
        let all: f64 = weights.iter().sum();
        let mut upto = 0.0;
        let cumulated = weights
            .iter()
            .map(|weight| {
                upto += weight / all;
                upto
            })
            .collect();
        Self {
            name,
            functions,
            stacks,
            cumulated,
        }
    }
}

fn mapping(profile: &mut Profile, service: &str) -> candela_model::MappingId {
    let symbols = &mut profile.symbols;
    let file = symbols.strings.intern(&format!("/usr/bin/{service}"));
    let build_id = symbols
        .strings
        .intern("6a1f0c2e9d8b7a6f5e4d3c2b1a09f8e7d6c5b4a3");
    symbols.intern_mapping(Mapping {
        memory_start: 0x40_0000,
        memory_limit: 0x90_0000,
        file_offset: 0,
        file,
        build_id,
    })
}

fn location(
    profile: &mut Profile,
    service: &Service,
    mapping: candela_model::MappingId,
    number: u32,
) -> LocationId {
    let (name, file, line) = &service.functions[number as usize];
    let symbols = &mut profile.symbols;
    let start_line = line / 7 * 7;
    let function: FunctionId = symbols.intern_function(name, "", file, start_line);
    let place = Location::new(FrameKind::Native, 0x40_0000 + u64::from(number) * 16);
    symbols.intern_location(&place.in_mapping(mapping), &[(function, *line, 0)])
}
