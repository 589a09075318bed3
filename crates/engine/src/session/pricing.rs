//! Converts the reading of a session into the quantities of the ledger, and computes how far ahead a hold should reach.

use std::sync::Arc;

use ledger::{Meter, PriceKey};
use protocol::voice::MeterReading;

use super::kind::SessionKind;
use crate::catalog::Model;

/// The steps by which a hold grows: seconds of the session or of its audio, or characters.
const STEP_SECONDS: u64 = 30;
const STEP_CHARACTERS: u64 = 2_000;

/// How far a hold should reach beyond the usage so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldAhead {
    /// Only the usage so far.
    Used,
    /// One more of the smallest unit.
    OneUnit,
    /// Half a step more. A hold that covers less than this is extended.
    HalfStep,
    FullStep,
}

#[derive(Debug)]
pub(super) struct SessionPricing {
    kind: SessionKind,
    has_text_inputs: bool,
    /// Which tokens of realtime sessions have prices: text and images that the model reads, and text that it writes.
    priced: PricedTokens,
}

#[derive(Debug, Clone, Copy)]
struct PricedTokens {
    input: bool,
    image_input: bool,
    output: bool,
}

impl SessionPricing {
    pub(super) fn new(kind: SessionKind, model: &Arc<Model>) -> Self {
        // Tokens without a price are included in the price of the session.
        let has = |key| model.price.unit_price(key).is_some();
        Self {
            kind,
            has_text_inputs: has(PriceKey::RealtimeTextInput),
            priced: PricedTokens {
                input: has(PriceKey::Input),
                // Without a price of their own, they cost as much as text.
                image_input: has(PriceKey::ImageInput) || has(PriceKey::Input),
                output: has(PriceKey::Output),
            },
        }
    }

    /// The usage, including the response that is being generated, plus `more`.
    pub(super) fn meter_with_response(&self, reading: MeterReading, more: HoldAhead) -> Meter {
        self.meter(reading.ended(), more)
    }

    /// The usage that can be booked now, plus `more`.
    pub(super) fn meter(&self, reading: MeterReading, more: HoldAhead) -> Meter {
        let has = self.priced;
        let priced = |is_priced: bool, tokens: u64| if is_priced { tokens } else { 0 };
        let mut meter = Meter {
            realtime_seconds: reading.realtime_seconds,
            text_inputs: if self.has_text_inputs {
                reading.text_inputs
            } else {
                0
            },
            tts_stream_characters: reading.characters,
            stt_stream_seconds: reading.transcribed_seconds,
            input: priced(has.input, reading.text.input),
            cached_input: priced(has.input, reading.text.cached_input),
            image_input: priced(has.image_input, reading.text.image_input),
            output: priced(has.output, reading.text.output),
            ..Meter::default()
        };
        let (place, step) = match self.kind {
            SessionKind::Realtime => (&mut meter.realtime_seconds, STEP_SECONDS),
            SessionKind::Speech => (&mut meter.tts_stream_characters, STEP_CHARACTERS),
            SessionKind::Transcript(_) => (&mut meter.stt_stream_seconds, STEP_SECONDS),
        };
        *place = place.saturating_add(match more {
            HoldAhead::Used => 0,
            HoldAhead::OneUnit => 1,
            HoldAhead::HalfStep => step / 2,
            HoldAhead::FullStep => step,
        });
        meter
    }
}
