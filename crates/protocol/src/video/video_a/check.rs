//! Checks a request against the model's profile, and computes the bound for its hold.

use super::request::{Mode, Request};
use crate::failure::Failure;
use crate::profile::{AllowedValues, Profile};

/// Defaults of `docs/api/video-a.md`.
const DEFAULT_SECONDS: i64 = 8;
const DEFAULT_EXTENSION_SECONDS: i64 = 6;
const DEFAULT_RESOLUTION: &str = "480p";

impl Request {
    pub(super) fn check_profile(&self, profile: &Profile) -> Result<(), Failure> {
        allowed_word(profile.modes.as_ref(), self.mode.as_str(), || {
            let message = format!(
                "This model makes no videos in the mode `{}`.",
                self.mode.as_str()
            );
            Failure::model_not_supported(message)
        })?;
        let resolutions = match self.mode {
            Mode::Reference => profile.reference_resolutions.as_ref(),
            _ => None,
        };
        let resolutions = resolutions.or(profile.resolutions.as_ref());
        self.named("resolution", self.resolution.as_deref(), resolutions)?;
        self.named(
            "aspect_ratio",
            self.aspect_ratio.as_deref(),
            profile.ratios.as_ref(),
        )?;
        self.length(profile)?;
        for (name, kind, count) in [
            ("reference_images", "image", self.reference_images),
            ("reference_audios", "audio", self.reference_audios),
        ] {
            let most = profile.references_max.as_ref();
            let most = most.and_then(|most| most.of(kind));
            if let Some(most) = most
                && count > usize::try_from(most).unwrap_or(usize::MAX)
            {
                let message = format!("`{name}` takes at most {most} items on this model.");
                return Err(Failure::invalid(message).param(name));
            }
        }
        Ok(())
    }

    fn named(
        &self,
        name: &'static str,
        value: Option<&str>,
        allowed: Option<&AllowedValues>,
    ) -> Result<(), Failure> {
        let Some(value) = value else {
            return Ok(());
        };
        allowed_word(allowed, value, || {
            let known = allowed.map(AllowedValues::to_string).unwrap_or_default();
            let mode = self.mode.as_str();
            let message = format!("`{name}` must be one of {known} on this model (mode `{mode}`).");
            Failure::invalid(message).param(name)
        })
    }

    fn length(&self, profile: &Profile) -> Result<(), Failure> {
        let allowed = match self.mode {
            Mode::Extension => profile.extension_durations.as_ref(),
            _ => profile.durations.as_ref(),
        };
        match (self.seconds, allowed) {
            (Some(seconds), Some(allowed)) if !allowed.has_number(seconds) => {
                let message = format!("`duration` must be {allowed} seconds on this model.");
                Err(Failure::invalid(message).param("duration"))
            }
            _ => Ok(()),
        }
    }

    /// The seconds that the hold is for: those of the request, or for an edit the longest possible
    /// source.
    pub(super) fn seconds_max(&self, profile: &Profile) -> u64 {
        let seconds = match self.mode {
            Mode::Edit => {
                let longest = profile.durations.as_ref().and_then(AllowedValues::largest);
                return profile
                    .source_seconds_max
                    .or_else(|| longest.and_then(|longest| u64::try_from(longest).ok()))
                    .unwrap_or(u64::MAX);
            }
            Mode::Extension => self.seconds.unwrap_or(DEFAULT_EXTENSION_SECONDS),
            _ => self.seconds.unwrap_or(DEFAULT_SECONDS),
        };
        u64::try_from(seconds).unwrap_or(0)
    }

    /// The resolution that the hold is for; `None` if the source decides.
    pub(super) fn resolution(&self) -> Option<&str> {
        match self.mode {
            Mode::Edit | Mode::Extension => None,
            _ => Some(self.resolution.as_deref().unwrap_or(DEFAULT_RESOLUTION)),
        }
    }
}

fn allowed_word(
    allowed: Option<&AllowedValues>,
    word: &str,
    refusal: impl FnOnce() -> Failure,
) -> Result<(), Failure> {
    match allowed {
        Some(allowed) if !allowed.has_word(word) => Err(refusal()),
        _ => Ok(()),
    }
}
