//! A test gateway for all pairs of dialects: one upstream for each dialect, each serving one model.

use std::fmt::Write as _;

use super::dialect::Dialect;
use super::test_gateway::{GatewayBuilder, Key, TestGateway};

/// The public id of the model whose upstream uses this dialect.
pub(crate) fn model_via(upstream: Dialect) -> String {
    format!("maker/via-{}", upstream.name())
}

/// All pairs of a caller's dialect and an upstream's dialect.
pub(crate) fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    let upstreams = |caller| Dialect::ALL.map(|upstream| (caller, upstream));
    Dialect::ALL.into_iter().flat_map(upstreams)
}

impl GatewayBuilder {
    /// Adds a channel at `address` that uses this dialect, and a model that the upstream calls `name`. The address
    /// `SIM` stands for the simulated upstream.
    pub(crate) fn upstream(self, dialect: Dialect, address: &str, name: &str) -> Self {
        let mut entries = String::new();
        let (speaks, model) = (dialect.name(), model_via(dialect));
        let _ = write!(
            entries,
            "[[channel]]
            name = \"{speaks}\"
            preset = \"sim\"
            base_url = \"http://{address}/v1\"
            credential = {{ file = \"upstream-key\" }}
            protocols = [\"{speaks}\"]
            [[model]]
            id = \"{model}\"
            kind = \"text\"
            routes = [{{ channel = \"{speaks}\", model = \"{name}\" }}]
            price = {{ input = \"1.25\", output = \"10\" }}
            profile = {{ max_output_tokens = 128000, vision = true, tools = true }}"
        );
        self.entries(&entries)
    }

    /// Opens a test gateway with the simulated upstream behind every dialect.
    pub(crate) async fn paired(self, name: &str) -> (TestGateway, Key) {
        let add = |builder: Self, dialect| builder.upstream(dialect, "SIM", name);
        Dialect::ALL.into_iter().fold(self, add).funded().await
    }
}
