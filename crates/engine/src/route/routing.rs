//! The settings that decide how the routes of a model are chosen.

/// The criterion that orders routes of the same priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteOrder {
    /// Their weights: the routes share the calls in this proportion.
    #[default]
    Priority,
    /// The shortest time until an answer begins, as measured on this node.
    Latency,
    /// The lowest estimated cost of the call.
    Cost,
}

impl RouteOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Priority, Self::Latency, Self::Cost];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Priority => "priority",
            Self::Latency => "latency",
            Self::Cost => "cost",
        }
    }
}

/// How the routes of a model are chosen, in addition to their priorities and weights.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    pub order: RouteOrder,
    /// Whether calls of one wallet whose prompts begin alike prefer the same route, because the upstream's prompt cache
    /// may contain the beginning.
    pub sticky: bool,
    /// The public ids of models that may answer if no route of this model can. Only operators can set them.
    pub fallbacks: Vec<String>,
}

impl Routing {
    /// Whether only weights decide between routes of the same priority.
    pub(crate) fn is_plain(&self) -> bool {
        self.order == RouteOrder::Priority && !self.sticky
    }
}
