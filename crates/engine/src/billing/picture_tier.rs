//! Determines the price tier of pictures from the requested grade and the delivered grade.
//!
//! A price card may have tiers by quality (`high`) and by size (`2k`, `1536x1024`). A request names values in some of
//! these dimensions, and so does an answer. A quality without its own price counts as the default, if the card prices
//! other qualities. A size without its own price costs at least as much as the smaller sizes with a price. A picture
//! costs the price of the most expensive value that was named (`docs/decisions/026`).

use ledger::{Price, PriceCard, PriceKey};
use protocol::images::{PriceGrade, Size, is_left_to_upstream};

/// The tier at which pictures are billed; `None` is the default tier. The grade in the answer counts if it is more
/// expensive than the requested one, or if the request names none.
pub(crate) fn billed(
    card: &PriceCard,
    requested: &PriceGrade,
    reported: &PriceGrade,
) -> Option<Box<str>> {
    let tiers = Tiers::of(card);
    let named = [tiers.named(requested), tiers.named(reported)];
    let named = named.iter().flat_map(|it| [it.quality, it.size, it.word]);
    tiers.name_of_dearest(named.flatten())
}

/// The tier that the hold covers. If the request leaves the choice to the upstream, this is the most expensive tier.
pub(crate) fn bound(card: &PriceCard, requested: &PriceGrade) -> Option<Box<str>> {
    let tiers = Tiers::of(card);
    let named = tiers.named(requested);
    let quality = named.quality.or_else(|| tiers.dearest(&tiers.qualities));
    let size = named.size.or_else(|| tiers.dearest(&tiers.sizes));
    tiers.name_of_dearest([quality, size, named.word].into_iter().flatten())
}

/// A price and its tier; `None` is the default tier.
type Cost<'a> = (Price, Option<&'a str>);

/// One priced value of a dimension.
struct Value<'a> {
    name: &'a str,
    /// The size, if the value is one.
    size: Option<Size>,
    cost: Cost<'a>,
}

/// The tiers of a card, by dimension.
struct Tiers<'a> {
    default: Cost<'a>,
    qualities: Vec<Value<'a>>,
    sizes: Vec<Value<'a>>,
}

/// The costs of a grade by dimension. A dimension is `None` if the grade does not name it or the card does not price
/// it.
struct Named<'a> {
    quality: Option<Cost<'a>>,
    /// The size, or the resolution if it looks like a size.
    size: Option<Cost<'a>>,
    /// The resolution if it is a word; price cards list such words among the qualities.
    word: Option<Cost<'a>>,
}

impl<'a> Tiers<'a> {
    fn of(card: &'a PriceCard) -> Self {
        let values = card.tiers(PriceKey::Image).map(|(name, price)| Value {
            name,
            size: Size::parse(name).filter(|size| *size != Size::Open),
            cost: (price, Some(name)),
        });
        let (sizes, qualities) = values.partition(|value| value.size.is_some());
        Self {
            default: (card.unit_price(PriceKey::Image).unwrap_or_default(), None),
            qualities,
            sizes,
        }
    }

    fn named(&self, grade: &PriceGrade) -> Named<'a> {
        let quality = grade.quality.as_deref();
        let size = grade.size.as_deref();
        let resolution = grade.resolution.as_deref();
        let is_size = |it: &&str| Size::parse(it).is_some();
        let sizes = [size, resolution.filter(is_size)].into_iter().flatten();
        let word = resolution.filter(|it| !is_size(it));
        Named {
            quality: quality.and_then(|it| self.quality(it)),
            size: sizes.filter_map(|it| self.size(it)).max(),
            word: word.and_then(|it| self.quality(it)),
        }
    }

    fn quality(&self, word: &str) -> Option<Cost<'a>> {
        let priced = |value: &&Value<'_>| value.name.eq_ignore_ascii_case(word.trim());
        match self.qualities.iter().find(priced) {
            Some(value) => Some(value.cost),
            None if self.qualities.is_empty() || is_left_to_upstream(word) => None,
            None => Some(self.default),
        }
    }

    /// The cost of a size: the price of exactly this size, otherwise the price of its tier. If the card has neither,
    /// the size costs at least as much as any smaller size with a price.
    fn size(&self, text: &str) -> Option<Cost<'a>> {
        let size = Size::parse(text).filter(|size| *size != Size::Open)?;
        if self.sizes.is_empty() {
            return None;
        }
        let priced = |size: Size| {
            self.sizes
                .iter()
                .find(move |value| value.size == Some(size))
        };
        if let Some(value) = priced(size).or_else(|| priced(size.tier())) {
            return Some(value.cost);
        }
        let is_smaller = |value: &&Value<'_>| value.size.and_then(Size::pixels) <= size.pixels();
        let smaller = self.sizes.iter().filter(is_smaller).map(|it| it.cost);
        smaller.chain([self.default]).max()
    }

    /// The most expensive value of a dimension, if the card prices any.
    fn dearest(&self, values: &[Value<'a>]) -> Option<Cost<'a>> {
        let dearest = values.iter().map(|value| value.cost).max()?;
        Some(dearest.max(self.default))
    }

    fn name_of_dearest(&self, costs: impl Iterator<Item = Cost<'a>>) -> Option<Box<str>> {
        let (_, name) = costs
            .max_by_key(|(price, _)| *price)
            .unwrap_or(self.default);
        name.map(Box::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    fn grade(quality: Option<&str>, resolution: Option<&str>, size: Option<&str>) -> PriceGrade {
        PriceGrade {
            quality: quality.map(Box::from),
            resolution: resolution.map(Box::from),
            size: size.map(Box::from),
        }
    }

    const QUALITIES: &str = r#"{"image":{"default":"0.17","low":"0.02","medium":"0.07"}}"#;
    const SIZES: &str = r#"{"image":{"default":"0.04","2k":"0.07","4k":"0.2"}}"#;
    const BOTH: &str = r#"{"image":{"default":"0.04","low":"0.02","high":"0.17","2k":"0.07"}}"#;

    #[test]
    fn the_dearest_of_what_was_asked_for_and_told_is_billed() {
        let none = || grade(None, None, None);
        let quality = |word| grade(Some(word), None, None);
        let size = |size| grade(None, None, Some(size));
        for (prices, requested, reported, tier) in [
            // A value without a price counts as the default, also when other values are named.
            (
                QUALITIES,
                grade(Some("high"), None, Some("low")),
                none(),
                None,
            ),
            (
                QUALITIES,
                grade(Some("high"), Some("low"), None),
                none(),
                None,
            ),
            (QUALITIES, quality("LOW"), none(), Some("low")),
            (QUALITIES, quality("auto"), none(), None),
            (QUALITIES, quality("auto"), quality("low"), Some("low")),
            // A dimension that the card does not price is ignored.
            (
                QUALITIES,
                grade(Some("low"), None, Some("1024x1024")),
                none(),
                Some("low"),
            ),
            (
                SIZES,
                grade(Some("low"), None, Some("2K")),
                none(),
                Some("2k"),
            ),
            // The grade in the answer counts if it is more expensive.
            (QUALITIES, quality("low"), quality("medium"), Some("medium")),
            (QUALITIES, quality("low"), quality("high"), None),
            (QUALITIES, quality("medium"), quality("low"), Some("medium")),
            (BOTH, quality("low"), size("2048x2048"), Some("2k")),
            (BOTH, quality("high"), size("2048x2048"), Some("high")),
            (
                BOTH,
                quality("low"),
                grade(None, Some("2k"), None),
                Some("2k"),
            ),
            (BOTH, none(), size("2048x2048"), Some("2k")),
            (
                BOTH,
                grade(Some("low"), None, Some("1024x1024")),
                none(),
                None,
            ),
            // No size is cheaper than a smaller one.
            (SIZES, size("1024x1024"), none(), None),
            (SIZES, size("2049x2049"), none(), Some("2k")),
            (SIZES, size("4097x4096"), none(), Some("4k")),
            (SIZES, size("auto"), none(), None),
        ] {
            let found = billed(&card(prices), &requested, &reported);
            assert_eq!(
                found.as_deref(),
                tier,
                "{prices} {requested:?} {reported:?}"
            );
        }
    }

    #[test]
    fn what_is_left_open_is_held_at_the_dearest() {
        for (prices, requested, tier) in [
            (BOTH, grade(Some("high"), None, None), Some("high")),
            (BOTH, grade(None, None, Some("64x64")), Some("high")),
            (BOTH, grade(Some("low"), None, None), Some("2k")),
            (BOTH, grade(Some("low"), None, Some("64x64")), None),
            (QUALITIES, grade(Some("low"), None, None), Some("low")),
            (QUALITIES, grade(None, None, None), None),
            (SIZES, grade(None, None, Some("auto")), Some("4k")),
        ] {
            let found = bound(&card(prices), &requested);
            assert_eq!(found.as_deref(), tier, "{prices} {requested:?}");
        }
    }

    fn any_grade() -> impl Strategy<Value = PriceGrade> {
        let word = || {
            let words = [
                "low",
                "LOW",
                "high",
                "ultra",
                "auto",
                "2k",
                "1K",
                "4096x4096",
                "5000x5000",
                "64x64",
            ];
            proptest::option::of(select(words.to_vec()))
        };
        (word(), word(), word())
            .prop_map(|(quality, resolution, size)| grade(quality, resolution, size))
    }

    fn any_card() -> impl Strategy<Value = PriceCard> {
        let names = ["low", "high", "1k", "2k", "4k", "1024x1024", "64x64"];
        let tiers = proptest::collection::btree_map(select(names.to_vec()), 0_u32..9, 0..6);
        (tiers, 0_u32..9).prop_map(|(tiers, default)| {
            let tiers = tiers.into_iter().chain([("default", default)]);
            let tiers: Vec<_> = tiers
                .map(|(name, price)| format!("\"{name}\":\"{price}\""))
                .collect();
            card(&format!(r#"{{"image":{{{}}}}}"#, tiers.join(",")))
        })
    }

    fn micro(card: &PriceCard, image_tier: Option<Box<str>>) -> i64 {
        let meter = ledger::Meter {
            images: 1,
            image_tier,
            ..ledger::Meter::default()
        };
        card.price(&meter).unwrap().get()
    }

    proptest! {
        /// A call that names several values costs at least as much as a call that names only one of them. The grade in
        /// an answer never lowers the price of the requested grade.
        #[test]
        fn no_further_word_lowers_the_price(card in any_card(), requested in any_grade(), reported in any_grade()) {
            let none = PriceGrade::default();
            let charge = micro(&card, billed(&card, &requested, &reported));
            let alone = [
                PriceGrade { quality: requested.quality.clone(), ..none.clone() },
                PriceGrade { resolution: requested.resolution.clone(), ..none.clone() },
                PriceGrade { size: requested.size.clone(), ..none.clone() },
                reported,
            ];
            let tiers = Tiers::of(&card);
            for part in alone {
                let named = tiers.named(&part);
                if [named.quality, named.size, named.word].iter().any(Option::is_some) {
                    prop_assert!(charge >= micro(&card, billed(&card, &part, &none)), "{:?}", part);
                }
            }
        }

        /// An answer with the requested grade costs no more than the hold.
        #[test]
        fn the_hold_covers_what_was_asked_for(card in any_card(), requested in any_grade(), open in any_grade()) {
            let or = |requested: &Option<Box<str>>, open: Option<Box<str>>| {
                let is_named = requested.as_deref().is_some_and(|it| !is_left_to_upstream(it));
                if is_named { requested.clone() } else { open }
            };
            let reported = PriceGrade {
                quality: or(&requested.quality, open.quality),
                resolution: requested.resolution.clone(),
                size: requested.size.clone(),
            };
            let held = micro(&card, bound(&card, &requested));
            prop_assert!(micro(&card, billed(&card, &requested, &reported)) <= held);
        }
    }
}
