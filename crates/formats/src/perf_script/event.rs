//! What the event of a profile type is called.

use candela_model::ProfileType;

/// The event that is written for a type, which reads back as this type if the type has an event.
pub(crate) fn event_of(profile_type: &ProfileType) -> String {
    let name = &profile_type.name;
    let sample_type = &profile_type.sample_type;
    let event = match (name.as_str(), sample_type.as_str()) {
        ("process_cpu", "cpu") => "cpu-clock".to_owned(),
        ("page_faults", "faults") => "page-faults".to_owned(),
        ("off_cpu", "off_cpu") => "offcpu-time".to_owned(),
        (name, sample_type) if name == sample_type => name.to_owned(),
        (name, sample_type) => format!("{name}:{sample_type}"),
    };
    event.replace(|c: char| c.is_whitespace() || c.is_control(), "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_events::event_type;

    #[test]
    fn types_of_events_read_back() {
        for event in [
            "cpu-clock",
            "cycles",
            "page-faults",
            "offcpu-time",
            "cpu/cycles/",
        ] {
            let profile_type = event_type(event, true);
            assert_eq!(event_of(&profile_type), event);
        }
        let memory = ProfileType::new("memory", "alloc space", "bytes", "space", "bytes");
        assert_eq!(event_of(&memory), "memory:alloc_space");
    }
}
