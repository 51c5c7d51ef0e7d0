//! Parameters of routes, and those that many of them have: the selection and its filters.

/// A parameter of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) is_repeatable: bool,
    pub(crate) is_required: bool,
}

pub(crate) const fn optional(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        description,
        is_repeatable: false,
        is_required: false,
    }
}

pub(crate) const fn required(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        is_required: true,
        ..optional(name, description)
    }
}

pub(crate) const fn repeatable(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        is_repeatable: true,
        ..optional(name, description)
    }
}

pub(crate) const QUERY: Parameter = optional(
    "query",
    "label selector, for example {service_name=\"api\", pod=~\"web-.*\"}; default {}",
);
pub(crate) const TYPE: Parameter =
    optional("type", "profile type id, short name or prefix; default cpu");
pub(crate) const FROM: Parameter = optional(
    "from",
    "start: unix seconds or milliseconds, RFC 3339, or now-1h; default one hour before the end",
);
pub(crate) const TO: Parameter =
    optional("to", "end, exclusive, in the forms of from; default now");

pub(crate) const FOCUS: Parameter = repeatable(
    "focus",
    "only stacks with a frame that matches; filters are regular expressions, applied in their order, after fn: file: line: pkg: bin: or kind: of that only",
);
pub(crate) const IGNORE: Parameter =
    repeatable("ignore", "only stacks without a frame that matches");
pub(crate) const HIDE: Parameter = repeatable("hide", "takes frames that match out of the stacks");
pub(crate) const SHOW: Parameter = repeatable("show", "takes all other frames out of the stacks");
pub(crate) const SHOW_FROM: Parameter = repeatable(
    "show_from",
    "stacks begin at their first frame that matches; those without one do not count",
);
pub(crate) const COLLAPSE: Parameter = repeatable(
    "collapse",
    "folds frames: recursion (or recursion:REGEX of what matches) into its first frame, neighbours of one package, binary, file or kind, as pkg:REGEX, bin:REGEX, file:REGEX or kind:REGEX, into one frame that is named after it, and neighbours that match fn:REGEX into the first of them",
);
pub(crate) const TAGFOCUS: Parameter = repeatable(
    "tagfocus",
    "only samples with a label, their own or their series', that matches: a regular expression for any value, KEY=REGEX, or numbers as KEY=1kb:1mb",
);
pub(crate) const TAGIGNORE: Parameter =
    repeatable("tagignore", "only samples without a label that matches");
pub(crate) const PATH: Parameter = repeatable(
    "path",
    "only stacks that begin with these functions, from the root, by their exact names; behind a tab file and binary may follow",
);
pub(crate) const PRESET: Parameter = repeatable(
    "preset",
    "the filters of a preset of the window, at this place of the order: my-code, idle-runtimes, kernel, no-kernel, collapse-recursion or collapse-libraries",
);
pub(crate) const AGGREGATION: Parameter = optional(
    "aggregation",
    "how the profiles of a series combine: sum, avg or last; by default events are summed and gauges averaged",
);

pub(crate) const MAX_NODES: &str = "the heaviest nodes kept, the rest becomes `other`; 0 is all";

/// The selection, its range and its filters, and what a route has besides.
macro_rules! selected {
    ($($own:expr),* $(,)?) => {
        &[
            $crate::route_parameters::QUERY,
            $crate::route_parameters::TYPE,
            $crate::route_parameters::FROM,
            $crate::route_parameters::TO,
            $crate::route_parameters::FOCUS,
            $crate::route_parameters::IGNORE,
            $crate::route_parameters::HIDE,
            $crate::route_parameters::SHOW,
            $crate::route_parameters::SHOW_FROM,
            $crate::route_parameters::COLLAPSE,
            $crate::route_parameters::TAGFOCUS,
            $crate::route_parameters::TAGIGNORE,
            $crate::route_parameters::PATH,
            $crate::route_parameters::PRESET,
            $($own,)*
        ]
    };
}

/// What chooses series without a look into their stacks, and what a route has besides.
macro_rules! of_series {
    ($($own:expr),* $(,)?) => {
        &[
            $crate::route_parameters::QUERY,
            $crate::route_parameters::FROM,
            $crate::route_parameters::TO,
            $crate::route_parameters::TAGFOCUS,
            $crate::route_parameters::TAGIGNORE,
            $($own,)*
        ]
    };
}

pub(crate) use of_series;
pub(crate) use selected;
