//! The texts of the programs.

use crate::calls::Program;
use crate::calls::parse;
use crate::chains::Chains;

const CHAINS: &str = include_str!("programs/common.calls");

const PROGRAMS: [&str; 8] = [
    include_str!("programs/gateway.calls"),
    include_str!("programs/checkout.calls"),
    include_str!("programs/cart.calls"),
    include_str!("programs/catalog.calls"),
    include_str!("programs/payments.calls"),
    include_str!("programs/search.calls"),
    include_str!("programs/recommendations.calls"),
    include_str!("programs/imaging.calls"),
];

/// Every program of the shop.
pub(crate) fn programs() -> Vec<Program> {
    let chains = Chains::parse(CHAINS);
    PROGRAMS.iter().map(|text| parse(text, &chains)).collect()
}
