//! Meters streaming speech: counts the characters of every `text.delta` that is relayed, including
//! those that are cleared later.

use super::event::{Event, EventError};
use super::frame::{Frame, MeterReading, Verdict};
use crate::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct SpeechMeter {
    characters: u64,
}

impl SpeechMeter {
    pub(super) fn on_client(&mut self, frame: Frame<'_>) -> Verdict {
        // An upstream may accept text in either kind of frame.
        let text = match frame {
            Frame::Text(text) => text.into(),
            Frame::Binary(bytes) => String::from_utf8_lossy(bytes),
        };
        match self.take(&text) {
            Ok(()) => Verdict::Relay,
            Err(failure) => Verdict::refuse(failure, None),
        }
    }

    fn take(&mut self, text: &str) -> Result<(), Failure> {
        match Event::read(text) {
            Ok(event) if event.kind() == "text.delta" => {
                if let Some(delta) = event.text("delta")? {
                    self.count(&delta);
                }
            }
            Ok(_) => {}
            // A text that cannot be read is counted as a whole (S7).
            Err(EventError::NotAnEvent | EventError::Unreadable(_)) => self.count(text),
            Err(EventError::Ambiguous(failure)) => return Err(failure),
        }
        Ok(())
    }

    fn count(&mut self, text: &str) {
        let characters = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        self.characters = self.characters.saturating_add(characters);
    }

    pub(super) fn reading(&self) -> MeterReading {
        MeterReading {
            characters: self.characters,
            ..MeterReading::default()
        }
    }
}
