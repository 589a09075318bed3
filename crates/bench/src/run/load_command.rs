//! Builds the command line of the load generator for a target.

use std::io;
use std::path::Path;

use tokio::process::Command;

use super::scenario::Scenario;
use super::target::Target;
use crate::process::ServerProcess;

pub(super) struct MeasuredTarget<'p> {
    pub(super) target: Target,
    pub(super) process: &'p ServerProcess,
}

impl MeasuredTarget<'_> {
    /// The process whose cost is measured; `None` for direct calls, because no proxy is involved.
    pub(super) fn watched(&self) -> Option<u32> {
        (self.target != Target::Direct).then_some(self.process.pid)
    }

    /// The command `load` or `hold` with the arguments for this target and scenario.
    pub(super) fn command(
        &self,
        name: &str,
        scenario: Scenario,
        keys: Option<&Path>,
    ) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(name)
            .args(["--address", &self.process.address.to_string()])
            .args(["--path", &self.path(scenario)])
            .args(["--model", &scenario.model()])
            .args(["--shape", &scenario.shape.to_string()])
            .args(["--connections", &scenario.connections.to_string()]);
        if let Some(keys) = keys {
            command.arg("--keys").arg(keys);
        }
        Ok(command)
    }

    fn path(&self, scenario: Scenario) -> String {
        if let Some(kind) = scenario.shape.session_kind() {
            return format!("/v1{}", kind.path());
        }
        match self.target {
            Target::Direct | Target::Bare => {
                format!("{}/chat/completions", scenario.upstream.base_path())
            }
            // The model decides the route, whose dialect is chat, so a request in Messages is converted.
            _ if scenario.shape.is_converted() => "/v1/messages".to_owned(),
            _ => "/v1/chat/completions".to_owned(),
        }
    }
}
