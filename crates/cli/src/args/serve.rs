//! Arguments of the long-running commands.

use std::path::PathBuf;

use clap::Args;

/// `candela up`
#[cfg(all(feature = "agent", feature = "server"))]
#[derive(Args, Clone, Debug)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// Do not sample this host
    #[arg(long)]
    pub(crate) no_agent: bool,
    /// Open the window in a browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// `candela server`
#[cfg(feature = "server")]
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// Folder of blocks, log, symbols, spool and catalog
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of everything over HTTP and gRPC [default: 127.0.0.1:4040]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Serve other hosts though no token or user is configured
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// `candela demo`
#[cfg(feature = "server")]
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Folder to keep the data in [default: one that is removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of everything over HTTP and gRPC [default: 127.0.0.1:4040]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// What all that is made up follows from: the same number gives the same day
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Serve other hosts too, though everybody may then send
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Open the window in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// The time that it is, in unix seconds: the clock stands still there, so that pictures come out the same
    #[arg(long, value_name = "SECONDS", hide = true, value_parser = clap::value_parser!(i64).range(1..=4_000_000_000))]
    pub(crate) at: Option<i64>,
}

/// `candela agent`
#[cfg(feature = "agent")]
#[derive(Args, Clone, Debug)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// Folder whose spool/ keeps profiles while the server is away
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address of /metrics and of profiles on demand, which are off without it [suggested: 127.0.0.1:3080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
}

/// How to sample.
#[cfg(feature = "agent")]
#[derive(Args, Clone, Debug)]
pub(crate) struct SamplingArgs {
    /// Samples a second and processor, 1 to 1000 [default: 19]
    #[arg(short = 'F', long = "rate", value_name = "HZ")]
    pub(crate) rate: Option<String>,
}

#[cfg(feature = "server")]
impl ServerArgs {
    /// The configuration keys that these flags set.
    pub(crate) fn overrides(&self) -> Vec<(&'static str, &'static str, String)> {
        let mut overrides = Vec::new();
        if let Some(data_dir) = &self.data_dir {
            overrides.push((
                "store.data_dir",
                "--data-dir",
                data_dir.display().to_string(),
            ));
        }
        if let Some(listen) = &self.listen {
            overrides.push(("server.listen", "--listen", listen.clone()));
        }
        if self.insecure {
            overrides.push(("auth.insecure", "--insecure", "true".to_owned()));
        }
        overrides
    }
}

#[cfg(feature = "agent")]
impl SamplingArgs {
    /// The configuration keys that these flags set.
    pub(crate) fn overrides(&self) -> Vec<(&'static str, &'static str, String)> {
        let rate = self
            .rate
            .iter()
            .map(|rate| ("agent.rate", "--rate", rate.clone()));
        rate.collect()
    }
}

#[cfg(feature = "agent")]
impl AgentArgs {
    /// The configuration keys that these flags and the global `--server` set.
    pub(crate) fn overrides(
        &self,
        server: Option<&str>,
    ) -> Vec<(&'static str, &'static str, String)> {
        let mut overrides = self.sampling.overrides();
        if let Some(data_dir) = &self.data_dir {
            overrides.push((
                "store.data_dir",
                "--data-dir",
                data_dir.display().to_string(),
            ));
        }
        if let Some(listen) = &self.listen {
            overrides.push(("agent.on_demand.listen", "--listen", listen.clone()));
        }
        if let Some(server) = server {
            overrides.push(("agent.server", "--server", server.to_owned()));
        }
        overrides
    }
}
