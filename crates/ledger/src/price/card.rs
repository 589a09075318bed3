//! The price card and the one function that prices a call.

use std::collections::BTreeMap;

use super::read::CardFault;
use super::{Exact, Price, PriceKey};
use crate::meter::Meter;
use crate::micro::{Micro, Overflow};

/// What a model's usage costs.
///
/// A card is read from configuration ([`PriceCard::parse`], or serde), written back in one
/// canonical form to be kept as a price version, and applied with [`PriceCard::price`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceCard {
    pub(super) tokens: Tokens,
    /// Ascending by `above_tokens`.
    pub(super) long_context: Vec<Step>,
    /// The other keys, at their places in [`PriceKey::ALL`]; of tiered ones the default.
    pub(super) plain: [Option<Price>; PriceKey::ALL.len()],
    /// Tiers beside the default, by key; names in lower case, sorted.
    pub(super) tiers: BTreeMap<PriceKey, Vec<(Box<str>, Price)>>,
    pub(super) tools: BTreeMap<String, Price>,
}

/// Why a card cannot be read or a call cannot be priced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// A member of the card is wrong; `key` is its path.
    #[error("`{key}` {fault}")]
    Card {
        /// The path of the member: `input`, `image.high`, `long_context[1].output`.
        key: String,
        /// What is wrong with it.
        fault: CardFault,
    },
    /// The call used what the card has no price for.
    #[error("the card has no price for `{0}`")]
    Unpriced(PriceKey),
    /// The amount does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// One component of a price, for explaining it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The price key, with its tier or tool: `input`, `image.high`, `tools.web_search`.
    pub component: String,
    /// What was used, in metered units.
    pub quantity: u64,
    /// How many metered units the price is for.
    pub per: u64,
    /// The price; none when the card has none.
    pub price: Option<Price>,
    /// The exact amount; none when there is no price or the amount does not fit.
    pub amount: Option<Exact>,
}

/// The prices of the token classes: the card's own, or those of a long-context step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tokens([Option<Price>; 9]);

/// Prices of the whole call when its input exceeds a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) above_tokens: u64,
    pub(super) tokens: Tokens,
}

/// What is priced: a quantity of one thing, and its price if there is one.
struct Part<'a> {
    thing: Thing<'a>,
    quantity: u64,
    price: Option<Price>,
}

#[derive(Clone, Copy)]
enum Thing<'a> {
    Key(PriceKey, Option<&'a str>),
    Tool(&'a str),
}

impl PriceCard {
    /// The price of what a call used: every component exactly, one sum, rounded up once.
    ///
    /// Tools that have no price cost nothing ([`PriceCard::unpriced_tools`] names them);
    /// anything else without a price is an error.
    pub fn price(&self, meter: &Meter) -> Result<Micro, PriceError> {
        self.price_with(self.tokens_at(meter.input_total()), meter)
    }

    /// The same sum and the same rounding, with the given prices of the token classes.
    pub(crate) fn price_with(&self, tokens: &Tokens, meter: &Meter) -> Result<Micro, PriceError> {
        let mut sum = Exact::ZERO;
        for part in self.parts(tokens, meter) {
            match (part.price, part.thing) {
                (Some(price), thing) => {
                    let amount = Exact::of(part.quantity, price, thing.per())?;
                    sum = sum.checked_add(amount).ok_or(Overflow)?;
                }
                (None, Thing::Tool(_)) => {}
                (None, Thing::Key(key, _)) => return Err(PriceError::Unpriced(key)),
            }
        }
        Ok(sum.round_up()?)
    }

    /// The components of a price, for people. Their exact amounts add up to what
    /// [`PriceCard::price`] rounds.
    pub fn lines(&self, meter: &Meter) -> Vec<Line> {
        self.parts(self.tokens_at(meter.input_total()), meter)
            .map(
                |Part {
                     thing,
                     quantity,
                     price,
                 }| Line {
                    component: thing.name(),
                    quantity,
                    per: thing.per(),
                    price,
                    amount: price.and_then(|price| Exact::of(quantity, price, thing.per()).ok()),
                },
            )
            .collect()
    }

    /// The tools that were called and have no price.
    pub fn unpriced_tools<'a>(&'a self, meter: &'a Meter) -> impl Iterator<Item = &'a str> {
        let called = meter.tools.iter().filter(|(_, calls)| **calls > 0);
        called
            .map(|(name, _)| name.as_str())
            .filter(|name| !self.tools.contains_key(*name))
    }

    /// Whether writes to a one-hour cache would be billed at the lower price of shorter ones,
    /// because the card has a price for those alone.
    pub fn underprices_long_cache_writes(&self) -> bool {
        self.tokens.named(PriceKey::CacheWrite).is_some()
            && self.tokens.named(PriceKey::CacheWrite1h).is_none()
    }

    /// Whether a built-in tool has a price.
    pub fn prices_tool(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Whether any built-in tool has a price.
    pub fn prices_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether text tokens have a price, both input and output.
    pub fn prices_text(&self) -> bool {
        let keys = [PriceKey::Input, PriceKey::Output];
        keys.iter().all(|key| self.unit_price(*key).is_some())
    }

    /// The price under `key`, its default where it has tiers; token classes fall back to `input`
    /// and `output`.
    pub fn unit_price(&self, key: PriceKey) -> Option<Price> {
        if key.is_token_class() {
            self.tokens.get(key)
        } else {
            self.plain[key as usize]
        }
    }

    /// The tiers of `key` beside its default: their names in lower case, and their prices.
    pub fn tiers(&self, key: PriceKey) -> impl Iterator<Item = (&str, Price)> {
        let tiers = self.tiers.get(&key).into_iter().flatten();
        tiers.map(|(name, price)| (&**name, *price))
    }

    /// The dearest tier of `key`, when one is dearer than the default: the bound for a request
    /// that leaves the choice to the upstream.
    pub fn dearest_tier(&self, key: PriceKey) -> Option<&str> {
        let (name, price) = self
            .tiers
            .get(&key)?
            .iter()
            .max_by_key(|(_, price)| *price)?;
        (Some(*price) > self.plain[key as usize]).then_some(name)
    }

    /// The dearest price of any input class and of any output class that a call with at most
    /// `input` tokens may meet, as far as this counts: a step of `long_context` that the count
    /// comes near is among them.
    pub(crate) fn dearest_tokens(&self, input: u64) -> Tokens {
        // The count at admission may be a fifth too low.
        let reach = input.saturating_add(input / 4);
        let steps = self
            .long_context
            .iter()
            .take_while(|step| step.above_tokens < reach);
        let tables = std::iter::once(&self.tokens).chain(steps.map(|step| &step.tokens));
        let mut dearest = Tokens::default();
        for table in tables {
            // One-hour writes happen only where they are asked for, and stand in their own class then.
            let usual = PriceKey::INPUTS.map(|key| match key {
                PriceKey::CacheWrite1h => PriceKey::Input,
                key => key,
            });
            dearest.raise(PriceKey::Input, table.dearest(&usual));
            dearest.raise(PriceKey::CacheWrite1h, table.dearest(&PriceKey::INPUTS));
            dearest.raise(PriceKey::Output, table.dearest(&PriceKey::OUTPUTS));
        }
        dearest
    }

    fn tokens_at(&self, input: u64) -> &Tokens {
        let step = self
            .long_context
            .iter()
            .rev()
            .find(|step| input > step.above_tokens);
        step.map_or(&self.tokens, |step| &step.tokens)
    }

    fn tier_price(&self, key: PriceKey, name: &str) -> Option<Price> {
        let tiers = self.tiers.get(&key)?;
        let tier = tiers
            .iter()
            .find(|(tier, _)| tier.eq_ignore_ascii_case(name))?;
        Some(tier.1)
    }

    fn parts<'a>(&'a self, tokens: &'a Tokens, meter: &'a Meter) -> impl Iterator<Item = Part<'a>> {
        let used = PriceKey::ALL
            .into_iter()
            .map(|key| (key, meter.quantity(key)))
            .filter(|(_, quantity)| *quantity > 0);
        let keys = used.map(move |(key, quantity)| {
            let tier = meter
                .tier(key)
                .and_then(|name| Some((name, self.tier_price(key, name)?)));
            let price = match tier {
                Some((_, price)) => Some(price),
                None if key.is_token_class() => tokens.get(key),
                None => self.plain[key as usize],
            };
            Part {
                thing: Thing::Key(key, tier.map(|(name, _)| name)),
                quantity,
                price,
            }
        });
        let called = meter.tools.iter().filter(|(_, calls)| **calls > 0);
        let tools = called.map(|(name, calls)| Part {
            thing: Thing::Tool(name),
            quantity: *calls,
            price: self.tools.get(name).copied(),
        });
        keys.chain(tools)
    }
}

impl Tokens {
    /// The price of a token class, by its own name or by that of its next fallback.
    pub(super) fn get(&self, key: PriceKey) -> Option<Price> {
        self.named(key).or_else(|| self.get(key.fallback()?))
    }

    /// The price that stands under this very name.
    pub(super) fn named(&self, key: PriceKey) -> Option<Price> {
        self.0.get(key as usize).copied().flatten()
    }

    /// Puts a price under a name; keys that are no token classes have no place here.
    pub(super) fn set(&mut self, key: PriceKey, price: Option<Price>) {
        if let Some(place) = self.0.get_mut(key as usize) {
            *place = price;
        }
    }

    fn raise(&mut self, key: PriceKey, price: Option<Price>) {
        self.set(key, self.named(key).max(price));
    }

    fn dearest(&self, keys: &[PriceKey]) -> Option<Price> {
        keys.iter().filter_map(|key| self.get(*key)).max()
    }
}

impl Thing<'_> {
    fn name(self) -> String {
        match self {
            Self::Key(key, None) => key.to_string(),
            Self::Key(key, Some(tier)) => format!("{key}.{tier}"),
            Self::Tool(name) => format!("tools.{name}"),
        }
    }

    /// How many metered units the price is for.
    fn per(self) -> u64 {
        match self {
            Self::Key(key, _) => key.per(),
            Self::Tool(_) => 1,
        }
    }
}
