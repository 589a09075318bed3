//! How what a call used is told in the ledger's quantities.

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey};
use protocol::images::{Grade, Pictures};
use protocol::native::Seen;
use protocol::{ToolCalls, Usage};

use crate::picture_tier;

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
            Self::Tokens { .. } => Some(meter_of(&seen.report()?, &seen.tools)),
            Self::Pictures(gauge) => gauge.reported(seen, price),
            Self::Spoken(meter) => Some(Meter::clone(meter)),
            Self::Heard(_) => Some(Meter {
                stt_seconds: seen.seconds?,
                ..Meter::default()
            }),
            Self::Session(_) => None,
        }
    }

    /// Output tokens as far as they went by, which the hold must cover.
    pub(crate) fn observed_output(&self, seen: &Seen) -> u64 {
        match self {
            Self::Pictures(gauge) => gauge.observed_output(seen),
            _ => seen.output_tokens_counted,
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
    /// The most tokens that one picture costs; 0 where pictures are not billed by tokens.
    pub(crate) image_tokens_max: u64,
    /// The grade that the upstream is asked for.
    pub(crate) asked: Grade,
    /// Pictures that are held for.
    pub(crate) held: u64,
    /// Whether text comes beside the pictures and is billed too: calls through a text endpoint.
    pub(crate) has_text: bool,
}

impl PictureGauge {
    /// What the pictures cost at most, whichever way they are billed in the end. `text` is what is
    /// held for beside them.
    pub(crate) fn bound(&self, text: &Meter, price: &PriceCard) -> Meter {
        let images = self.held;
        let pieces = price.unit_price(PriceKey::Image).is_some().then(|| Meter {
            images,
            image_tier: picture_tier::bound(price, &self.asked),
            ..self.text_of(text.clone(), price)
        });
        let is_by_tokens = price.unit_price(PriceKey::ImageOutput).is_some();
        let tokens =
            (is_by_tokens && self.image_tokens_max > 0).then(|| self.tokens(images, text.clone()));
        let held = |meter: Meter| match ledger::hold_of(price, &meter) {
            Ok(hold) => Some((hold, meter)),
            Err(PriceError::Overflow(_)) => Some((Micro::MAX, meter)),
            // It cannot be billed in this way either.
            Err(_) => None,
        };
        let held = pieces.into_iter().chain(tokens).filter_map(held);
        let dearest = held.max_by_key(|(hold, _)| *hold);
        dearest.map_or_else(|| text.clone(), |(_, meter)| meter)
    }

    /// Output tokens beyond the pictures that were held for.
    fn observed_output(&self, seen: &Seen) -> u64 {
        let delivered = seen.pictures.as_deref().map_or(0, |it| it.delivered);
        let further = delivered.saturating_sub(self.held);
        let pictures = further.saturating_mul(self.image_tokens_max);
        seen.output_tokens_counted.saturating_add(pictures)
    }

    /// The most tokens of the pictures that are held for.
    pub(crate) fn tokens_max(&self) -> u64 {
        self.held.saturating_mul(self.image_tokens_max)
    }

    fn reported(&self, seen: &Seen, price: &PriceCard) -> Option<Meter> {
        let pictures = seen.pictures.as_deref();
        // A picture that cost nothing is one whose cost is not told.
        let cost = |pictures: &Pictures| {
            let ticks = pictures.usd_ticks;
            ticks.filter(|ticks| *ticks > 0 || pictures.delivered == 0)
        };
        if let Some(usd_ticks) = pictures.and_then(cost)
            && price.unit_price(PriceKey::Usd).is_some()
        {
            return Some(Meter {
                usd_ticks,
                ..Meter::default()
            });
        }
        let by_tokens = price.unit_price(PriceKey::ImageOutput).is_some();
        if by_tokens && let Some(usage) = seen.report() {
            let usage = whole_report(usage, pictures)?;
            return Some(meter_of(&usage, &seen.tools));
        }
        // One by one they are what is seen: that is the report, unless text has a price too.
        let is_text_priced = self.has_text && by_tokens;
        let one_by_one = price.unit_price(PriceKey::Image).is_some() && !is_text_priced;
        (one_by_one && pictures.is_some()).then(|| self.pieces(pictures, Meter::default(), price))
    }

    fn counted(&self, seen: &Seen, price: &PriceCard) -> Meter {
        let pictures = seen.pictures.as_deref();
        let text = if self.has_text {
            // A report that leaves the pictures out still tells the rest.
            let counted = seen.counted(self.prompt_tokens);
            let told = seen.report().unwrap_or(counted);
            let output = told.output.max(seen.output_tokens_counted);
            meter_of(&Usage { output, ..told }, &seen.tools)
        } else {
            self.prompt()
        };
        if price.unit_price(PriceKey::Image).is_some() {
            return self.pieces(pictures, self.text_of(text, price), price);
        }
        self.tokens(pictures.map_or(0, |pictures| pictures.delivered), text)
    }

    /// What the prompt costs where no text comes.
    pub(crate) fn prompt(&self) -> Meter {
        Meter {
            input: self.prompt_tokens,
            image_input: self.source_tokens,
            ..Meter::default()
        }
    }

    /// Text beside pictures that are billed one by one: it is billed where it comes and has a
    /// price.
    fn text_of(&self, text: Meter, price: &PriceCard) -> Meter {
        if self.has_text && price.prices_text() {
            text
        } else {
            Meter::default()
        }
    }

    fn pieces(&self, pictures: Option<&Pictures>, text: Meter, price: &PriceCard) -> Meter {
        let none = Pictures::default();
        let pictures = pictures.unwrap_or(&none);
        Meter {
            images: pictures.delivered,
            image_tier: picture_tier::billed(price, &self.asked, &pictures.told),
            ..text
        }
    }

    fn tokens(&self, images: u64, text: Meter) -> Meter {
        Meter {
            image_output: images.saturating_mul(self.image_tokens_max),
            ..text
        }
    }
}

/// A report of tokens that tells all of an answer, or nothing where it leaves its pictures out.
/// Output that is not told by modality is pictures, but for thoughts: that is what was asked for.
fn whole_report(usage: Usage, pictures: Option<&Pictures>) -> Option<Usage> {
    let delivered = pictures.map_or(0, |pictures| pictures.delivered);
    if delivered == 0 || usage.image_output > 0 {
        return Some(usage);
    }
    let image_output = usage.output.saturating_sub(usage.reasoning);
    (image_output > 0).then_some(Usage {
        image_output,
        output: usage.reasoning.min(usage.output),
        ..usage
    })
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
                told: Grade {
                    size: Some("2048x2048".into()),
                    ..Grade::default()
                },
            })),
            ..Seen::default()
        }
    }

    fn gauge(quality: Option<&str>) -> PictureGauge {
        PictureGauge {
            prompt_tokens: 10,
            source_tokens: 100,
            image_tokens_max: 1000,
            asked: Grade {
                quality: quality.map(Into::into),
                ..Grade::default()
            },
            held: 1,
            has_text: false,
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
        for (price, quality, seen, charge) in [
            (tiers, None, seen(1, None, None), 70_000),
            (tiers, Some("high"), seen(2, None, None), 340_000),
            (tiers, Some("low"), seen(3, None, None), 210_000),
            (tiers, Some("high"), seen(0, None, None), 0),
            (
                gpt,
                Some("high"),
                seen(1, Some(tokens), None),
                50 + 400 + 30_000,
            ),
            (
                video_a,
                Some("low"),
                seen(2, None, Some(800_000_000)),
                80_000,
            ),
            (video_a, Some("low"), seen(2, None, None), 160_000),
            (video_a, Some("low"), seen(1, Some(tokens), None), 80_000),
        ] {
            let price = card(price);
            let gauge = gauge(quality);
            let meter = gauge.reported(&seen, &price).unwrap();
            assert_eq!(
                price.price(&meter).unwrap().get(),
                charge,
                "{quality:?} {seen:?}"
            );
        }
    }

    #[test]
    fn pictures_without_a_report_are_billed_as_delivered() {
        let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
        let gauge = gauge(None);
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
        for (quality, images, micro) in [(Some("high"), 1, 170_000), (None, 2, 340_000)] {
            let gauge = PictureGauge {
                held: images,
                ..gauge(quality)
            };
            let bound = gauge.bound(&Meter::default(), &price);
            assert_eq!(ledger::hold_of(&price, &bound).unwrap().get(), micro);
        }
        let gpt = card(r#"{"input":"5","output":"10","image_input":"8","image_output":"30"}"#);
        let bound = gauge(None).bound(&gauge(None).prompt(), &gpt);
        assert_eq!((bound.input, bound.image_output), (10, 1000));
        // What is billed by tokens in the end is not held by the piece.
        let both = card(r#"{"input":"5","image_output":"30","image":"0.01"}"#);
        let bound = gauge(None).bound(&Meter::default(), &both);
        assert_eq!(ledger::hold_of(&both, &bound).unwrap().get(), 30_000);
    }

    fn native() -> PictureGauge {
        PictureGauge {
            has_text: true,
            ..gauge(None)
        }
    }

    const NATIVE: &str = r#"{"input":"1","output":"2","image_output":"30"}"#;

    /// A picture costs the same gap in a report whichever endpoint it comes from.
    #[test]
    fn a_report_that_leaves_pictures_out_is_none() {
        let thought = Usage {
            input: 7,
            output: 5,
            reasoning: 5,
            ..Usage::default()
        };
        let unsorted = Usage {
            output: 405,
            ..thought
        };
        let told = Usage {
            image_output: 400,
            ..thought
        };
        let price = card(NATIVE);
        for (usage, image_output) in [
            (None, None),
            (Some(Usage::default()), None),
            (Some(thought), None),
            (Some(unsorted), Some(400)),
            (Some(told), Some(400)),
        ] {
            for gauge in [gauge(None), native()] {
                let meter = gauge.reported(&seen(1, usage, None), &price);
                let found = meter.map(|meter| (meter.image_output, meter.output));
                assert_eq!(found, image_output.map(|images| (images, 5)), "{usage:?}");
            }
        }
        // What was told beside the gap still counts.
        let meter = native().counted(&seen(2, Some(thought), None), &price);
        let found = (meter.input, meter.output, meter.image_output);
        assert_eq!(found, (7, 5, 2000));
        let meter = native().counted(&seen(1, None, None), &price);
        assert_eq!((meter.input, meter.image_output), (10, 1000));
    }

    #[test]
    fn pictures_beside_text_are_held_for_and_grow() {
        let text = Meter {
            input: 10,
            output: 64,
            ..Meter::default()
        };
        let bound = native().bound(&text, &card(NATIVE));
        let found = (bound.input, bound.output, bound.image_output);
        assert_eq!(found, (10, 64, 1000));
        let pieces = card(r#"{"input":"1","output":"2","image":{"default":"0.04","2k":"0.07"}}"#);
        let bound = native().bound(&text, &pieces);
        assert_eq!((bound.output, bound.images), (64, 1));
        let price = card(r#"{"image":"0.04"}"#);
        let bound = native().bound(&text, &price);
        assert_eq!((bound.output, bound.images), (0, 1));
        let gauge = Gauge::Pictures(Box::new(native()));
        for (delivered, tokens) in [(0, 0), (1, 0), (3, 2000)] {
            assert_eq!(gauge.observed_output(&seen(delivered, None, None)), tokens);
        }
    }
}
