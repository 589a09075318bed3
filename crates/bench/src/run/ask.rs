//! Starts the load generator against a target.

use std::io;
use std::path::Path;

use tokio::process::Command;

use super::scenario::Scenario;
use super::target::Target;
use crate::part::Part;

/// A target, and the process that stands for it.
pub(super) struct Asked<'p> {
    pub(super) target: Target,
    pub(super) part: &'p Part,
}

impl Asked<'_> {
    /// The process whose cost is measured; the upstream's own is no proxy's.
    pub(super) fn watched(&self) -> Option<u32> {
        (self.target != Target::Direct).then_some(self.part.pid)
    }

    /// The command `load` or `hold` with everything that says who is asked what.
    pub(super) fn command(
        &self,
        name: &str,
        scenario: Scenario,
        keys: Option<&Path>,
    ) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(name)
            .args(["--address", &self.part.address.to_string()])
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
        if let Some(topic) = scenario.shape.topic() {
            return format!("/v1{}", topic.path());
        }
        match self.target {
            Target::Direct | Target::Bare => {
                format!("{}/chat/completions", scenario.upstream.base_path())
            }
            // The gateway finds the way by the model, and may be asked in other words.
            _ if scenario.shape.is_converted() => "/v1/messages".to_owned(),
            _ => "/v1/chat/completions".to_owned(),
        }
    }
}
