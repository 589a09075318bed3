//! The built-in profiles: capabilities of model families, as data.

use crate::profile::{AllowedValues, BuiltInProfile, Profile, References};

/// Aspect ratios of images in the video-A family.
const VIDEO_A_RATIOS: [&str; 14] = [
    "1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:19.5", "19.5:9", "9:20", "20:9", "1:2",
    "2:1", "auto",
];

impl BuiltInProfile {
    /// The capabilities of models with this base, unless their entry overrides them. Absent values
    /// are unknown and left to the upstream.
    pub fn profile(self) -> Profile {
        match self {
            Self::GptImage => gpt_image(&["auto", "low", "medium", "high"]),
            Self::GptImageMax => gpt_image(&["auto", "low", "medium", "high", "xhigh", "max"]),
            Self::VideoAImage => Profile {
                resolutions: Some(words(&["1k", "2k"])),
                ratios: Some(words(&VIDEO_A_RATIOS)),
                image_stream: Some(false),
                ..Profile::default()
            },
            Self::NativeImage => Profile {
                image_output: Some(true),
                ..Profile::default()
            },
            Self::VideoA => video_a(),
            Self::Predict31 | Self::Predict31Fast => predict(&["720p", "1080p", "4k"]),
            Self::Predict31Lite => predict(&["720p", "1080p"]),
            Self::Omni11 => omni(),
            Self::Content25 => content_2_5(),
            Self::Content20 => content_2_0(),
            Self::Content15Pro => content_1_5_pro(),
            Self::Content10 => content_1_0(),
            Self::ContentImage => Profile::default(),
        }
    }
}

fn video_a() -> Profile {
    let most = [("image", 7), ("audio", 3)];
    Profile {
        resolutions: Some(words(&["480p", "720p", "1080p"])),
        reference_resolutions: Some(words(&["480p", "720p"])),
        durations: Some(AllowedValues::Bounds { min: 1, max: 15 }),
        extension_durations: Some(AllowedValues::Bounds { min: 2, max: 10 }),
        // A source video may be 8.7 seconds long.
        source_seconds_max: Some(9),
        ratios: Some(words(&["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"])),
        modes: Some(words(&["text", "image", "reference", "edit", "extension"])),
        references_max: Some(References::ByKind(
            most.map(|(kind, most)| (kind.to_owned(), most)).into(),
        )),
        ..Profile::default()
    }
}

/// Long-running predict 3.1. Resolutions above 720p require the full duration.
fn predict(resolutions: &[&str]) -> Profile {
    let finer = resolutions.iter().filter(|it| **it != "720p");
    let full = |resolution: &&str| ((*resolution).to_owned(), AllowedValues::Numbers(vec![8]));
    Profile {
        resolutions: Some(words(resolutions)),
        durations: Some(AllowedValues::Numbers(vec![4, 6, 8])),
        resolution_durations: Some(finer.map(full).collect()),
        ratios: Some(words(&["16:9", "9:16"])),
        modes: Some(words(&["text", "image"])),
        ..Profile::default()
    }
}

fn omni() -> Profile {
    Profile {
        resolutions: Some(words(&["360p", "720p", "1080p", "4k"])),
        durations: Some(AllowedValues::Bounds { min: 3, max: 10 }),
        source_seconds_max: Some(10),
        // The count for 4k, which is three times the 5,792 tokens of 720p. The prices have the same ratio.
        video_tokens_per_second: Some(17_376),
        ratios: Some(words(&["16:9", "9:16"])),
        modes: Some(words(&["text_to_video", "image_to_video", "edit"])),
        ..Profile::default()
    }
}

/// The capabilities that all series of the content-task family share.
fn content(resolutions: &[&str], modes: &[&str]) -> Profile {
    Profile {
        resolutions: Some(words(resolutions)),
        default_resolution: Some("720p".to_owned()),
        ratios: Some(words(&[
            "16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive",
        ])),
        modes: Some(words(modes)),
        output_formats: Some(words(&["mp4"])),
        auto_duration: Some(true),
        frames: Some(false),
        adaptive_modes: Some(words(&["edit", "extend"])),
        task_types: Some(words(&[])),
        built_in_tools: Some(words(&[])),
        audio: Some(true),
        audio_only: Some(false),
        camera_fixed: Some(false),
        seed: Some(true),
        references_max: Some(references(&[("image", 0), ("video", 0), ("audio", 0)])),
        ..Profile::default()
    }
}

fn content_2_5() -> Profile {
    let modes = ["text", "first", "first+last", "reference", "edit", "extend"];
    let most = [("image", 30), ("video", 10), ("audio", 10), ("total", 50)];
    Profile {
        durations: Some(AllowedValues::Bounds { min: 4, max: 30 }),
        // For all reference videos together.
        source_seconds_max: Some(30),
        output_formats: Some(words(&["mp4", "mov"])),
        adaptive_modes: Some(words(&["first", "first+last", "edit", "extend"])),
        task_types: Some(words(&["auto", "reference", "edit", "extend"])),
        audio_only: Some(true),
        references_max: Some(references(&most)),
        ..content(&["480p", "720p", "1080p"], &modes)
    }
}

fn content_2_0() -> Profile {
    let modes = ["text", "first", "first+last", "reference"];
    Profile {
        durations: Some(AllowedValues::Bounds { min: 4, max: 15 }),
        source_seconds_max: Some(15),
        built_in_tools: Some(words(&["web_search"])),
        references_max: Some(references(&[("image", 9), ("video", 3), ("audio", 3)])),
        ..content(&["480p", "720p", "1080p", "4k"], &modes)
    }
}

fn content_1_5_pro() -> Profile {
    let modes = ["text", "first", "first+last", "draft"];
    Profile {
        durations: Some(AllowedValues::Bounds { min: 4, max: 12 }),
        camera_fixed: Some(true),
        ..content(&["480p", "720p", "1080p"], &modes)
    }
}

/// Content-task 1.0, all variants. An entry in the configuration sets its own modes.
fn content_1_0() -> Profile {
    let modes = ["text", "first", "first+last", "reference"];
    Profile {
        default_resolution: Some("1080p".to_owned()),
        reference_resolutions: Some(words(&["480p", "720p"])),
        durations: Some(AllowedValues::Bounds { min: 2, max: 12 }),
        auto_duration: Some(false),
        frames: Some(true),
        audio: Some(false),
        camera_fixed: Some(true),
        references_max: Some(references(&[("image", 4), ("video", 0), ("audio", 0)])),
        ..content(&["480p", "720p", "1080p"], &modes)
    }
}

fn references(most: &[(&str, u32)]) -> References {
    let most = most.iter().map(|(kind, most)| ((*kind).to_owned(), *most));
    References::ByKind(most.collect())
}

fn gpt_image(qualities: &[&str]) -> Profile {
    Profile {
        qualities: Some(words(qualities)),
        output_formats: Some(words(&["png", "jpeg", "webp"])),
        backgrounds: Some(words(&["transparent", "opaque", "auto"])),
        // GPT models use sizes instead.
        resolutions: Some(words(&[])),
        ratios: Some(words(&[])),
        image_stream: Some(true),
        ..Profile::default()
    }
}

fn words(words: &[&str]) -> AllowedValues {
    let words = words.iter().map(|word| (*word).to_owned());
    AllowedValues::Words(words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_overrides_its_base() {
        let profile: Profile =
            serde_json::from_str(r#"{"base":"gpt-image","qualities":["low"]}"#).unwrap();
        let profile = profile.over_base();
        assert_eq!(profile.qualities, Some(words(&["low"])));
        assert_eq!(
            profile.output_formats,
            Some(words(&["png", "jpeg", "webp"]))
        );
        let max = Profile {
            base: Some(BuiltInProfile::GptImageMax),
            ..Profile::default()
        };
        let Some(AllowedValues::Words(qualities)) = max.over_base().qualities else {
            panic!("a list of words");
        };
        assert!(qualities.iter().any(|quality| quality == "xhigh"));
        assert_eq!(Profile::default().over_base(), Profile::default());
    }
}
