//! Formats of which we are the writer, too.

use candela_formats::read_json;
use candela_formats::read_profile_event_lines;
use candela_formats::write_json;
use candela_formats::write_profile_events;

use crate::formats::check_valid;
use crate::formats::options;
use crate::formats::total;
use crate::store::example_profile;

/// What was read is valid; written and read again it has the same sums.
pub(crate) fn json(bytes: &[u8]) {
    let Ok((profile, _)) = read_json(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    write_json(&profile, &mut written).expect("memory takes it");
    let (again, _) = read_json(&written[..], &options()).expect("what we write can be read");
    assert_eq!(total(&again), total(&profile));
}

pub(crate) fn json_seeds() -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    write_json(&example_profile(), &mut written).expect("memory takes it");
    vec![written]
}

/// What was read is valid; written and read again it has the same sums.
pub(crate) fn profile_event_lines(bytes: &[u8]) {
    let Ok((profile, _)) = read_profile_event_lines(bytes, &options()) else {
        return;
    };
    check_valid(&profile);
    let mut written = Vec::new();
    let Ok(report) = write_profile_events(&profile, &mut written) else {
        return;
    };
    if total(&profile) == 0 || report.count("types_left_out") > 0 {
        return;
    }
    let again = read_profile_event_lines(&written[..], &options());
    let (again, _) = again.expect("what we write can be read");
    assert_eq!(total(&again), total(&profile));
}

pub(crate) fn profile_event_lines_seeds() -> Vec<Vec<u8>> {
    let mut written = Vec::new();
    write_profile_events(&example_profile(), &mut written).expect("CPU time is an event");
    vec![written]
}
