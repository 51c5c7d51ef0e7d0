//! Where the services run: regions, hosts, replicas, versions.

use candela_model::Labels;
use candela_model::SERVICE_NAME_LABEL;

use crate::calls::Program;
use crate::day::Window;
use crate::deploys::Change;
use crate::deploys::change_of;
use crate::random::Random;
use crate::random::hash_of;

const REGIONS: [(&str, &str); 3] = [
    ("eu-west-1", "euw1"),
    ("eu-west-2", "euw2"),
    ("us-east-1", "use1"),
];
const HOSTS_OF_A_REGION: usize = 3;
const NAMESPACE: &str = "shop";
/// How far machines differ from each other in what the same work costs them.
const MACHINE_DEVIATION: f64 = 0.03;

/// How a service is deployed.
#[derive(Clone, Copy, Debug)]
struct Deployment {
    service: &'static str,
    /// Cores that a replica uses at a load of 1.
    cores: f64,
    replicas_of_a_region: usize,
    /// The label `version`, of services without a deploy today.
    version: &'static str,
}

const DEPLOYMENTS: [Deployment; 8] = [
    deployment("gateway", 0.45, 2, "v3"),
    deployment("checkout", 0.55, 2, ""),
    deployment("cart", 0.3, 1, "v12"),
    deployment("catalog", 0.7, 1, ""),
    deployment("payments", 0.4, 2, "v5"),
    deployment("search", 0.6, 1, ""),
    deployment("recommendations", 0.35, 1, "v2"),
    deployment("imaging", 0.5, 1, "v9"),
];

/// One process of a service. Its name changes with a deploy, its machine does not.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    /// One in its service.
    pub(crate) number: usize,
    pub(crate) region: &'static str,
    pub(crate) cores: f64,
    before: Labels,
    after: Labels,
    change: Option<Change>,
    /// What this machine makes of the cost of each stack, all day.
    pub(crate) machine_factors: Vec<f64>,
}

/// All replicas of a program of so many stacks.
pub(crate) fn replicas(program: &Program, stacks: usize, seed: u64) -> Vec<Replica> {
    let deployment = DEPLOYMENTS
        .iter()
        .find(|deployment| deployment.service == program.name)
        .expect("each program is deployed; a test looks");
    let change = change_of(program.name);
    let of_a_region = deployment.replicas_of_a_region;
    let numbers = 0..REGIONS.len() * of_a_region;
    numbers
        .map(|number| {
            let (region, short) = REGIONS[number / of_a_region];
            let place = hash_of(program.name) as usize + number % of_a_region;
            let host = format!("{short}-node-{}", place % HOSTS_OF_A_REGION + 1);
            let labels = |version: &str| labels(program.name, region, &host, version, number, seed);
            let (before, after) = match change {
                Some(change) => (change.version_before, change.version_after),
                None => (deployment.version, deployment.version),
            };
            Replica {
                number,
                region,
                cores: deployment.cores,
                before: labels(before),
                after: labels(after),
                change,
                machine_factors: machine_factors(&host, number, stacks, seed),
            }
        })
        .collect()
}

impl Replica {
    pub(crate) fn labels(&self, window: Window) -> &Labels {
        if self.is_changed(window) {
            &self.after
        } else {
            &self.before
        }
    }

    /// Whether the new version runs.
    pub(crate) fn is_changed(&self, window: Window) -> bool {
        self.change
            .is_some_and(|change| window.is_after(change.before_end))
    }
}

fn machine_factors(host: &str, number: usize, stacks: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::keyed(seed, &[hash_of(host), number as u64]);
    let factors = (0..stacks).map(|_| random.factor(MACHINE_DEVIATION));
    factors.collect()
}

fn labels(
    service: &str,
    region: &str,
    host: &str,
    version: &str,
    number: usize,
    seed: u64,
) -> Labels {
    let template = hash_of(&format!("{service} {version}")) as u32;
    let own = Random::keyed(seed, &[hash_of(service), hash_of(version), number as u64]).next();
    let pod = format!("{service}-{template:08x}-{:05x}", own & 0xf_ffff);
    Labels::from_pairs([
        (SERVICE_NAME_LABEL, service),
        ("namespace", NAMESPACE),
        ("region", region),
        ("host", host),
        ("pod", &pod),
        ("container", service),
        ("version", version),
    ])
}

const fn deployment(
    service: &'static str,
    cores: f64,
    replicas_of_a_region: usize,
    version: &'static str,
) -> Deployment {
    Deployment {
        service,
        cores,
        replicas_of_a_region,
        version,
    }
}
