//! Formats of which we are the writer, too.

use candela_formats::read_json;
use candela_formats::write_json;

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
