//! Converts the usage of a call into the quantities that the ledger prices.

use ledger::{Meter, Micro, PriceCard, PriceError, PriceKey};
use protocol::images::{Pictures, PriceGrade};
use protocol::native::{AnswerSummary, LongCache};
use protocol::{ToolCalls, Usage};

use crate::billing::picture_tier;

#[derive(Debug, Clone)]
pub(crate) enum Metering {
    /// Tokens: the upstream's report, otherwise our own count.
    Tokens {
        /// The input tokens as counted at admission.
        input_tokens: u64,
        /// Whether the request asks for the input to be cached for an hour.
        long_cache: LongCache,
    },
    Pictures(Box<PictureMetering>),
    /// Speech. The usage follows from the request.
    Speech(Box<Meter>),
    /// A transcript: the reported seconds, otherwise the seconds of this meter.
    Transcript(Box<Meter>),
    /// A session: the usage so far.
    Session(Box<Meter>),
}

impl Default for Metering {
    fn default() -> Self {
        Self::Tokens {
            input_tokens: 0,
            long_cache: LongCache::No,
        }
    }
}

impl Metering {
    /// Whether the call creates pictures or speech. A repeated request for them costs the full price again.
    pub(crate) fn creates_media(&self) -> bool {
        matches!(self, Self::Pictures(_) | Self::Speech(_))
    }

    /// The usage that an answer reports, if it can be billed.
    pub(crate) fn reported(&self, summary: &AnswerSummary, price: &PriceCard) -> Option<Meter> {
        match self {
            Self::Tokens {
                input_tokens,
                long_cache,
            } => {
                let usage = summary.completed_report(*input_tokens)?;
                Some(meter_of(
                    &with_long_cache(usage, *long_cache),
                    &summary.tools,
                ))
            }
            Self::Pictures(metering) => metering.reported(summary, price),
            Self::Speech(meter) => Some(Meter::clone(meter)),
            Self::Transcript(_) => Some(Meter {
                stt_seconds: summary.seconds?,
                ..Meter::default()
            }),
            Self::Session(_) => None,
        }
    }

    /// The number of output tokens so far. The hold must cover them.
    pub(crate) fn observed_output(&self, summary: &AnswerSummary) -> u64 {
        match self {
            Self::Pictures(metering) => metering.observed_output(summary),
            _ => summary.output_tokens_counted,
        }
    }

    /// The usage by our own count, for answers without a report.
    pub(crate) fn counted(&self, summary: &AnswerSummary, price: &PriceCard) -> Meter {
        match self {
            Self::Tokens {
                input_tokens,
                long_cache,
            } => {
                let usage = with_long_cache(summary.counted(*input_tokens), *long_cache);
                let counted = meter_of(&usage, &summary.tools);
                match long_cache {
                    LongCache::CountedApart => dearest_input(counted, price),
                    // Most upstreams of chat ignore the request for the one-hour cache.
                    LongCache::No | LongCache::CountedTogether => counted,
                }
            }
            Self::Pictures(metering) => metering.counted(summary, price),
            Self::Speech(meter) | Self::Transcript(meter) | Self::Session(meter) => {
                Meter::clone(meter)
            }
        }
    }
}

/// Pictures are billed in the first of these ways that the card prices and the answer reports: by the upstream's cost,
/// by tokens, or one by one in tiers.
#[derive(Debug, Clone, Default)]
pub(crate) struct PictureMetering {
    pub(crate) prompt_tokens: u64,
    pub(crate) source_tokens: u64,
    /// The maximum number of tokens that one picture costs; 0 if the profile states no maximum.
    pub(crate) image_tokens_max: u64,
    /// The grade that the request asks the upstream for.
    pub(crate) requested_grade: PriceGrade,
    /// The number of pictures that the hold covers.
    pub(crate) images_held: u64,
    /// Whether text comes with the pictures and is billed too, as on text endpoints.
    pub(crate) has_text: bool,
}

impl PictureMetering {
    /// The usage to hold: the most expensive way to bill the pictures, plus `text`.
    pub(crate) fn bound(&self, text: &Meter, price: &PriceCard) -> Meter {
        let images = self.images_held;
        let pieces = price.unit_price(PriceKey::Image).is_some().then(|| Meter {
            images,
            image_tier: picture_tier::bound(price, &self.requested_grade),
            ..self.text_of(text.clone(), price)
        });
        let is_by_tokens = price.unit_price(PriceKey::ImageOutput).is_some();
        let tokens =
            (is_by_tokens && self.image_tokens_max > 0).then(|| self.tokens(images, text.clone()));
        let held = |meter: Meter| match ledger::hold_of(price, &meter) {
            Ok(hold) => Some((hold, meter)),
            Err(PriceError::Overflow(_)) => Some((Micro::MAX, meter)),
            // The card cannot price pictures in this way.
            Err(_) => None,
        };
        let held = pieces.into_iter().chain(tokens).filter_map(held);
        let dearest = held.max_by_key(|(hold, _)| *hold);
        dearest.map_or_else(|| text.clone(), |(_, meter)| meter)
    }

    /// The number of output tokens, plus the tokens of pictures beyond the number that the hold covers.
    fn observed_output(&self, summary: &AnswerSummary) -> u64 {
        let begun = summary.pictures.as_deref().map_or(0, Pictures::begun);
        let further = begun.saturating_sub(self.images_held);
        let pictures = further.saturating_mul(self.image_tokens_max);
        summary.output_tokens_counted.saturating_add(pictures)
    }

    /// The maximum number of picture tokens that the hold covers.
    pub(crate) fn tokens_max(&self) -> u64 {
        self.images_held.saturating_mul(self.image_tokens_max)
    }

    fn reported(&self, summary: &AnswerSummary, price: &PriceCard) -> Option<Meter> {
        let pictures = summary.pictures.as_deref();
        // A cost of zero for a picture means that the upstream did not report the cost.
        let cost = |pictures: &Pictures| {
            let ticks = pictures.usd_ticks;
            ticks.filter(|ticks| *ticks > 0 || pictures.begun() == 0)
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
        if by_tokens && let Some(usage) = summary.report() {
            let usage = whole_report(usage, pictures)?;
            return Some(meter_of(&usage, &summary.tools));
        }
        // For pictures billed one by one, our count replaces the report, unless text is billed by tokens too.
        let is_text_priced = self.has_text && by_tokens;
        let one_by_one = price.unit_price(PriceKey::Image).is_some() && !is_text_priced;
        (one_by_one && pictures.is_some())
            .then(|| self.meter_by_picture(pictures, tools_of(summary), price))
    }

    fn counted(&self, summary: &AnswerSummary, price: &PriceCard) -> Meter {
        let pictures = summary.pictures.as_deref();
        let text = if self.has_text {
            // A report that omits the pictures is still valid for everything else.
            let counted = summary.counted(self.prompt_tokens);
            let usage = summary.report().unwrap_or(counted);
            let output = usage.output.max(summary.output_tokens_counted);
            meter_of(&Usage { output, ..usage }, &summary.tools)
        } else {
            Meter {
                tools: tools_of(summary).tools,
                ..self.prompt()
            }
        };
        if price.unit_price(PriceKey::Image).is_some() {
            return self.meter_by_picture(pictures, self.text_of(text, price), price);
        }
        self.tokens(pictures.map_or(0, Pictures::begun), text)
    }

    /// The usage of the prompt, for endpoints that return no text.
    pub(crate) fn prompt(&self) -> Meter {
        Meter {
            input: self.prompt_tokens,
            image_input: self.source_tokens,
            ..Meter::default()
        }
    }

    /// The text that accompanies pictures billed one by one. It is billed if it has a price.
    fn text_of(&self, text: Meter, price: &PriceCard) -> Meter {
        if self.has_text && price.prices_text() {
            text
        } else {
            Meter {
                tools: text.tools,
                ..Meter::default()
            }
        }
    }

    fn meter_by_picture(
        &self,
        pictures: Option<&Pictures>,
        text: Meter,
        price: &PriceCard,
    ) -> Meter {
        let none = Pictures::default();
        let pictures = pictures.unwrap_or(&none);
        Meter {
            images: pictures.begun(),
            image_tier: picture_tier::billed(price, &self.requested_grade, &pictures.reported),
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

/// Counts all writes as writes to the one-hour cache if the upstream does not count these apart.
fn with_long_cache(usage: Usage, long_cache: LongCache) -> Usage {
    if long_cache != LongCache::CountedTogether {
        return usage;
    }
    Usage {
        cache_write: 0,
        cache_write_1h: usage.cache_write.saturating_add(usage.cache_write_1h),
        ..usage
    }
}

/// Bills all input at the price of the one-hour cache if that is higher, because no report says which part of the input
/// was written to the cache.
fn dearest_input(counted: Meter, price: &PriceCard) -> Meter {
    let written = Meter {
        input: 0,
        cache_write_1h: counted.cache_write_1h.saturating_add(counted.input),
        ..counted.clone()
    };
    match (price.price(&written), price.price(&counted)) {
        (Ok(dearer), Ok(plain)) if dearer <= plain => counted,
        _ => written,
    }
}

/// A token report that covers the whole answer; `None` if it omits the pictures. Output tokens without a modality count
/// as picture tokens, except for reasoning, because the call asked for pictures.
fn whole_report(usage: Usage, pictures: Option<&Pictures>) -> Option<Usage> {
    let begun = pictures.map_or(0, Pictures::begun);
    if begun == 0 || usage.image_output > 0 {
        return Some(usage);
    }
    let image_output = usage.output.saturating_sub(usage.reasoning);
    (image_output > 0).then_some(Usage {
        image_output,
        output: usage.reasoning.min(usage.output),
        ..usage
    })
}

/// A meter with only the built-in tools that a call used.
fn tools_of(summary: &AnswerSummary) -> Meter {
    let usage = Usage {
        tools: summary.usage.map(|usage| usage.tools).unwrap_or_default(),
        ..Usage::default()
    };
    meter_of(&usage, &summary.tools)
}

/// Converts the protocol's usage into the ledger's quantities. If the report counts no calls of a tool, the calls that
/// we have seen are used instead.
fn meter_of(usage: &Usage, summary: &ToolCalls) -> Meter {
    let tools = usage.tools.or(summary);
    // The same model wrote the summaries, at the same prices.
    let compaction = &usage.compaction;
    Meter {
        input: usage.input.saturating_add(compaction.input),
        cached_input: usage.cached_input.saturating_add(compaction.cached_input),
        cache_write: usage.cache_write.saturating_add(compaction.cache_write),
        cache_write_1h: usage
            .cache_write_1h
            .saturating_add(compaction.cache_write_1h),
        output: usage.output.saturating_add(compaction.output),
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
mod tests;
