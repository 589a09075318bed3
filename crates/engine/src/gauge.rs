//! How what a call used is told in the ledger's quantities.

use ledger::{Meter, PriceCard, PriceKey};
use protocol::images::{Pictures, size_tier};
use protocol::native::Seen;
use protocol::{Profile, ToolCalls, Usage};

/// What the work of a call is measured by.
#[derive(Debug)]
pub(crate) enum Gauge {
    /// Tokens: reported ones, else those counted on the way.
    Tokens {
        /// Input as counted at admission.
        input_tokens: u64,
    },
    /// Pictures.
    Pictures(Box<PictureGauge>),
    /// Speech: the request itself tells what it costs.
    Spoken(Box<Meter>),
    /// A transcript: seconds as reported, else the bound.
    Heard(Box<Meter>),
    /// A session: what has been used so far.
    Session(Box<Meter>),
}

impl Default for Gauge {
    fn default() -> Self {
        Self::Tokens { input_tokens: 0 }
    }
}

impl Gauge {
    /// What an answer's own report amounts to, if it has one that can be billed by.
    pub(crate) fn reported(&self, seen: &Seen, price: &PriceCard) -> Option<Meter> {
        match self {
            Self::Tokens { .. } => {
                let usage = seen.usage.as_ref()?;
                Some(meter_of(usage, &seen.tools))
            }
            Self::Pictures(gauge) => gauge.reported(seen, price),
            Self::Spoken(meter) => Some(Meter::clone(meter)),
            Self::Heard(_) => Some(Meter {
                stt_seconds: seen.seconds?,
                ..Meter::default()
            }),
            Self::Session(_) => None,
        }
    }

    /// What went by, for answers without a report.
    pub(crate) fn counted(&self, seen: &Seen, price: &PriceCard) -> Meter {
        match self {
            Self::Tokens { input_tokens } => meter_of(&seen.counted(*input_tokens), &seen.tools),
            Self::Pictures(gauge) => gauge.counted(seen, price),
            Self::Spoken(meter) | Self::Heard(meter) | Self::Session(meter) => Meter::clone(meter),
        }
    }
}

/// Pictures are billed by the upstream's cost, by tokens, or one by one in tiers: by the first of
/// these that the card prices and the answer tells.
#[derive(Debug, Default)]
pub(crate) struct PictureGauge {
    /// Tokens of the prompt.
    pub(crate) prompt_tokens: u64,
    /// Tokens of the source pictures.
    pub(crate) source_tokens: u64,
    /// The most tokens that one picture costs.
    pub(crate) image_tokens_max: u64,
    /// The quality, resolution and size that were asked for: names of tiers.
    pub(crate) asked: Vec<String>,
}

impl PictureGauge {
    /// What `images` pictures cost at most.
    pub(crate) fn bound(&self, images: u64, price: &PriceCard) -> Meter {
        if price.unit_price(PriceKey::Image).is_none() {
            return self.tokens(images);
        }
        // A choice left to the upstream may fall on the dearest.
        let tier = self.tier(None, price);
        let tier = tier.or_else(|| price.dearest_tier(PriceKey::Image).map(Into::into));
        Meter {
            images,
            image_tier: tier,
            ..Meter::default()
        }
    }

    fn reported(&self, seen: &Seen, price: &PriceCard) -> Option<Meter> {
        let pictures = seen.pictures.as_deref();
        let ticks = pictures.and_then(|pictures| pictures.usd_ticks);
        if let Some(usd_ticks) = ticks
            && price.unit_price(PriceKey::Usd).is_some()
        {
            return Some(Meter {
                usd_ticks,
                ..Meter::default()
            });
        }
        let by_tokens = price.unit_price(PriceKey::ImageOutput).is_some();
        if by_tokens && let Some(usage) = &seen.usage {
            return Some(meter_of(usage, &seen.tools));
        }
        // One by one they are what is seen: that is the report.
        let one_by_one = price.unit_price(PriceKey::Image).is_some();
        (one_by_one && pictures.is_some()).then(|| self.one_by_one(pictures, price))
    }

    fn counted(&self, seen: &Seen, price: &PriceCard) -> Meter {
        let pictures = seen.pictures.as_deref();
        if price.unit_price(PriceKey::Image).is_some() {
            return self.one_by_one(pictures, price);
        }
        self.tokens(pictures.map_or(0, |pictures| pictures.delivered))
    }

    fn one_by_one(&self, pictures: Option<&Pictures>, price: &PriceCard) -> Meter {
        Meter {
            images: pictures.map_or(0, |pictures| pictures.delivered),
            image_tier: self.tier(pictures, price),
            ..Meter::default()
        }
    }

    fn tokens(&self, images: u64) -> Meter {
        Meter {
            input: self.prompt_tokens,
            image_input: self.source_tokens,
            image_output: images.saturating_mul(self.image_tokens_max),
            ..Meter::default()
        }
    }

    /// The dearest priced tier among those asked for, else among those the answer names.
    fn tier(&self, pictures: Option<&Pictures>, price: &PriceCard) -> Option<Box<str>> {
        let dearest = |names: &[&str]| {
            let name = price.dearest_of(PriceKey::Image, names);
            name.map(|name| name.to_ascii_lowercase().into_boxed_str())
        };
        let asked: Vec<&str> = self.asked.iter().map(String::as_str).collect();
        dearest(&asked).or_else(|| {
            let pictures = pictures?;
            let size = pictures.size.as_deref();
            let tier = size.and_then(size_tier);
            let told = [pictures.quality.as_deref(), size, tier.as_deref()];
            let told: Vec<&str> = told.into_iter().flatten().collect();
            dearest(&told)
        })
    }
}

/// The tiers that a request names.
pub(crate) fn tiers_of(wants: &protocol::images::Wants) -> Vec<String> {
    let size_tier = wants.size.as_deref().and_then(size_tier);
    let named = [&wants.quality, &wants.resolution, &wants.size, &size_tier];
    named.into_iter().flatten().cloned().collect()
}

/// The most tokens of one picture.
pub(crate) fn image_tokens_max(profile: &Profile) -> u64 {
    // A model billed by tokens is not listed without it.
    profile.image_tokens_max.unwrap_or(0)
}

/// What the protocol reads as usage, as the ledger's quantities. The tools that were seen count
/// where the report does not count them.
fn meter_of(usage: &Usage, seen: &ToolCalls) -> Meter {
    let tools = usage.tools.or(seen);
    Meter {
        input: usage.input,
        cached_input: usage.cached_input,
        cache_write: usage.cache_write,
        cache_write_1h: usage.cache_write_1h,
        output: usage.output,
        image_input: usage.image_input,
        image_output: usage.image_output,
        audio_input: usage.audio_input,
        audio_output: usage.audio_output,
        tools: tools
            .iter()
            .map(|(tool, calls)| (tool.as_str().to_owned(), u64::from(calls)))
            .collect(),
        ..Meter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(json: &str) -> PriceCard {
        serde_json::from_str(json).unwrap()
    }

    fn seen(delivered: u64, usage: Option<Usage>, usd_ticks: Option<u64>) -> Seen {
        Seen {
            usage,
            pictures: Some(Box::new(Pictures {
                delivered,
                usd_ticks,
                size: Some("2048x2048".into()),
                ..Pictures::default()
            })),
            ..Seen::default()
        }
    }

    fn gauge(asked: &[&str]) -> PictureGauge {
        PictureGauge {
            prompt_tokens: 10,
            source_tokens: 100,
            image_tokens_max: 1000,
            asked: asked.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    /// What each family is charged, in micro-credits.
    #[test]
    fn every_family_and_tier_is_billed_exactly() {
        let tiers = r#"{"image":{"default":"0.04","high":"0.17","2k":"0.07"}}"#;
        let gpt = r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#;
        let video_a = r#"{"image":{"default":"0.06","low":"0.04","2k":"0.08"},"usd":"1"}"#;
        let tokens = Usage {
            input: 10,
            image_input: 50,
            image_output: 1000,
            ..Usage::default()
        };
        for (price, asked, seen, charge) in [
            (tiers, &[][..], seen(1, None, None), 70_000),
            (tiers, &["high"], seen(2, None, None), 340_000),
            (tiers, &["HIGH", "2k"], seen(1, None, None), 170_000),
            (tiers, &["low"], seen(3, None, None), 210_000),
            (tiers, &["high"], seen(0, None, None), 0),
            (
                gpt,
                &["high"],
                seen(1, Some(tokens), None),
                50 + 400 + 30_000,
            ),
            (video_a, &["low"], seen(2, None, Some(800_000_000)), 80_000),
            (video_a, &["low"], seen(2, None, None), 80_000),
            (video_a, &["low", "2k"], seen(1, Some(tokens), None), 80_000),
        ] {
            let price = card(price);
            let gauge = gauge(asked);
            let meter = gauge.reported(&seen, &price).unwrap();
            assert_eq!(
                price.price(&meter).unwrap().get(),
                charge,
                "{asked:?} {seen:?}"
            );
        }
    }

    #[test]
    fn pictures_without_a_report_are_billed_as_delivered() {
        let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
        let gauge = gauge(&[]);
        assert_eq!(gauge.reported(&seen(2, None, None), &gpt), None);
        let meter = gauge.counted(&seen(2, None, None), &gpt);
        assert_eq!(
            (meter.input, meter.image_input, meter.image_output),
            (10, 100, 2000)
        );
        assert_eq!(gauge.counted(&Seen::default(), &gpt).image_output, 0);
    }

    #[test]
    fn the_bound_covers_every_tier_that_may_come() {
        let price = card(r#"{"image":{"default":"0.04","high":"0.17"}}"#);
        for (asked, images, micro) in [(&["high"][..], 1, 170_000), (&[], 2, 340_000)] {
            let bound = gauge(asked).bound(images, &price);
            assert_eq!(ledger::hold_of(&price, &bound).unwrap().get(), micro);
        }
        let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
        let bound = gauge(&[]).bound(3, &gpt);
        assert_eq!(bound.image_output, 3000);
    }
}
