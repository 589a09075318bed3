//! Property tests that compare prices with a second implementation, which shares no code with the ledger. It looks up
//! prices by name in the written card and uses plain fractions.

use std::collections::BTreeMap;

use ledger::{Exact, Meter, PriceCard, PriceValue, TextBound, bound_meter, hold_of};
use proptest::prelude::*;

/// Price key, metered units per price, and a function that reads the quantity from a meter.
type Row = (&'static str, u128, fn(&Meter) -> u64);

const TOKENS: [Row; 9] = [
    ("input", 1_000_000, |used| used.input),
    ("cached_input", 1_000_000, |used| used.cached_input),
    ("cache_write", 1_000_000, |used| used.cache_write),
    ("cache_write_1h", 1_000_000, |used| used.cache_write_1h),
    ("image_input", 1_000_000, |used| used.image_input),
    ("audio_input", 1_000_000, |used| used.audio_input),
    ("output", 1_000_000, |used| used.output),
    ("image_output", 1_000_000, |used| used.image_output),
    ("audio_output", 1_000_000, |used| used.audio_output),
];
const TIERED: [Row; 3] = [
    ("image", 1, |used| used.images),
    ("video_second", 1, |used| used.video_seconds),
    ("video_tokens", 1_000_000, |used| used.video_tokens),
];
const PLAIN: [Row; 7] = [
    ("usd", 10_000_000_000, |used| used.usd_ticks),
    ("tts_characters", 1_000_000, |used| used.tts_characters),
    ("tts_stream_characters", 1_000_000, |used| {
        used.tts_stream_characters
    }),
    ("stt_second", 1, |used| used.stt_seconds),
    ("stt_stream_second", 1, |used| used.stt_stream_seconds),
    ("realtime_minute", 60, |used| used.realtime_seconds),
    ("realtime_text_input", 1, |used| used.text_inputs),
];

/// A fraction with plain arithmetic: common denominators, then cancelling.
#[derive(Clone, Copy)]
struct Fraction(u128, u128);

impl Fraction {
    fn of_decimal(text: &str) -> Self {
        let (whole, digits) = text.split_once('.').unwrap_or((text, "0"));
        let tenths = 10_u128.pow(u32::try_from(digits.len()).expect("texts here are short"));
        let digits: u128 = digits.parse().expect("digits");
        Self(
            whole.parse::<u128>().expect("digits") * tenths + digits,
            tenths,
        )
        .cancelled()
    }

    fn cancelled(self) -> Self {
        let (mut larger, mut smaller) = (self.1, self.0);
        while smaller > 0 {
            (larger, smaller) = (smaller, larger % smaller);
        }
        Self(self.0 / larger, self.1 / larger)
    }

    fn times(self, over: u128, under: u128) -> Self {
        Self(self.0 * over, self.1 * under).cancelled()
    }

    fn plus(self, other: Self) -> Self {
        let cancelled = Self(self.1, other.1).cancelled();
        Self(
            self.0 * cancelled.1 + other.0 * cancelled.0,
            self.1 * cancelled.1,
        )
        .cancelled()
    }

    fn micro_up(self) -> Option<i64> {
        let (whole, rest) = (self.0 / self.1, self.0 % self.1);
        let micro = whole.checked_mul(1_000_000)? + (rest * 1_000_000).div_ceil(self.1);
        i64::try_from(micro).ok()
    }
}

type Members = BTreeMap<String, PriceValue>;

fn table(value: &PriceValue) -> &Members {
    match value {
        PriceValue::Table(table) => table,
        other => panic!("{other:?} is not a table"),
    }
}

fn text(value: &PriceValue) -> &str {
    match value {
        PriceValue::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn naive_price(card: &Members, used: &Meter) -> Option<i64> {
    let mut parts: Vec<(Option<&str>, u64, u128)> = Vec::new();
    let input: u64 = TOKENS[..6].iter().map(|row| row.2(used)).sum();
    let mut tokens = card.clone();
    if let Some(PriceValue::List(thresholds)) = card.get("long_context") {
        let bound = |threshold: &&PriceValue| match table(threshold)["above_tokens"] {
            PriceValue::Whole(bound) => bound,
            _ => u64::MAX,
        };
        if let Some(threshold) = thresholds
            .iter()
            .filter(|threshold| input > bound(threshold))
            .max_by_key(bound)
        {
            let two = |name: &&String| ["input", "output"].contains(&name.as_str());
            tokens.retain(|name, _| two(&name));
            tokens.extend(table(threshold).clone());
        }
    }
    for (name, per, quantity) in TOKENS {
        let side = if name.ends_with("output") {
            "output"
        } else {
            "input"
        };
        let side = if name.starts_with("cache") {
            "input"
        } else {
            side
        };
        let shorter = name.strip_suffix("_1h").unwrap_or(name);
        let price = [name, shorter, side].iter().find_map(|it| tokens.get(*it));
        let price = price.map(text);
        parts.push((price, quantity(used), per));
    }
    for (name, per, quantity) in TIERED {
        let tier = if name == "image" {
            &used.image_tier
        } else {
            &used.video_tier
        };
        let tier = tier.as_deref().unwrap_or("default");
        let price = card
            .get(name)
            .map(table)
            .map(|tiers| text(tiers.get(tier).unwrap_or_else(|| &tiers["default"])));
        parts.push((price, quantity(used), per));
    }
    for (name, per, quantity) in PLAIN {
        parts.push((card.get(name).map(text), quantity(used), per));
    }
    for (name, calls) in &used.tools {
        let price = card.get("tools").and_then(|tools| table(tools).get(name));
        parts.push((Some(price.map_or("0", text)), *calls, 1));
    }
    let mut sum = Fraction(0, 1);
    for (price, quantity, per) in parts {
        if quantity > 0 {
            let price = Fraction::of_decimal(price?);
            sum = sum.plus(price.times(u128::from(quantity), per));
        }
    }
    sum.micro_up()
}

fn any_decimal() -> impl Strategy<Value = PriceValue> {
    let whole = prop_oneof![4 => 0_u32..20, 1 => 0_u32..10_000];
    let digits = prop_oneof![Just(0_usize), 0_usize..=12];
    (whole, 0_u64..1_000_000_000_000, digits).prop_map(|(whole, fraction, digits)| {
        let fraction = &format!(".{fraction:012}")[..=digits];
        PriceValue::Text(format!("{whole}{}", fraction.trim_end_matches('.')))
    })
}

/// Prices for some of the names. Each price is left out in one of `absent` cases.
fn any_members(names: Vec<&'static str>, absent: u32) -> impl Strategy<Value = Members> {
    let each = names
        .into_iter()
        .map(|name| (Just(name.to_owned()), maybe(any_decimal(), absent)));
    each.collect::<Vec<_>>().prop_map(|members| {
        members
            .into_iter()
            .filter_map(|(name, price)| Some((name, price?)))
            .collect()
    })
}

fn maybe<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
    absent: u32,
) -> impl Strategy<Value = Option<T>> {
    prop_oneof![absent - 1 => value.prop_map(Some), 1 => Just(None)]
}

fn names(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().map(|row| row.0).collect()
}

fn any_tiers() -> impl Strategy<Value = PriceValue> {
    (any_decimal(), any_members(vec!["high", "2k", "720p"], 2)).prop_map(|(default, mut tiers)| {
        tiers.insert("default".to_owned(), default);
        PriceValue::Table(tiers)
    })
}

fn any_steps() -> impl Strategy<Value = PriceValue> {
    let threshold = any_members(names(&TOKENS), 2);
    prop::collection::btree_map(0_u64..3_000, threshold, 0..4).prop_map(|thresholds| {
        let threshold = |(bound, mut threshold): (u64, Members)| {
            threshold.insert("above_tokens".to_owned(), PriceValue::Whole(bound));
            PriceValue::Table(threshold)
        };
        // In descending order, to show that the order in the list does not matter.
        PriceValue::List(thresholds.into_iter().rev().map(threshold).collect())
    })
}

/// A card. `input` and `output` are always present, as for every text model.
fn any_card() -> impl Strategy<Value = Members> {
    let both = (any_decimal(), any_decimal());
    let tokens = any_members(names(&TOKENS), 2);
    let plain = any_members(names(&PLAIN), 20);
    let tiers = [any_tiers(), any_tiers(), any_tiers()].map(|tiers| maybe(tiers, 20));
    let tools = any_members(vec!["web_search", "code"], 2);
    (both, tokens, plain, tiers, any_steps(), tools).prop_map(
        |((input, output), tokens, plain, tiers, thresholds, tools)| {
            let mut card = tokens;
            card.extend(plain);
            for (row, tiers) in TIERED.iter().zip(tiers) {
                card.extend(tiers.map(|tiers| (row.0.to_owned(), tiers)));
            }
            card.insert("input".to_owned(), input);
            card.insert("output".to_owned(), output);
            card.insert("long_context".to_owned(), thresholds);
            card.insert("tools".to_owned(), PriceValue::Table(tools));
            card
        },
    )
}

fn any_tier() -> impl Strategy<Value = Option<Box<str>>> {
    prop::option::of(prop_oneof![
        Just("high"),
        Just("2k"),
        Just("720p"),
        Just("4k")
    ])
    .prop_map(|tier| tier.map(Box::from))
}

fn any_tool() -> impl Strategy<Value = String> {
    prop_oneof![Just("web_search"), Just("code"), Just("maps")].prop_map(str::to_owned)
}

fn any_quantity() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0_u64), 4 => 1_u64..2_000, 1 => 0_u64..1_000_000_000]
}

fn any_meter() -> impl Strategy<Value = Meter> {
    let tokens =
        prop::array::uniform9(prop_oneof![1 => Just(0), 2 => 0_u64..1_500, 1 => any_quantity()]);
    let media = prop::array::uniform3(any_quantity());
    let rest = prop::array::uniform7(any_quantity());
    let tools = prop::collection::btree_map(any_tool(), any_quantity(), 0..3);
    (tokens, media, rest, any_tier(), any_tier(), tools).prop_map(
        |(tokens, media, rest, image_tier, video_tier, tools)| Meter {
            input: tokens[0],
            cached_input: tokens[1],
            cache_write: tokens[2],
            output: tokens[3],
            image_input: tokens[4],
            image_output: tokens[5],
            audio_input: tokens[6],
            audio_output: tokens[7],
            cache_write_1h: tokens[8],
            images: media[0],
            video_seconds: media[1],
            video_tokens: media[2],
            usd_ticks: rest[0],
            tts_characters: rest[1],
            tts_stream_characters: rest[2],
            stt_seconds: rest[3],
            stt_stream_seconds: rest[4],
            realtime_seconds: rest[5],
            text_inputs: rest[6],
            image_tier,
            video_tier,
            tools,
        },
    )
}

/// Splits `count` into as many pieces as there are cuts. Each cut is a percentage of what is left;
/// the rest is dropped.
fn pieces<const N: usize>(count: u64, cuts: [u64; N]) -> [u64; N] {
    let mut left = count;
    cuts.map(|cut| {
        let piece = left * cut / 100;
        left -= piece;
        piece
    })
}

proptest! {
    #[test]
    fn a_price_is_what_school_arithmetic_gives(members in any_card(), used in any_meter()) {
        let card = PriceCard::parse(&members).unwrap();
        let price = card.price(&used);
        prop_assert_eq!(price.as_ref().ok().map(|micro| micro.get()), naive_price(&members, &used));
        if let Ok(price) = price {
            let amounts = card.lines(&used).into_iter().filter_map(|line| line.amount);
            let sum = amounts.fold(Exact::ZERO, |sum, amount| sum.checked_add(amount).unwrap());
            prop_assert_eq!(sum.round_up(), Ok(price));
        }
    }

    #[test]
    fn a_card_and_its_written_form_are_one(members in any_card(), used in any_meter()) {
        let card = PriceCard::parse(&members).unwrap();
        let written = serde_json::to_string(&card).unwrap();
        let again: PriceCard = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), written);
        prop_assert_eq!(again.price(&used), card.price(&used));
        prop_assert_eq!(again, card);
    }

    /// N4: usage within the bound never costs more than the hold.
    #[test]
    fn usage_inside_the_bound_never_costs_more_than_the_hold(
        members in any_card(),
        input in 0_u64..4_000,
        output in 0_u64..4_000,
        inputs in prop::array::uniform5(0_u64..=100),
        outputs in prop::array::uniform3(0_u64..=100),
    ) {
        let card = PriceCard::parse(&members).unwrap();
        let held = hold_of(&card, &Meter { input, output, ..Meter::default() }).unwrap();
        let inputs = pieces(input, inputs);
        let outputs = pieces(output, outputs);
        let used = Meter {
            input: inputs[0],
            cached_input: inputs[1],
            cache_write: inputs[2],
            image_input: inputs[3],
            audio_input: inputs[4],
            output: outputs[0],
            image_output: outputs[1],
            audio_output: outputs[2],
            ..Meter::default()
        };
        prop_assert!(card.price(&used).unwrap() <= held);
    }

    #[test]
    fn a_larger_bound_never_holds_less(members in any_card(), bound in any_meter(), cut in 0_u64..=100) {
        let card = PriceCard::parse(&members).unwrap();
        let smaller = Meter {
            input: bound.input * cut / 100,
            cached_input: bound.cached_input * cut / 100,
            image_output: bound.image_output * cut / 100,
            images: bound.images * cut / 100,
            realtime_seconds: bound.realtime_seconds * cut / 100,
            ..bound.clone()
        };
        if let Ok(held) = hold_of(&card, &bound) {
            prop_assert!(hold_of(&card, &smaller).unwrap() <= held);
            prop_assert!(card.price(&smaller).unwrap() <= held);
        }
    }

    #[test]
    fn the_reserve_only_lowers_the_hold(
        members in any_card(), input in 0_u64..4_000, output in 0_u64..4_000, choices in 0_u32..4, reserve in 1_u64..9_000,
    ) {
        let card = PriceCard::parse(&members).unwrap();
        let bound = TextBound { input_tokens: input, output_tokens_max: Some(output), choices };
        let (some, whole) = (bound_meter(&bound, reserve), bound_meter(&bound, 0));
        prop_assert_eq!(some.input, whole.input);
        prop_assert_eq!(some.output, whole.output.min(reserve));
        prop_assert!(hold_of(&card, &some).unwrap() <= hold_of(&card, &whole).unwrap());
    }
}
