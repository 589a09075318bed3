//! Creates ids of items. The ids of calls and messages encode the reasoning before them, so that the simulator can
//! refuse a history without that reasoning, as the vendor does.

use crate::seed::Seed;

const REASONING: &str = "rs_Sim";
const REASONING_LENGTH: usize = 20;
const TAIL_LENGTH: usize = 8;
/// The letter after the prefix, which says whether reasoning came before the item.
const AFTER: char = 'R';
const ALONE: char = 'N';

pub(super) fn response(seed: &mut Seed) -> String {
    format!("resp_Sim{}", seed.letters(32))
}

pub(super) fn reasoning(seed: &mut Seed) -> String {
    format!("{REASONING}{}", seed.letters(REASONING_LENGTH))
}

/// Creates the id of an item, with the prefix of its type.
pub(super) fn item(prefix: &str, reasoning: Option<&str>, seed: &mut Seed) -> String {
    match reasoning.and_then(|id| id.strip_prefix(REASONING)) {
        Some(bound) => format!("{prefix}_Sim{AFTER}{bound}{}", seed.letters(TAIL_LENGTH)),
        None => format!(
            "{prefix}_Sim{ALONE}{}",
            seed.letters(REASONING_LENGTH + TAIL_LENGTH)
        ),
    }
}

/// The id of the reasoning before an item, if the item's id contains one.
pub(super) fn reasoning_of(prefix: &str, id: &str) -> Option<String> {
    let bound = id
        .strip_prefix(prefix)?
        .strip_prefix("_Sim")?
        .strip_prefix(AFTER)?;
    let bound = bound.get(..REASONING_LENGTH)?;
    Some(format!("{REASONING}{bound}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_tell_the_reasoning_before_them() {
        let mut seed = Seed::new(1);
        let thought = reasoning(&mut seed);
        let bound = item("fc", Some(&thought), &mut seed);
        assert_eq!(reasoning_of("fc", &bound), Some(thought));
        let alone = item("fc", None, &mut seed);
        for (prefix, id) in [("fc", alone.as_str()), ("msg", &bound), ("fc", "fc_1")] {
            assert_eq!(reasoning_of(prefix, id), None, "{id}");
        }
    }
}
