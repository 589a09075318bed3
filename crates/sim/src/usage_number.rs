//! Writes one number of a usage object, either true or changed by a fault.

use crate::fault::UsageFault;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy)]
pub(crate) enum UsageNumber {
    Number(u64),
    /// The number, written as a string.
    Text(u64),
    /// A JSON number that is not a `u64`: negative, fractional or too large.
    Raw(&'static str),
}

impl Serialize for UsageNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Text(number) => serializer.collect_str(number),
            Self::Raw(text) => {
                let raw: &RawValue =
                    serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
        }
    }
}

impl UsageNumber {
    /// The number that is reported with a fault. The caller must handle `UsageFault::Missing`.
    pub(crate) fn with_fault(number: u64, fault: UsageFault) -> Self {
        match fault {
            UsageFault::Exact
            | UsageFault::Missing
            | UsageFault::Running
            | UsageFault::OnFinish
            | UsageFault::Unasked
            | UsageFault::Costed => Self::Number(number),
            UsageFault::Zero => Self::Number(0),
            UsageFault::Negative => Self::Raw("-5"),
            UsageFault::Huge => Self::Number(9_000_000_000_000_000_000),
            UsageFault::Overflow => Self::Raw("99999999999999999999999999"),
            UsageFault::Text => Self::Text(number),
            UsageFault::Fraction => Self::Raw("12.5"),
            UsageFault::Shrinking => Self::Number(number / 2),
        }
    }
}
