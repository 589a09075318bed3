//! Two channels to the simulated upstream, for tests of models with two routes.

use serde_json::{Value, json};

use crate::harness::{TestGateway, ask, with};

/// The channels `first` and `second`. Add models with routes to them.
pub(super) const TWO_CHANNELS: &str = r#"
    [[channel]]
    name = "first"
    preset = "sim"
    base_url = "http://SIM/v1"
    [[channel]]
    name = "second"
    preset = "sim"
    base_url = "http://SIM/v1"
"#;

/// The number of calls to `route-a` and `route-b`.
pub(super) fn tried(gateway: &TestGateway) -> (usize, usize) {
    (
        gateway.sim.calls_of("route-a").len(),
        gateway.sim.calls_of("route-b").len(),
    )
}

/// A small request for a model.
pub(super) fn hello(model: &str) -> Value {
    with(ask("hello"), &json!({ "model": model }))
}
