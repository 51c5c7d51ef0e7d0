//! What is planted. Each of these is true of the profiles up to the chance of sampling, and nothing
//! else changes but by load and noise.

use std::time::Duration;

/// A function that costs more since a deploy.
#[derive(Clone, Copy, Debug)]
pub struct Regression {
    /// The service.
    pub service: &'static str,
    /// The function; it is its own time that grows.
    pub function: &'static str,
    /// What its own time is multiplied with.
    pub factor: f64,
    /// How long before the end of the day the deploy is. The load of the shop is at its peak then, so
    /// that equal times before and after it had the same to do.
    pub before_end: Duration,
    /// The label `version` before.
    pub version_before: &'static str,
    /// The label `version` after.
    pub version_after: &'static str,
}

/// A function that has another name since a deploy, and costs what it cost.
#[derive(Clone, Copy, Debug)]
pub struct Rename {
    /// The service.
    pub service: &'static str,
    /// Its name before.
    pub from: &'static str,
    /// Its name after.
    pub to: &'static str,
    /// The file after; it moved, too.
    pub to_file: &'static str,
    /// How long before the end of the day the deploy is. The load is at its lowest then.
    pub before_end: Duration,
    /// The label `version` before.
    pub version_before: &'static str,
    /// The label `version` after.
    pub version_after: &'static str,
}

/// Some seconds in which one replica did the work of all others. The sum of the service is what it
/// always is, so no line shows it: the distribution over replicas does.
#[derive(Clone, Copy, Debug)]
pub struct Perturbation {
    /// The service.
    pub service: &'static str,
    /// Number of the replica that has all the work.
    pub replica: usize,
    /// How long before the end of the day it begins.
    pub before_end: Duration,
    /// How long it lasts.
    pub duration: Duration,
    /// The share of their usual work that the others keep.
    pub left_to_others: f64,
}

/// A value of the label `region` with which one function is slower, all day.
#[derive(Clone, Copy, Debug)]
pub struct SlowRegion {
    /// The service.
    pub service: &'static str,
    /// The region.
    pub region: &'static str,
    /// The function; it is its own time that is longer.
    pub function: &'static str,
    /// What its own time is multiplied with there.
    pub factor: f64,
}

/// Memory in use that grows at one place, from the start of the day to its end.
#[derive(Clone, Copy, Debug)]
pub struct Leak {
    /// The service.
    pub service: &'static str,
    /// The function below which it is allocated.
    pub function: &'static str,
    /// How much of it is added in an hour, in each replica.
    pub bytes_per_hour: i64,
}

/// A library of which there are addresses only.
#[derive(Clone, Copy, Debug)]
pub struct MissingSymbols {
    /// The service.
    pub service: &'static str,
    /// The library.
    pub binary: &'static str,
}

/// `checkout` v2 looks at each rule for discounts a little too often.
pub const REGRESSION: Regression = Regression {
    service: "checkout",
    function: "shop/checkout/pricing.(*Engine).applyDiscounts",
    factor: 1.12,
    before_end: Duration::from_secs(6 * 3600),
    version_before: "v1",
    version_after: "v2",
};

/// `catalog` v8 calls its ranker a scorer.
pub const RENAME: Rename = Rename {
    service: "catalog",
    from: "com.shop.catalog.ranking.ProductRanker.score",
    to: "com.shop.catalog.ranking.RelevanceScorer.score",
    to_file: "RelevanceScorer.java",
    before_end: Duration::from_secs(18 * 3600),
    version_before: "v7",
    version_after: "v8",
};

/// For half a minute the load balancer sends nearly everything to one `gateway`.
pub const PERTURBATION: Perturbation = Perturbation {
    service: "gateway",
    replica: 1,
    before_end: Duration::from_secs(25 * 60),
    duration: Duration::from_secs(30),
    left_to_others: 0.1,
};

/// In one region the chain of certificates is checked anew with each payment.
pub const SLOW_REGION: SlowRegion = SlowRegion {
    service: "payments",
    region: "eu-west-2",
    function: "payments::tls::verify_chain",
    factor: 3.0,
};

/// `cart` never forgets a session.
pub const LEAK: Leak = Leak {
    service: "cart",
    function: "shop/cart.(*SessionStore).Remember",
    bytes_per_hour: 12 << 20,
};

/// The vendor of a codec sends it stripped.
pub const MISSING_SYMBOLS: MissingSymbols = MissingSymbols {
    service: "imaging",
    binary: "/usr/lib/libvendorcodec.so.3",
};
