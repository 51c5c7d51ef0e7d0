//! The table of functions, and functions with their callers and callees.

use std::io::Write;

use candela_model::Profile;
use candela_model::ProfileType;
use regex::Regex;

use crate::error::WriteError;
use crate::pprof_text::call_graph::Call;
use crate::pprof_text::call_graph::Cut;
use crate::pprof_text::call_graph::CutGraph;
use crate::pprof_text::header::header;
use crate::pprof_text::header::series_of;
use crate::pprof_text::header::total;
use crate::pprof_text::names::FunctionId;
use crate::pprof_text::names::Names;
use crate::pprof_text::values::Shown;
use crate::pprof_text::values::common_unit;
use crate::pprof_text::values::label;
use crate::pprof_text::values::percentage;

/// How much of a profile a report shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PprofTextOptions {
    /// Functions to show, those with the largest own value; 0 shows all. pprof has 80 in a tree and
    /// all in a table.
    pub max_functions: usize,
    /// Functions with a smaller share of the total, 0 to 1, are left out.
    pub node_fraction: f64,
    /// Calls with a smaller share of the total, 0 to 1, are left out.
    pub edge_fraction: f64,
}

impl Default for PprofTextOptions {
    fn default() -> Self {
        Self {
            max_functions: 0,
            node_fraction: 0.005,
            edge_fraction: 0.001,
        }
    }
}

const SEPARATOR: &str = "----------------------------------------------------------+-------------";
/// The blanks and tabs at its end are pprof's.
const TREE_HEAD: &str =
    "      flat  flat%   sum%        cum   cum%   calls calls% + context \t \t ";

/// Writes the table of functions of one profile type as `go tool pprof -top` does.
///
/// # Errors
/// When the sink fails.
pub fn write_pprof_top(
    profile: &Profile,
    profile_type: &ProfileType,
    options: &PprofTextOptions,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let names = Names::of(profile);
    let report = Report::new(profile, profile_type, &names, options);
    report.head(&mut output)?;
    writeln!(output, "      flat  flat%   sum%        cum   cum%")?;
    let mut sum = 0_i64;
    for &function in &report.cut.order {
        sum = sum.saturating_add(report.cut.graph.flat[function]);
        writeln!(
            output,
            "{}  {}{}",
            report.values(function, sum),
            names.get(function),
            report.inlined(function)
        )?;
    }
    output.flush()?;
    Ok(())
}

/// Writes functions of one profile type with their callers and callees as `go tool pprof -tree` does.
///
/// # Errors
/// When the sink fails.
pub fn write_pprof_tree(
    profile: &Profile,
    profile_type: &ProfileType,
    options: &PprofTextOptions,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let names = Names::of(profile);
    let report = Report::new(profile, profile_type, &names, options);
    report.tree(|_| true, &mut output)?;
    output.flush()?;
    Ok(())
}

/// Writes the functions whose name `pattern` matches with all callers and callees as `go tool pprof
/// -peek` does.
///
/// # Errors
/// When the sink fails, the pattern is no regular expression, or no function matches.
pub fn write_peek(
    profile: &Profile,
    profile_type: &ProfileType,
    pattern: &str,
    mut output: impl Write,
) -> Result<(), WriteError> {
    let expression = Regex::new(pattern).map_err(|error| WriteError::Pattern {
        pattern: pattern.to_owned(),
        // The first lines are the pattern with a mark below it.
        reason: error.to_string().lines().last().unwrap_or("").to_owned(),
    })?;
    let names = Names::of(profile);
    let everything = PprofTextOptions {
        max_functions: 0,
        node_fraction: 0.0,
        edge_fraction: 0.0,
    };
    let report = Report::new(profile, profile_type, &names, &everything);
    let is_shown = |function: FunctionId| expression.is_match(names.get(function));
    if !report.cut.order.iter().copied().any(is_shown) {
        return Err(WriteError::NoFunction {
            pattern: pattern.to_owned(),
        });
    }
    report.tree(is_shown, &mut output)?;
    output.flush()?;
    Ok(())
}

struct Report<'a> {
    profile: &'a Profile,
    profile_type: &'a ProfileType,
    names: &'a Names<'a>,
    options: &'a PprofTextOptions,
    cut: CutGraph,
    calls: Calls,
    /// What shares are of.
    total: i64,
    shown: Shown,
}

impl<'a> Report<'a> {
    fn new(
        profile: &'a Profile,
        profile_type: &'a ProfileType,
        names: &'a Names<'a>,
        options: &'a PprofTextOptions,
    ) -> Self {
        let samples = series_of(profile, profile_type).flat_map(|series| &series.samples);
        let cut = CutGraph::of(names, samples, |total| Cut {
            smallest_cum: part(total, options.node_fraction),
            smallest_call: part(total, options.edge_fraction),
            max_functions: options.max_functions,
        });
        let total = total(profile, profile_type);
        let unit = &profile_type.sample_unit;
        let magnitudes = cut.order.iter().map(|&function| {
            match cut.graph.flat[function] {
                0 => cut.graph.cum[function],
                flat => flat,
            }
            .saturating_abs()
        });
        let smallest = magnitudes.filter(|value| *value > 0).min();
        let shown = match cut.order.is_empty() {
            true => Shown::Fitting,
            false => common_unit(smallest.unwrap_or(total), total, unit),
        };
        Self {
            profile,
            profile_type,
            names,
            options,
            calls: Calls::of(&cut, names),
            cut,
            total,
            shown,
        }
    }

    fn head(&self, output: &mut impl Write) -> Result<(), WriteError> {
        for line in header(self.profile, self.profile_type, self.total, self.shown) {
            writeln!(output, "{line}")?;
        }
        let shown = self.cut.graph.total_flat();
        writeln!(
            output,
            "Showing nodes accounting for {}, {} of {} total",
            self.label(shown),
            percentage(shown, self.total).trim(),
            self.label(self.total)
        )?;
        if self.total == 0 {
            return Ok(());
        }
        if self.cut.dropped > 0 {
            let plural = if self.cut.dropped == 1 { "" } else { "s" };
            writeln!(
                output,
                "Dropped {} node{plural} (cum <= {})",
                self.cut.dropped,
                self.label(part(self.total, self.options.node_fraction))
            )?;
        }
        let count = self.cut.order.len();
        if (1..self.cut.candidates).contains(&count) {
            writeln!(
                output,
                "Showing top {count} nodes out of {}",
                self.cut.candidates
            )?;
        }
        Ok(())
    }

    fn tree(
        &self,
        is_shown: impl Fn(FunctionId) -> bool,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        self.head(output)?;
        writeln!(output, "{SEPARATOR}")?;
        writeln!(output, "{TREE_HEAD}")?;
        let mut sum = 0_i64;
        for &function in self.cut.order.iter().filter(|id| is_shown(**id)) {
            writeln!(output, "{SEPARATOR}")?;
            for (caller, call) in &self.calls.callers[function] {
                self.call(*caller, function, call, output)?;
            }
            sum = sum.saturating_add(self.cut.graph.flat[function]);
            writeln!(
                output,
                "{}                | {}",
                self.values(function, sum),
                self.names.get(function)
            )?;
            for (callee, call) in &self.calls.callees[function] {
                self.call(*callee, function, call, output)?;
            }
        }
        if !self.cut.order.is_empty() {
            writeln!(output, "{SEPARATOR}")?;
        }
        Ok(())
    }

    /// A line of a caller or callee `other` of a function.
    fn call(
        &self,
        other: FunctionId,
        function: FunctionId,
        call: &Call,
        output: &mut impl Write,
    ) -> Result<(), WriteError> {
        let inline = if call.is_inline { " (inline)" } else { "" };
        writeln!(
            output,
            "{:>50} {} |   {}{inline}",
            self.label(call.value),
            percentage(call.value, self.cut.graph.cum[function]),
            self.names.get(other)
        )?;
        Ok(())
    }

    /// The columns of a function; `sum` is that of all own values up to here.
    fn values(&self, function: FunctionId, sum: i64) -> String {
        let (flat, cum) = (self.cut.graph.flat[function], self.cut.graph.cum[function]);
        format!(
            "{:>10} {} {} {:>10} {}",
            self.label(flat),
            percentage(flat, self.total),
            percentage(sum, self.total),
            self.label(cum),
            percentage(cum, self.total)
        )
    }

    fn inlined(&self, function: FunctionId) -> &'static str {
        let callers = &self.calls.callers[function];
        let inlined = callers.iter().filter(|(_, call)| call.is_inline).count();
        match inlined {
            0 => "",
            all if all == callers.len() => " (inline)",
            _ => " (partial-inline)",
        }
    }

    fn label(&self, value: i64) -> String {
        label(value, &self.profile_type.sample_unit, self.shown)
    }
}

/// The calls of each function, the largest first.
struct Calls {
    callers: Vec<Vec<(FunctionId, Call)>>,
    callees: Vec<Vec<(FunctionId, Call)>>,
}

impl Calls {
    fn of(cut: &CutGraph, names: &Names<'_>) -> Self {
        let mut calls = Self {
            callers: vec![Vec::new(); names.len()],
            callees: vec![Vec::new(); names.len()],
        };
        for (&(caller, callee), &call) in &cut.graph.calls {
            calls.callers[callee].push((caller, call));
            calls.callees[caller].push((callee, call));
        }
        for list in calls.callers.iter_mut().chain(&mut calls.callees) {
            list.sort_by(|(left, left_call), (right, right_call)| {
                let (left_value, right_value) = (left_call.value, right_call.value);
                let by_value = right_value.unsigned_abs().cmp(&left_value.unsigned_abs());
                by_value.then_with(|| (names.get(*left), *left).cmp(&(names.get(*right), *right)))
            });
        }
        calls
    }
}

/// A fraction of a total, cut to a whole number, as a magnitude.
fn part(total: i64, fraction: f64) -> i64 {
    ((total as f64 * fraction) as i64).saturating_abs()
}
