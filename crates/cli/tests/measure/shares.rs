//! Shares of a program's time are right within three standard errors, wherever they are read.

use crate::host::record::check_recorded_shares;
use crate::host::source::check_lines;
use crate::host::window::check_window;

/// Of a share among so many samples. Chance passes it once in 370.
pub(crate) fn three_standard_errors(share: f64, samples: f64) -> f64 {
    3.0 * (share * (1.0 - share) / samples).sqrt()
}

#[test]
fn functions_of_a_recording_have_their_shares() {
    let test = "functions_of_a_recording_have_their_shares";
    check_recorded_shares(test, three_standard_errors);
}

#[test]
fn lines_of_a_recording_have_their_shares() {
    let test = "lines_of_a_recording_have_their_shares";
    check_lines(test, three_standard_errors);
}

#[test]
fn the_window_shows_the_share_of_a_function() {
    let test = "the_window_shows_the_share_of_a_function";
    check_window(test, three_standard_errors);
}
