//! The status in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fmt::Write;

use crate::status::AgentStatus;
use crate::status::CostStatus;
use crate::status::ProgramStatus;

impl AgentStatus {
    /// Appends the counts in the Prometheus text format.
    pub fn write_metrics(&self, out: &mut String) {
        let groups = [
            (
                "samples_total",
                "Samples by how the walk of their stack ended.",
                "result",
                &self.quality.results,
            ),
            (
                "drops_total",
                "What did not make it, by reason.",
                "reason",
                &self.drops,
            ),
            (
                "events_total",
                "What came from the kernel, by kind.",
                "kind",
                &self.events,
            ),
        ];
        for (name, help, label, counts) in groups {
            let name = format!("candela_agent_{name}");
            family(out, &name, "counter", help);
            for (value, count) in counts {
                sample(out, &name, &format!("{{{label}=\"{value}\"}}"), count);
            }
        }
        let missing = "candela_agent_missing";
        let help = "Kinds that were asked for and that this host cannot give.";
        family(out, missing, "gauge", help);
        for it in &self.missing {
            sample(out, missing, &format!("{{kind=\"{}\"}}", it.what), 1);
        }
        self.write_single_metrics(out);
        self.cost.write_metrics(out);
        self.scrape.write_metrics(out);
    }

    fn write_single_metrics(&self, out: &mut String) {
        let source = &self.source;
        let symbols = &self.symbols;
        let delivery = &self.delivery;
        let cost = &self.cost;
        let rows = [
            (
                "kernel_samples_total",
                "counter",
                "Samples taken in the kernel.",
                source.kernel_samples,
            ),
            (
                "stack_copies_total",
                "counter",
                "Samples that came with a stack copy.",
                source.stack_copies,
            ),
            (
                "processes",
                "gauge",
                "Processes known.",
                source.processes as u64,
            ),
            (
                "objects",
                "gauge",
                "Object files open.",
                source.objects as u64,
            ),
            ("cpus", "gauge", "CPUs sampled.", source.cpus as u64),
            (
                "allocation_libraries",
                "gauge",
                "Files of the library that samples allocations which are watched.",
                source.allocation_libraries as u64,
            ),
            (
                "kernel_processes",
                "gauge",
                "Processes whose mappings the kernel has.",
                u64::from(source.kernel_processes),
            ),
            (
                "kernel_regions",
                "gauge",
                "Mappings that the kernel has.",
                u64::from(source.kernel_regions),
            ),
            (
                "kernel_tables",
                "gauge",
                "Unwind tables in the kernel.",
                u64::from(source.kernel_tables),
            ),
            (
                "kernel_table_bytes",
                "gauge",
                "Kernel memory of unwind tables.",
                source.kernel_table_bytes,
            ),
            (
                "kernel_other_bytes",
                "gauge",
                "Kernel memory of all other BPF maps.",
                source.kernel_other_bytes,
            ),
            (
                "map_bytes",
                "gauge",
                "Kernel memory of all BPF maps.",
                cost.map_bytes,
            ),
            (
                "resident_bytes",
                "gauge",
                "Resident memory of the process; in candela up the server is in it, too.",
                cost.resident_bytes,
            ),
            (
                "pace_changes_total",
                "counter",
                "Changes of how much is sampled, to keep the CPU budget.",
                cost.pace_changes,
            ),
            (
                "named_frames_total",
                "counter",
                "Places named.",
                symbols.named_frames,
            ),
            (
                "unnamed_frames_total",
                "counter",
                "Places that nothing names.",
                symbols.unnamed_frames,
            ),
            (
                "symbol_cache_hits_total",
                "counter",
                "Addresses whose names were known already.",
                symbols.cache_hits,
            ),
            (
                "symbol_cache_misses_total",
                "counter",
                "Addresses whose names had to be looked up.",
                symbols.cache_misses,
            ),
            (
                "symbol_cache_bytes",
                "gauge",
                "Memory of the symbol cache.",
                symbols.cache_bytes,
            ),
            (
                "exported_profiles_total",
                "counter",
                "Profiles that the sink has taken.",
                delivery.profiles,
            ),
            (
                "export_failures_total",
                "counter",
                "Attempts to export that failed.",
                delivery.failed_attempts,
            ),
            (
                "spooled_profiles",
                "gauge",
                "Profiles waiting on disk.",
                delivery.spooled_profiles,
            ),
            (
                "spooled_bytes",
                "gauge",
                "Size of the profiles waiting on disk.",
                delivery.spooled_bytes,
            ),
        ];
        for (name, kind, help, value) in rows {
            let name = format!("candela_agent_{name}");
            family(out, &name, kind, help);
            sample(out, &name, "", value);
        }
    }
}

impl CostStatus {
    fn write_metrics(&self, out: &mut String) {
        let gauges = [
            (
                "cpu_cores",
                "CPU time of the agent in the last window, in cores.",
                self.cpu_ppm as f64 / 1e6,
            ),
            (
                "cpu_budget_cores",
                "What it may be; 0 is without a bound.",
                self.budget_ppm as f64 / 1e6,
            ),
            (
                "wait_mean_seconds",
                "What a sample of waiting stands for at least.",
                self.wait_mean_ns as f64 / 1e9,
            ),
            (
                "allocations_per_sample",
                "How many sampled allocations one that is told stands for.",
                self.allocations_per_sample as f64,
            ),
            (
                "bpf_measured",
                "Whether the kernel measures run times of programs, which takes CAP_SYS_ADMIN.",
                1.0 - self.programs_unmeasured as f64,
            ),
        ];
        for (name, help, value) in gauges {
            let name = format!("candela_agent_{name}");
            family(out, &name, "gauge", help);
            sample(out, &name, "", value);
        }
        let name = "candela_agent_rate_hz";
        let help = "Samples per second of a busy CPU.";
        family(out, name, "gauge", help);
        let rates = [
            ("configured", self.configured_rate_millihertz),
            ("effective", self.rate_millihertz),
        ];
        for (setting, millihertz) in rates {
            let labels = format!("{{setting=\"{setting}\"}}");
            sample(out, name, &labels, millihertz as f64 / 1e3);
        }
        let name = "candela_agent_cpu_seconds_total";
        family(out, name, "counter", "CPU time of the agent's threads.");
        for (thread, time_ns) in &self.threads {
            let labels = format!("{{thread=\"{thread}\"}}");
            sample(out, name, &labels, *time_ns as f64 / 1e9);
        }
        write_programs(&self.programs, out);
    }
}

fn write_programs(programs: &BTreeMap<String, ProgramStatus>, out: &mut String) {
    type Value = fn(&ProgramStatus) -> f64;
    let families: [(&str, &str, Value); 3] = [
        (
            "bpf_seconds_total",
            "Run time of the agent's programs in the kernel, extrapolated from a part of each window.",
            |program| program.estimated_run_time_ns as f64 / 1e9,
        ),
        (
            "bpf_runs_total",
            "Runs of the agent's programs in the kernel, extrapolated from a part of each window.",
            |program| program.estimated_runs as f64,
        ),
        (
            "bpf_recursion_misses_total",
            "Runs that the kernel refused because the program was running on that CPU already.",
            |program| program.recursion_misses as f64,
        ),
    ];
    for (name, help, value) in families {
        let name = format!("candela_agent_{name}");
        family(out, &name, "counter", help);
        for (program, status) in programs {
            let labels = format!("{{program=\"{program}\"}}");
            sample(out, &name, &labels, value(status));
        }
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let written = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    written.expect("writing to a string cannot fail");
}

fn sample(out: &mut String, name: &str, labels: &str, value: impl Display) {
    writeln!(out, "{name}{labels} {value}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::status::Quality;
    use crate::status::StatusBoard;

    /// The names of a text that begin as ours do, without those of scraping, which have a page of their own.
    fn names_in(text: &str) -> BTreeSet<String> {
        let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let words = text.split(|letter| !is_of_name(letter));
        words
            .filter(|word| word.starts_with("candela_agent_"))
            .filter(|word| !word.starts_with("candela_agent_scrape_"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_documentation_has_every_metric_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        let mut text = String::new();
        AgentStatus::default().write_metrics(&mut text);
        let types: Vec<&str> = text
            .lines()
            .filter(|it| it.starts_with("# TYPE "))
            .collect();
        assert!(types.len() > 20, "{text}");
        assert_eq!(names_in(&rows.join("\n")), names_in(&types.join("\n")));
    }

    #[test]
    fn every_metric_has_help_and_type() {
        let board = StatusBoard::default();
        let status = AgentStatus {
            drops: board.drops(),
            quality: Quality::from_results(&board.parts().results),
            cost: CostStatus {
                rate_millihertz: 9_500,
                threads: BTreeMap::from([("candela-sampler".to_owned(), 1_500_000_000)]),
                programs: BTreeMap::from([("sample_cpu".to_owned(), ProgramStatus::default())]),
                ..CostStatus::default()
            },
            ..AgentStatus::default()
        };
        let mut text = String::new();
        status.write_metrics(&mut text);
        assert!(text.contains("candela_agent_drops_total{reason=\"spool_full\"} 0"));
        assert!(text.contains("candela_agent_rate_hz{setting=\"effective\"} 9.5\n"));
        let thread = "candela_agent_cpu_seconds_total{thread=\"candela-sampler\"} 1.5\n";
        assert!(text.contains(thread));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
