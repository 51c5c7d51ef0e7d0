//! The profiles of the day.

use std::time::Duration;

use candela_model::Labels;
use candela_model::Profile;
use candela_model::ProfileSeries;
use candela_model::ProfileType;

use crate::calls::Program;
use crate::day::DAY;
use crate::day::SECOND_NS;
use crate::day::Window;
use crate::day::seconds;
use crate::day::windows;
use crate::deploys::CHANGES;
use crate::deploys::Deploy;
use crate::fleet::Replica;
use crate::fleet::replicas;
use crate::palette::Palette;
use crate::programs::programs;
use crate::sampling::Sampled;

const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 3600 * SECOND_NS;

/// The day of a shop.
#[derive(Clone, Debug)]
pub struct Demo {
    seed: u64,
    end_ns: i64,
    services: Vec<Service>,
    types: Types,
}

#[derive(Clone, Debug)]
struct Service {
    program: Program,
    palette: Palette,
    replicas: Vec<Replica>,
}

#[derive(Clone, Debug)]
struct Types {
    cpu: ProfileType,
    off_cpu: ProfileType,
    allocated: ProfileType,
    in_use: ProfileType,
    contentions: ProfileType,
    delay: ProfileType,
}

impl Demo {
    /// The day that ends at the last full minute before a time, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn new(seed: u64, now_ns: i64) -> Self {
        let services = programs().into_iter().map(|program| {
            let palette = Palette::new(&program);
            Service {
                replicas: replicas(&program, palette.cpu.len(), seed),
                palette,
                program,
            }
        });
        let of = |name, sample, unit, period, period_unit| {
            ProfileType::new(name, sample, unit, period, period_unit)
        };
        Self {
            seed,
            end_ns: now_ns - now_ns.rem_euclid(MINUTE_NS),
            services: services.collect(),
            types: Types {
                cpu: of("process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"),
                off_cpu: of(
                    "off_cpu",
                    "off_cpu",
                    "nanoseconds",
                    "off_cpu",
                    "nanoseconds",
                ),
                allocated: of("memory", "alloc_space", "bytes", "space", "bytes"),
                in_use: of("memory", "inuse_space", "bytes", "space", "bytes"),
                contentions: of("mutex", "contentions", "count", "contentions", "count"),
                delay: of("mutex", "delay", "nanoseconds", "contentions", "count"),
            },
        }
    }

    /// When the day begins, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_ns(&self) -> i64 {
        self.at_ns(DAY)
    }

    /// When it ends.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// The moment so long before the end.
    #[must_use]
    pub fn at_ns(&self, before_end: Duration) -> i64 {
        self.end_ns - seconds(before_end) * SECOND_NS
    }

    /// The names of the services.
    pub fn services(&self) -> impl Iterator<Item = &'static str> {
        self.services.iter().map(|service| service.program.name)
    }

    /// The deploys of the day, the earliest first.
    #[must_use]
    pub fn deploys(&self) -> Vec<Deploy> {
        let changes = CHANGES.iter().map(|change| Deploy {
            time_ns: self.at_ns(change.before_end),
            service: change.service,
            version: change.version_after,
            text: format!("{} {}", change.service, change.version_after),
        });
        changes.collect()
    }

    /// How many hours of the clock the day is in, the first and the last not as a whole.
    #[must_use]
    pub fn hours(&self) -> usize {
        let first = self.start_ns().div_euclid(HOUR_NS);
        let behind = (self.end_ns - 1).div_euclid(HOUR_NS) + 1;
        usize::try_from(behind - first).unwrap_or(0)
    }

    /// All profiles that start in one of these hours: one for each service, with all of its series.
    #[must_use]
    pub fn profiles_of_hour(&self, hour: usize) -> Vec<Profile> {
        let hour = i64::try_from(hour).unwrap_or(i64::MAX);
        let first_ns = (self.start_ns().div_euclid(HOUR_NS) + hour) * HOUR_NS;
        let offset_s = |time_ns: i64| (time_ns - self.end_ns) / SECOND_NS;
        let from_s = offset_s(first_ns.max(self.start_ns()));
        let to_s = offset_s((first_ns + HOUR_NS).min(self.end_ns));
        let services = self.services.iter();
        services
            .map(|service| self.profile(service, from_s, to_s))
            .collect()
    }

    /// All profiles, hour by hour.
    pub fn profiles(&self) -> impl Iterator<Item = Profile> {
        (0..self.hours()).flat_map(move |hour| self.profiles_of_hour(hour))
    }

    fn profile(&self, service: &Service, from_s: i64, to_s: i64) -> Profile {
        let mut profile = service.palette.tables.clone();
        for window in windows(service.program.name, from_s, to_s) {
            for replica in &service.replicas {
                let sampled = Sampled {
                    service: service.program.name,
                    palette: &service.palette,
                    replica,
                    replicas: service.replicas.len(),
                    window,
                    seed: self.seed,
                };
                let series = self.series(&mut profile, &service.program, &sampled);
                profile.series.extend(series);
            }
        }
        profile
    }

    fn series(
        &self,
        profile: &mut Profile,
        program: &Program,
        sampled: &Sampled<'_>,
    ) -> [ProfileSeries; 6] {
        let labels = sampled.replica.labels(sampled.window);
        let empty = |profile_type| self.empty_series(labels, profile_type, sampled.window);
        let mut cpu = empty(&self.types.cpu);
        let mut off_cpu = empty(&self.types.off_cpu);
        let mut allocated = empty(&self.types.allocated);
        let mut in_use = empty(&self.types.in_use);
        let mut contentions = empty(&self.types.contentions);
        let mut delay = empty(&self.types.delay);
        sampled.draw(profile, &mut cpu);
        sampled.wait(program, &mut off_cpu);
        sampled.allocate(program, &mut allocated);
        sampled.hold(program, &mut in_use);
        sampled.contend(program, &mut contentions, &mut delay);
        [cpu, off_cpu, allocated, in_use, contentions, delay]
    }

    fn empty_series(
        &self,
        labels: &Labels,
        profile_type: &ProfileType,
        window: Window,
    ) -> ProfileSeries {
        ProfileSeries {
            start_ns: self.end_ns + window.offset_s * SECOND_NS,
            duration_ns: window.duration_ns(),
            ..ProfileSeries::new(labels.clone(), profile_type.clone())
        }
    }
}
