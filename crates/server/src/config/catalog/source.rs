//! Records where the values of a model come from.

use ledger::Markup;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::known_models::Origin;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The `[[model]]` entry.
    File,
    /// The catalog that is built into the program.
    Catalog,
    /// The file that `[catalog]` names.
    CatalogFile,
    /// The `models` list of a channel.
    Channel,
    Default,
}

impl Source {
    /// The name in `tollgate check --json` and in the admin API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Catalog => "catalog",
            Self::CatalogFile => "catalog-file",
            Self::Channel => "channel",
            Self::Default => "default",
        }
    }
}

impl From<Origin> for Source {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::BuiltIn => Self::Catalog,
            Origin::File => Self::CatalogFile,
        }
    }
}

/// The source of each value of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    pub kind: Source,
    pub created: Source,
    pub routes: Source,
    pub price: Source,
    pub profile: Source,
    /// The markup of the channel whose cost became the price, if that channel sets one.
    pub markup: Option<Markup>,
}

impl Sources {
    /// The sources by the name of their value, in the order in which they are shown.
    pub fn by_name(&self) -> [(&'static str, Source); 5] {
        [
            ("kind", self.kind),
            ("created", self.created),
            ("routes", self.routes),
            ("price", self.price),
            ("profile", self.profile),
        ]
    }
}

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, source) in self.by_name() {
            members.serialize_entry(name, source.as_str())?;
        }
        if let Some(markup) = self.markup {
            members.serialize_entry("markup", &markup.to_string())?;
        }
        members.end()
    }
}
