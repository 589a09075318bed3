//! The price card, and the only function that prices a call.

use std::collections::BTreeMap;

use super::error::PriceError;
use super::{Exact, Price, PriceKey};
use crate::meter::Meter;
use crate::micro::{Micro, Overflow};

/// The prices of a model.
///
/// A card is parsed from the configuration ([`PriceCard::parse`], or serde), stored in a canonical
/// form as a price version, and applied with [`PriceCard::price`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PriceCard {
    pub(super) tokens: TokenPrices,
    /// Ascending by `above_tokens`.
    pub(super) long_context: Vec<LongContextPrices>,
    /// The prices of all keys that are not token classes, in the order of [`PriceKey::ALL`]. A tiered key has its
    /// default price here.
    pub(super) plain: [Option<Price>; PriceKey::ALL.len()],
    /// The tiers of each key except the default tier, with lower-case names, sorted.
    pub(super) tiers: BTreeMap<PriceKey, Vec<(Box<str>, Price)>>,
    pub(super) tools: BTreeMap<String, Price>,
}

/// One component of a price, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The price key, with its tier or tool: `input`, `image.high`, `tools.web_search`.
    pub component: String,
    /// The usage in metered units.
    pub quantity: u64,
    /// The number of metered units that the price applies to.
    pub per: u64,
    /// The price, if the card has one.
    pub price: Option<Price>,
    /// The exact amount, unless there is no price or the amount does not fit.
    pub amount: Option<Exact>,
}

/// The prices of the token classes: those of the card, or those above a long-context threshold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TokenPrices([Option<Price>; 9]);

/// The token prices of calls whose input exceeds a number of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LongContextPrices {
    pub(super) above_tokens: u64,
    pub(super) tokens: TokenPrices,
}

/// One component of a call's price: a quantity, and its price if there is one.
struct Component<'a> {
    name: ComponentName<'a>,
    quantity: u64,
    price: Option<Price>,
}

#[derive(Clone, Copy)]
enum ComponentName<'a> {
    Key(PriceKey, Option<&'a str>),
    Tool(&'a str),
}

impl PriceCard {
    /// The price of a call: the exact sum of all components, rounded up once.
    ///
    /// Tools without a price cost nothing ([`PriceCard::unpriced_tools`] names them); anything else
    /// without a price is an error.
    pub fn price(&self, meter: &Meter) -> Result<Micro, PriceError> {
        self.price_with(self.tokens_at(meter.input_total()), meter)
    }

    /// Like `price`, with the given prices of the token classes.
    pub(crate) fn price_with(
        &self,
        tokens: &TokenPrices,
        meter: &Meter,
    ) -> Result<Micro, PriceError> {
        let mut sum = Exact::ZERO;
        for part in self.parts(tokens, meter) {
            match (part.price, part.name) {
                (Some(price), name) => {
                    let amount = Exact::of(part.quantity, price, name.per())?;
                    sum = sum.checked_add(amount).ok_or(Overflow)?;
                }
                (None, ComponentName::Tool(_)) => {}
                (None, ComponentName::Key(key, _)) => return Err(PriceError::Unpriced(key)),
            }
        }
        Ok(sum.round_up()?)
    }

    /// The components of a price, for display. [`PriceCard::price`] rounds the sum of their exact
    /// amounts.
    pub fn lines(&self, meter: &Meter) -> Vec<Line> {
        self.parts(self.tokens_at(meter.input_total()), meter)
            .map(
                |Component {
                     name,
                     quantity,
                     price,
                 }| Line {
                    component: name.name(),
                    quantity,
                    per: name.per(),
                    price,
                    amount: price.and_then(|price| Exact::of(quantity, price, name.per()).ok()),
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

    /// Whether writes to a one-hour cache would be billed at the lower price of five-minute writes,
    /// because the card has no price for one-hour writes.
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

    /// The price of `key`; for a key with tiers, its default price. Token classes fall back to
    /// `input` and `output`.
    pub fn unit_price(&self, key: PriceKey) -> Option<Price> {
        if key.is_token_class() {
            self.tokens.get(key)
        } else {
            self.plain[key as usize]
        }
    }

    /// The tiers of `key` except the default tier, with lower-case names.
    pub fn tiers(&self, key: PriceKey) -> impl Iterator<Item = (&str, Price)> {
        let tiers = self.tiers.get(&key).into_iter().flatten();
        tiers.map(|(name, price)| (&**name, *price))
    }

    /// The most expensive tier of `key`, if it costs more than the default. It bounds the price of
    /// a request that lets the upstream choose the tier.
    pub fn dearest_tier(&self, key: PriceKey) -> Option<&str> {
        let (name, price) = self
            .tiers
            .get(&key)?
            .iter()
            .max_by_key(|(_, price)| *price)?;
        (Some(*price) > self.plain[key as usize]).then_some(name)
    }

    /// The highest input price and the highest output price for a call of about `input` tokens, including the
    /// long-context prices that it might reach.
    pub(crate) fn dearest_tokens(&self, input: u64) -> TokenPrices {
        // The count may be a fifth too low, so the actual input may be 5/4 of it.
        let reach = input.saturating_add(input / 4);
        let thresholds = self
            .long_context
            .iter()
            .take_while(|threshold| threshold.above_tokens < reach);
        let tables =
            std::iter::once(&self.tokens).chain(thresholds.map(|threshold| &threshold.tokens));
        let mut dearest = TokenPrices::default();
        for table in tables {
            // One-hour writes occur only on request, and then count in their own class.
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

    fn tokens_at(&self, input: u64) -> &TokenPrices {
        let threshold = self
            .long_context
            .iter()
            .rev()
            .find(|threshold| input > threshold.above_tokens);
        threshold.map_or(&self.tokens, |threshold| &threshold.tokens)
    }

    fn tier_price(&self, key: PriceKey, name: &str) -> Option<Price> {
        let tiers = self.tiers.get(&key)?;
        let tier = tiers
            .iter()
            .find(|(tier, _)| tier.eq_ignore_ascii_case(name))?;
        Some(tier.1)
    }

    fn parts<'a>(
        &'a self,
        tokens: &'a TokenPrices,
        meter: &'a Meter,
    ) -> impl Iterator<Item = Component<'a>> {
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
            Component {
                name: ComponentName::Key(key, tier.map(|(name, _)| name)),
                quantity,
                price,
            }
        });
        let called = meter.tools.iter().filter(|(_, calls)| **calls > 0);
        let tools = called.map(|(name, calls)| Component {
            name: ComponentName::Tool(name),
            quantity: *calls,
            price: self.tools.get(name).copied(),
        });
        keys.chain(tools)
    }
}

impl TokenPrices {
    /// The price of a token class, or else of its fallback.
    pub(super) fn get(&self, key: PriceKey) -> Option<Price> {
        self.named(key).or_else(|| self.get(key.fallback()?))
    }

    /// The price of exactly this class, without fallback.
    pub(super) fn named(&self, key: PriceKey) -> Option<Price> {
        self.0.get(key as usize).copied().flatten()
    }

    /// Sets the price of a token class. Other keys are ignored.
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

impl ComponentName<'_> {
    fn name(self) -> String {
        match self {
            Self::Key(key, None) => key.to_string(),
            Self::Key(key, Some(tier)) => format!("{key}.{tier}"),
            Self::Tool(name) => format!("tools.{name}"),
        }
    }

    fn per(self) -> u64 {
        match self {
            Self::Key(key, _) => key.per(),
            Self::Tool(_) => 1,
        }
    }
}
