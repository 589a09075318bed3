//! Reads transcript requests: the forms of `POST /v1/stt` and of `POST /v1/audio/transcriptions`.

use std::collections::HashSet;

use super::watch::AudioEncoding;
use crate::failure::Failure;
use crate::guard;
use crate::guard::form_field;
use crate::guard::is_web_url;
use crate::multipart::{Form, Part};
use crate::request_head;

/// The part that is not text.
const FILE: &str = "file";
/// The assumed duration of audio behind a URL.
const URL_SECONDS: u64 = 6 * 3600;
/// The minimum number of bytes per second of any speech codec.
const BYTES_PER_SECOND_MIN: u64 = 750;

/// Fields that are checked, or from which the duration is computed.
const READ: [&str; 7] = [
    "audio_format",
    "channels",
    "multichannel",
    "response_format",
    "sample_rate",
    "stream",
    "url",
];

/// Fields of common SDKs that this upstream does not have.
const DROPPED: [&str; 5] = [
    "chunking_strategy",
    "include[]",
    "prompt",
    "temperature",
    "timestamp_granularities[]",
];

/// A transcript request that was read and accepted.
#[derive(Debug)]
pub struct Transcript {
    /// The public id of the model.
    pub model: String,
    /// Upper bound for the duration, regardless of the format that the request declares.
    pub seconds_max: u64,
    /// The seconds to bill if the answer reports none: computed from the declared format, otherwise the
    /// upper bound.
    pub seconds_if_unreported: u64,
    /// The public URL of the audio, if the form does not contain it.
    pub url: Option<String>,
    /// The value of `x-dropped-params`.
    pub dropped: Option<String>,
    /// All fields except `model` in their order, then the URL or the file. The upstream requires the file
    /// last.
    parts: Vec<Part>,
}

impl Transcript {
    /// The URLs that an upstream may fetch for this request, at most one more than `accepted`.
    pub fn fetchable_urls(&self, accepted: usize) -> HashSet<String> {
        let texts = self.parts.iter().filter(|part| part.name != FILE);
        let fields = texts.map(|part| (&*part.name, part.text()));
        request_head::fetchable_fields(fields, accepted)
    }

    /// The form for an upstream that uses this name for the model.
    pub fn form(&self, upstream_model: &str) -> Form {
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        parts.push(Part::field("model", upstream_model.to_owned()));
        parts.extend(self.parts.iter().cloned());
        Form { parts }
    }
}

/// Reads `POST /v1/stt`.
pub fn read_transcript(form: Form, file_bytes_max: u64) -> Result<Transcript, Failure> {
    let mut model = None;
    let mut url = None;
    let mut file = None;
    let mut fields = Form::default();
    for part in form.parts {
        let name = form_field::base(&part.name)?;
        form_field::refuse_file(&part, &name, is_read)?;
        if name != FILE {
            form_field::check(&part.name, &part.text())?;
        }
        let place = match name.as_str() {
            "model" => &mut model,
            "url" => &mut url,
            FILE => &mut file,
            _ => {
                fields.parts.push(part);
                continue;
            }
        };
        // With duplicates or other spellings, two parsers could read different values.
        if place.is_some() || part.name != name {
            let twice = format!("`{name}` must stand in the form once, under this name.");
            return Err(Failure::invalid(twice).param(name));
        }
        *place = Some(part);
    }
    let model = model.map(|part| part.text().into_owned());
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    guard::model_id(&model)?;
    let bytes = file
        .as_ref()
        .map(|file| u64::try_from(file.len()).unwrap_or(u64::MAX));
    let url_text = url.as_ref().map(|part| part.text().into_owned());
    let (seconds_max, seconds_if_unreported) = match (bytes, &url_text) {
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("`file` and `url` exclude each other.").param("url"));
        }
        (None, None) => return Err(Failure::invalid("`file` or `url` is required.").param("file")),
        (Some(0), _) => return Err(Failure::invalid("`file` is empty.").param("file")),
        (Some(bytes), _) if bytes > file_bytes_max => {
            return Err(Failure::request_too_large(file_bytes_max));
        }
        (Some(bytes), _) => {
            // Audio that is declared as raw may still be compressed.
            let most = bytes.div_ceil(BYTES_PER_SECOND_MIN).min(URL_SECONDS);
            (most, seconds_of(bytes, &fields)?.min(most))
        }
        (None, Some(url)) if is_web_url(url) => (URL_SECONDS, URL_SECONDS),
        (None, Some(_)) => {
            return Err(Failure::invalid("`url` must be an http(s) URL.").param("url"));
        }
    };
    let mut parts = fields.parts;
    parts.extend(url);
    parts.extend(file);
    Ok(Transcript {
        model,
        seconds_max,
        seconds_if_unreported,
        url: url_text,
        dropped: None,
        parts,
    })
}

/// Reads `POST /v1/audio/transcriptions`. Fields that the upstream does not have are dropped.
pub fn read_renamed_transcript(form: Form, file_bytes_max: u64) -> Result<Transcript, Failure> {
    let mut dropped: Vec<&str> = Vec::new();
    let mut parts = Vec::with_capacity(form.parts.len());
    for part in form.parts {
        if part.name == FILE {
            parts.push(part);
            continue;
        }
        form_field::refuse_file(&part, &form_field::base(&part.name)?, is_read)?;
        let refused = match (part.name.as_str(), &*part.text()) {
            ("stream", _) if part.boolean() != Ok(false) => Some("stream"),
            ("response_format", format) if !matches!(format, "json" | "verbose_json") => {
                Some("response_format")
            }
            _ => None,
        };
        if let Some(name) = refused {
            let message = format!("`{name}` has no value that is supported.");
            return Err(Failure::unsupported_parameter(name, message));
        }
        // The upstream always answers with JSON and without a stream, so these are not sent.
        if matches!(part.name.as_str(), "stream" | "response_format") {
            continue;
        }
        match DROPPED.iter().find(|name| **name == part.name) {
            Some(name) => {
                let name = name.trim_end_matches("[]");
                if !dropped.contains(&name) {
                    dropped.push(name);
                }
            }
            None => parts.push(part),
        }
    }
    let transcript = read_transcript(Form { parts }, file_bytes_max)?;
    Ok(Transcript {
        dropped: (!dropped.is_empty()).then(|| dropped.join(",")),
        ..transcript
    })
}

/// Whether the gateway reads the value of a field, in any spelling.
fn is_read(base: &str) -> bool {
    READ.iter().any(|known| form_field::is_spelt(known, base))
}

/// The duration of audio of this size, by the members of the request. The members describe raw audio exactly,
/// as the query of a session does.
fn seconds_of(bytes: u64, fields: &Form) -> Result<u64, Failure> {
    let field = |name: &str| Ok::<_, Failure>(fields.only_part(name)?.map(Part::text));
    let format = field("audio_format")?;
    let rate = field("sample_rate")?;
    let (multichannel, channels) = (field("multichannel")?, field("channels")?);
    let encoding = AudioEncoding::read(
        format.as_deref(),
        rate.as_deref(),
        multichannel.as_deref(),
        channels.as_deref(),
    );
    // Audio without a known format may have the strongest compression.
    let is_declared = format.is_some() && rate.is_some();
    let per_second = encoding.ok().filter(|_| is_declared);
    let per_second = per_second.map_or(BYTES_PER_SECOND_MIN, AudioEncoding::bytes_per_second);
    Ok(bytes.div_ceil(per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        let part = |(name, value): &(&str, &str)| Part::field(*name, (*value).to_owned());
        Form {
            parts: fields.iter().map(part).collect(),
        }
    }

    #[test]
    fn the_file_comes_last_and_the_rest_keeps_its_order() {
        let fields = [
            ("file", "RIFF"),
            ("keyterm", "b"),
            ("model", "m/v"),
            ("keyterm", "a"),
            ("unknown", "x"),
        ];
        let transcript = read_transcript(form(&fields), 100).unwrap();
        let sent = transcript.form("secret");
        let names: Vec<(&str, String)> = sent
            .parts
            .iter()
            .map(|part| (part.name.as_str(), part.text().into_owned()))
            .collect();
        let expected = [
            ("model", "secret"),
            ("keyterm", "b"),
            ("keyterm", "a"),
            ("unknown", "x"),
            ("file", "RIFF"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        assert_eq!(names, expected);
        assert_eq!(transcript.model, "m/v");
    }

    #[test]
    fn the_bound_follows_the_size_or_is_six_hours() {
        let audio = "x".repeat(32_001);
        for (fields, seconds) in [
            (vec![("file", audio.as_str())], 43),
            (
                vec![
                    ("audio_format", "pcm"),
                    ("sample_rate", "16000"),
                    ("file", &audio),
                ],
                2,
            ),
            (
                vec![
                    ("file", &audio),
                    ("audio_format", "mulaw"),
                    ("sample_rate", "8000"),
                    ("multichannel", "1"),
                    ("channels", "2"),
                ],
                3,
            ),
            // One channel, because `multichannel` is not set.
            (
                vec![
                    ("file", &audio),
                    ("audio_format", "mulaw"),
                    ("sample_rate", "8000"),
                    ("channels", "8"),
                ],
                5,
            ),
            (
                vec![
                    ("file", &audio),
                    ("audio_format", "pcm"),
                    ("sample_rate", "999999999"),
                ],
                43,
            ),
            (vec![("url", "https://a.example/x")], 21_600),
        ] {
            let fields: Vec<_> = [("model", "m/v")].into_iter().chain(fields).collect();
            let transcript = read_transcript(form(&fields), 50_000).unwrap();
            assert_eq!(transcript.seconds_if_unreported, seconds, "{seconds}");
            // The file may be compressed, even if the request declares raw audio.
            let most = if transcript.url.is_some() { 21_600 } else { 43 };
            assert_eq!(transcript.seconds_max, most, "{seconds}");
        }
    }

    #[test]
    fn forms_that_say_too_little_or_too_much_are_refused() {
        for (fields, status, param) in [
            (vec![("file", "x")], 400, Some("model")),
            (vec![("model", "m/v")], 400, Some("file")),
            (
                vec![("model", "m/v"), ("file", "x"), ("url", "u")],
                400,
                Some("url"),
            ),
            (vec![("model", "m/v"), ("url", "")], 400, Some("url")),
            (vec![("model", "m/v"), ("url", "ftp://u")], 400, Some("url")),
            (
                vec![("model", "m/v"), ("model", "m/w"), ("file", "x")],
                400,
                Some("model"),
            ),
            (
                vec![("model", "m/v"), ("file", "x"), ("file", "y")],
                400,
                Some("file"),
            ),
            (vec![("model", "m/v"), ("file", "")], 400, Some("file")),
            (
                vec![("model", "m/v"), ("file", "x"), ("provider", "y")],
                400,
                Some("provider"),
            ),
            (
                vec![("model", "m/v"), ("model_id", "m/w"), ("file", "x")],
                400,
                Some("model"),
            ),
            (
                vec![("model", "m/v"), ("model[]", "m/w"), ("file", "x")],
                400,
                Some("model"),
            ),
            (
                vec![("model", "m/v"), (" model", "m/w"), ("file", "x")],
                400,
                None,
            ),
            (
                vec![("model", "m/v"), ("file[]", "y"), ("file", "x")],
                400,
                Some("file"),
            ),
            (
                vec![
                    ("model", "m/v"),
                    ("file", "x"),
                    ("URL", "https://a.example"),
                ],
                400,
                Some("url"),
            ),
            (
                vec![("model", "m/v"), ("file", "x"), ("Provider[order]", "y")],
                400,
                Some("provider"),
            ),
            (vec![("model", "m/v"), ("file", "12345")], 413, None),
        ] {
            let failure = read_transcript(form(&fields), 4).unwrap_err();
            assert_eq!(
                (failure.status(), failure.param.as_deref()),
                (status, param),
                "{fields:?}"
            );
        }
    }

    /// An upstream may ignore a value in a file, and use another one than the gateway has checked.
    #[test]
    fn only_the_audio_is_a_file() {
        let with_file = |name: &str| {
            let mut form = form(&[("model", "m/v"), ("file", "x")]);
            form.parts.retain(|part| part.name != name);
            form.parts.push(Part {
                file_name: Some("a".to_owned()),
                ..Part::field(name, "json")
            });
            form
        };
        let spelt = ["Provider[order]", "serviceTier", "Sample-Rate"];
        let read = READ.into_iter().chain(["model", "service_tier"]);
        for name in read.chain(guard::ROUTING).chain(spelt) {
            for read in [read_transcript, read_renamed_transcript] {
                let failure = read(with_file(name), 100).unwrap_err();
                assert_eq!(failure.status(), 400, "{name}");
                assert_eq!(failure.param.as_deref(), Some(name));
                assert!(failure.message.contains("filename"), "{failure:?}");
            }
        }
        for name in ["file", "x_unknown"] {
            assert!(read_transcript(with_file(name), 100).is_ok(), "{name}");
        }
    }

    #[test]
    fn members_that_sdks_add_are_dropped_and_listed() {
        let fields = [
            ("model", "m/v"),
            ("prompt", "p"),
            ("response_format", "json"),
            ("timestamp_granularities[]", "word"),
            ("timestamp_granularities[]", "segment"),
            ("language", "en"),
            ("file", "x"),
        ];
        let transcript = read_renamed_transcript(form(&fields), 100).unwrap();
        assert_eq!(
            transcript.dropped.as_deref(),
            Some("prompt,timestamp_granularities")
        );
        assert_eq!(transcript.form("s").parts.len(), 3);
        for field in [("response_format", "srt"), ("stream", "true")] {
            let fields = [("model", "m/v"), ("file", "x"), field];
            let failure = read_renamed_transcript(form(&fields), 100).unwrap_err();
            assert_eq!(failure.param.as_deref(), Some(field.0));
        }
    }
}
