//! What nearly all costs are measured of.

use std::path::Path;
use std::process::Command;

use crate::host::Bench;
use crate::process::Program;
use crate::process::json_of;

/// A server and an agent that sends to it, as two processes.
pub(crate) struct Pair {
    pub(crate) server: Program,
    pub(crate) agent: Program,
    pub(crate) url: String,
}

impl Pair {
    /// Samples CPU alone, `rate` times a second, whatever it costs; the agent has these variables besides.
    pub(crate) fn start(
        bench: &Bench,
        folder: &Path,
        rate: &str,
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let candela = bench.binary("candela")?;
        let (server, url) = Program::start_candela(
            Command::new(&candela)
                .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
                .arg(folder.join("server")),
        )?;
        let agent = Program::start(
            Command::new(&candela)
                .args(["agent", "--rate", rate, "--server", &url, "--data-dir"])
                .arg(folder.join("agent"))
                .env("CANDELA_AGENT__KINDS", "cpu")
                // What it costs is asked, not whether it lowers its rate in time.
                .env("CANDELA_AGENT__CPU_BUDGET", "off")
                .envs(variables.iter().copied()),
        )?;
        Ok(Self { server, agent, url })
    }

    /// An agent that failed, or samples nothing, costs nothing: fails unless both still run, the load
    /// does, and samples have arrived.
    pub(crate) fn has_sampled(&mut self, load: &mut [Program]) -> Result<(), String> {
        self.server.still_runs()?;
        self.agent.still_runs()?;
        for program in load {
            program.still_runs()?;
        }
        let status = json_of(&format!("{}/api/v1/status", self.url))?;
        let ways = status["ingest"].as_object().into_iter().flatten();
        let samples: u64 = ways.filter_map(|(_, sums)| sums["samples"].as_u64()).sum();
        if samples == 0 {
            return Err("the server has received no samples".to_owned());
        }
        Ok(())
    }
}
