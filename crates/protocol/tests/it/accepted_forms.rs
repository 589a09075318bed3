//! Properties: the hold for a request is the same in every form in which the request can be sent.

use bytes::Bytes;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use protocol::images::{self, Family, Operation, Request};
use protocol::multipart::{Form, Part};
use protocol::voice::{self, AudioEncoding};
use serde_json::{Map, Value, json};

const FAMILIES: [Family; 4] = [
    Family::Gpt,
    Family::VideoA,
    Family::Content,
    Family::Unknown,
];
const OPTIONS: &str = "sequential_image_generation_options";

/// An edit, before it is written as JSON or as a form.
#[derive(Debug, Clone)]
struct Edit {
    texts: Vec<(&'static str, &'static str)>,
    numbers: Vec<(&'static str, u64)>,
    booleans: Vec<(&'static str, bool)>,
    limit: Option<u64>,
    sources: usize,
}

/// The notation that a form uses for values that JSON writes in only one way.
#[derive(Debug, Clone, Copy)]
struct Notation {
    limit: usize,
    boolean: usize,
    number: usize,
    source: &'static str,
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let text = |name: &'static str, values: &[&'static str]| {
        let values = values.to_vec();
        of(select(values)).prop_map(move |value| value.map(|value| (name, value)))
    };
    let number = |name: &'static str| of(1_u64..20).prop_map(move |it| it.map(|it| (name, it)));
    let boolean =
        |name: &'static str| of(any::<bool>()).prop_map(move |it| it.map(|it| (name, it)));
    let texts = (
        text("quality", &["low", "high", "auto"]),
        text("size", &["1024x1024", "2K", "auto", "low"]),
        text("resolution", &["1k", "2k"]),
        text("sequential_image_generation", &["auto", "disabled", "AUTO"]),
        text("response_format", &["url", "b64_json"]),
    );
    let numbers = (number("n"), number("output_compression"), number("seed"));
    let booleans = (
        boolean("stream"),
        boolean("watermark"),
        boolean("layer_decomposition"),
    );
    (texts, numbers, booleans, of(0_u64..20), 1_usize..4).prop_map(
        |(texts, numbers, booleans, limit, sources)| Edit {
            texts: [texts.0, texts.1, texts.2, texts.3, texts.4]
                .into_iter()
                .flatten()
                .collect(),
            numbers: [numbers.0, numbers.1, numbers.2]
                .into_iter()
                .flatten()
                .collect(),
            booleans: [booleans.0, booleans.1, booleans.2]
                .into_iter()
                .flatten()
                .collect(),
            limit,
            sources,
        },
    )
}

fn any_notation() -> impl Strategy<Value = Notation> {
    let source = select(vec!["image", "image[]", "image[0]", "images", "images[]"]);
    (0..3_usize, 0..3_usize, 0..3_usize, source).prop_map(|(limit, boolean, number, source)| {
        Notation {
            limit,
            boolean,
            number,
            source,
        }
    })
}

impl Edit {
    fn json(&self) -> Bytes {
        let mut members = Map::new();
        members.insert("model".to_owned(), json!("maker/m"));
        members.insert("prompt".to_owned(), json!("a red circle"));
        for (name, value) in &self.texts {
            members.insert((*name).to_owned(), json!(value));
        }
        for (name, value) in &self.numbers {
            members.insert((*name).to_owned(), json!(value));
        }
        for (name, value) in &self.booleans {
            members.insert((*name).to_owned(), json!(value));
        }
        if let Some(limit) = self.limit {
            members.insert(OPTIONS.to_owned(), json!({ "max_images": limit }));
        }
        let source = json!({ "type": "image_url", "url": "data:image/png;base64,iVBORw==" });
        match self.sources {
            1 => members.insert("image".to_owned(), source),
            several => members.insert("images".to_owned(), json!(vec![source; several])),
        };
        serde_json::to_vec(&members).unwrap().into()
    }

    fn form(&self, notation: Notation) -> Form {
        let field = |name: &str, value: String| Part::field(name, value);
        let mut parts = vec![
            field("model", "maker/m".to_owned()),
            field("prompt", "a red circle".to_owned()),
        ];
        for (name, value) in &self.texts {
            parts.push(field(name, (*value).to_owned()));
        }
        for (name, value) in &self.numbers {
            let value = [
                format!("{value}"),
                format!(" {value} "),
                format!("0{value}"),
            ];
            parts.push(field(name, value[notation.number].clone()));
        }
        for (name, value) in &self.booleans {
            let value = [["false", "true"], ["False", "True"], ["0", "1"]][notation.boolean]
                [usize::from(*value)];
            parts.push(field(name, value.to_owned()));
        }
        if let Some(limit) = self.limit {
            let (name, value) = match notation.limit {
                0 => (OPTIONS.to_owned(), format!("{{\"max_images\":{limit}}}")),
                1 => (format!("{OPTIONS}[max_images]"), limit.to_string()),
                _ => (format!("{OPTIONS}.max_images"), limit.to_string()),
            };
            parts.push(field(&name, value));
        }
        parts.extend((0..self.sources).map(|_| Part {
            file_name: Some("a.png".to_owned()),
            ..Part::field(notation.source, &b"\x89PNG"[..])
        }));
        Form { parts }
    }
}

/// The request for an upstream that accepts only JSON, and the members that are dropped.
fn sent(request: &Request, family: Family) -> (Value, Vec<String>) {
    let worded = request.write(family, "up", "boundary").unwrap();
    let dropped = worded.dropped.unwrap_or_default();
    let mut dropped: Vec<String> = dropped.split(',').map(str::to_owned).collect();
    dropped.sort();
    (
        serde_json::from_slice(&worded.pieces.concat()).unwrap(),
        dropped,
    )
}

proptest! {
    #[test]
    fn an_edit_is_held_for_alike_as_json_and_as_a_form(edit in any_edit(), notation in any_notation()) {
        let json = images::read_json(Operation::Edit, &edit.json());
        let form = images::read_form(edit.form(notation));
        match (json, form) {
            (Ok(json), Ok(form)) => {
                prop_assert_eq!(&json.options, &form.options);
                prop_assert_eq!(json.stream, form.stream);
                prop_assert_eq!(json.prompt_tokens, form.prompt_tokens);
                for family in FAMILIES {
                    prop_assert_eq!(json.images_max(family), form.images_max(family));
                }
                for family in [Family::VideoA, Family::Content] {
                    prop_assert_eq!(sent(&json, family), sent(&form, family));
                }
            }
            (Err(json), Err(form)) => prop_assert_eq!(json.code, form.code),
            (json, form) => prop_assert!(false, "{:?} {:?}", json, form),
        }
    }

    /// If the answer reports no duration, a file is billed for as many seconds as a session with the
    /// same members would meter. A field that is sent twice or in another spelling is refused.
    #[test]
    fn audio_is_as_long_in_a_form_as_in_a_query(
        format in select(vec!["pcm", "mulaw", "alaw"]),
        rate in select(vec!["8000", "16000", "48000"]),
        multichannel in of(select(vec!["true", "1", "false", "0"])),
        channels in of(select(vec!["2", "3", "8"])),
        double in of(select(vec!["channels", "Channels", "sample_rate", "Audio_Format", "Multichannel"])),
    ) {
        const BYTES: usize = 1_000_000;
        let listened = AudioEncoding::read(Some(format), Some(rate), multichannel, channels).unwrap();
        let mut parts = vec![
            Part::field("model", "maker/m"),
            Part::field("audio_format", format),
            Part::field("sample_rate", rate),
            Part::field("file", vec![0; BYTES]),
        ];
        parts.extend(multichannel.map(|it| Part::field("multichannel", it)));
        parts.extend(channels.map(|it| Part::field("channels", it)));
        // The field has a second value, or its only value is under a name in another case.
        let is_present = |name: &str| parts.iter().any(|part| part.name == name);
        let is_double = double.is_some_and(|it| is_present(it) || it != it.to_ascii_lowercase());
        parts.extend(double.filter(|_| is_double).map(|it| Part::field(it, "8")));
        for read in [voice::read_transcript, voice::read_renamed_transcript] {
            let read = read(Form { parts: parts.clone() }, u64::MAX);
            prop_assert_eq!(read.is_err(), is_double);
            if let Ok(transcript) = read {
                let seconds = (BYTES as u64).div_ceil(listened.bytes_per_second());
                prop_assert_eq!(transcript.seconds_if_unreported, seconds);
                // The hold assumes that the file may be compressed.
                prop_assert_eq!(transcript.seconds_max, (BYTES as u64).div_ceil(750));
            }
        }
    }

    #[test]
    fn speech_is_as_long_by_either_name(text in "\\PC{1,40}", escaped in any::<bool>()) {
        let quoted = if escaped {
            let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{}\"", units.concat())
        } else {
            json!(text).to_string()
        };
        let own = format!(r#"{{"model":"maker/m","text":{quoted}}}"#);
        let renamed = format!(r#"{{"model":"maker/m","input":{quoted}}}"#);
        let characters = text.chars().count() as u64;
        prop_assert_eq!(voice::read_speech(&own.into()).unwrap().characters, characters);
        prop_assert_eq!(voice::read_renamed_speech(&renamed.into()).unwrap().characters, characters);
    }
}
