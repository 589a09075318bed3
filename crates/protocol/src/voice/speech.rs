//! Reads speech requests: `POST /v1/tts`, and the form of common SDKs, `POST /v1/audio/speech`.

use std::borrow::Cow;

use bytes::Bytes;

use crate::failure::Failure;
use crate::guard;
use crate::json::patch::{self, Edit};
use crate::json::{Members, Raw, Spelling, write, write_string};

/// Codecs of the SDK form that the upstream supports.
const CODECS: [&str; 3] = ["mp3", "wav", "pcm"];

/// A speech request that was read and accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speech {
    /// The public id of the model.
    pub model: String,
    /// The number of Unicode scalar values in the text, which is billed.
    pub characters: u64,
    /// Whether the answer is JSON that contains the audio, instead of audio.
    pub with_timestamps: bool,
    /// The body for the upstream, without `model`.
    pub body: Bytes,
    /// The value of `x-dropped-params`.
    pub dropped: Option<String>,
}

/// Reads `POST /v1/tts`. Removes `model` and keeps every other byte.
pub fn read_speech(body: &Bytes) -> Result<Speech, Failure> {
    let members = Members::read(body, Spelling::One)?;
    let model = model_of(&members)?;
    let characters = characters(&members, "text")?;
    let cut = members.with_names(body, &["model"])?;
    Ok(Speech {
        model,
        characters,
        with_timestamps: members.boolean("with_timestamps")? == Some(true),
        body: patch::apply(body, cut.into_iter().map(Edit::remove).collect()),
        dropped: None,
    })
}

/// Reads `POST /v1/audio/speech`: the same request with other names.
pub fn read_renamed_speech(body: &Bytes) -> Result<Speech, Failure> {
    let members = Members::read(body, Spelling::One)?;
    let model = model_of(&members)?;
    let characters = characters(&members, "input")?;
    if members
        .string("stream_format")?
        .is_some_and(|it| it != "audio")
    {
        return Err(Failure::unsupported_parameter(
            "stream_format",
            "Speech is streamed as audio alone.",
        ));
    }
    for name in ["text", "voice_id", "output_format"] {
        if members.find(name)?.is_some() {
            return Err(Failure::invalid(format!("`{name}` has another name here.")).param(name));
        }
    }
    let mut out = Vec::with_capacity(body.len() + 64);
    let mut dropped = Vec::new();
    let mut renamed = Ok(());
    write::object(&mut out, |object| {
        for member in members.iter() {
            let raw = member.value.text();
            match &*member.name {
                "model" | "stream_format" => {}
                "response_format" | "instructions" if member.value.is_null() => {}
                "instructions" => dropped.push("instructions"),
                "input" => {
                    object.raw("text", raw);
                }
                "voice" => match voice(member.value) {
                    Ok(voice) => {
                        object.text("voice_id", &voice);
                    }
                    Err(failure) => renamed = Err(failure),
                },
                "response_format" => match codec(member.value) {
                    Ok(codec) => {
                        object.object("output_format", |it| {
                            it.text("codec", &codec);
                        });
                    }
                    Err(failure) => renamed = Err(failure),
                },
                name => {
                    object.raw(&escaped(name), raw);
                }
            }
        }
        // The upstream requires a language, and this form has no member for it.
        if !members.iter().any(|member| member.name == "language") {
            object.text("language", "auto");
        }
    });
    renamed?;
    Ok(Speech {
        model,
        characters,
        with_timestamps: members.boolean("with_timestamps")? == Some(true),
        body: Bytes::from(out),
        dropped: (!dropped.is_empty()).then(|| dropped.join(",")),
    })
}

/// A name, escaped for use between the quotes of a JSON string.
fn escaped(name: &str) -> String {
    let mut quoted = Vec::with_capacity(name.len() + 2);
    write_string(&mut quoted, name);
    let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    String::from_utf8_lossy(inside).into_owned()
}

fn model_of(members: &Members<'_>) -> Result<String, Failure> {
    guard::routing(members)?;
    guard::service_tier(members)?;
    let model = members.string("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    guard::model_id(&model)?;
    Ok(model.into_owned())
}

fn characters(members: &Members<'_>, name: &'static str) -> Result<u64, Failure> {
    let text = members.string(name)?.unwrap_or_default();
    if text.is_empty() {
        return Err(Failure::invalid(format!("`{name}` is required.")).param(name));
    }
    Ok(u64::try_from(text.chars().count()).unwrap_or(u64::MAX))
}

/// A voice by its name, or as an object with its id.
fn voice(value: Raw<'_>) -> Result<Cow<'_, str>, Failure> {
    let named = match value.string() {
        Some(text) => text.decode().ok(),
        None => Members::nested(value, "voice.", Spelling::One)?.string("id")?,
    };
    named.ok_or_else(|| Failure::invalid("`voice` must name a voice.").param("voice"))
}

fn codec(value: Raw<'_>) -> Result<Cow<'_, str>, Failure> {
    let codec = value.string().and_then(|text| text.decode().ok());
    match codec {
        Some(codec) if CODECS.contains(&&*codec) => Ok(codec),
        _ => Err(Failure::unsupported_parameter(
            "response_format",
            format!(
                "`response_format` must be one of {}.",
                CODECS.map(|it| format!("`{it}`")).join(", ")
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Speech, Failure> {
        read_speech(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn the_model_is_cut_out_and_nothing_else_changes() {
        for (body, sent) in [
            (
                r#"{"model":"m/v","text":"Hi","x":[ 1 ]}"#,
                r#"{"text":"Hi","x":[ 1 ]}"#,
            ),
            (
                r#"{ "text" : "Hi" , "model" : "m/v" }"#,
                r#"{ "text" : "Hi" }"#,
            ),
            (
                r#"{"text":"Hi","mod\u0065l":"m/v","language":"en"}"#,
                r#"{"text":"Hi","language":"en"}"#,
            ),
            (
                "{\n  \"model\": \"m/v\",\n  \"text\": \"Hi\"\n}",
                "{\n  \"text\": \"Hi\"\n}",
            ),
        ] {
            let speech = read(body).unwrap();
            assert_eq!(&*speech.body, sent.as_bytes(), "{body}");
            assert_eq!((&*speech.model, speech.characters), ("m/v", 2));
        }
    }

    #[test]
    fn characters_are_unicode_scalar_values_as_sent() {
        for (text, characters) in [
            ("Hi", 2),
            ("Grüße", 5),
            ("e\\u0301", 2),
            ("👩‍🚀", 3),
            ("\\ud83d\\ude00", 1),
            ("[pause] a", 9),
            (" ", 1),
            ("a\\nb", 3),
        ] {
            let body = format!(r#"{{"model":"m/v","text":"{text}"}}"#);
            assert_eq!(read(&body).unwrap().characters, characters, "{text}");
        }
    }

    #[test]
    fn requests_that_cannot_be_billed_or_routed_are_refused() {
        use crate::failure::Code;
        for (body, code, param) in [
            (r#"{"text":"Hi"}"#, Code::InvalidRequest, "model"),
            (r#"{"model":"","text":"Hi"}"#, Code::InvalidRequest, "model"),
            (r#"{"model":"m/v"}"#, Code::InvalidRequest, "text"),
            (r#"{"model":"m/v","text":""}"#, Code::InvalidRequest, "text"),
            (r#"{"model":"m/v","text":7}"#, Code::InvalidRequest, "text"),
            (
                r#"{"model":"m/v","text":"Hi","provider":{}}"#,
                Code::RoutingNotSupported,
                "provider",
            ),
            (
                r#"{"model":"m/v","text":"Hi","service_tier":"flex"}"#,
                Code::ServiceTierNotSupported,
                "service_tier",
            ),
            (
                r#"{"model":"m/v","text":"Hi","with_timestamps":"yes"}"#,
                Code::InvalidRequest,
                "with_timestamps",
            ),
        ] {
            let failure = read(body).unwrap_err();
            assert_eq!(
                (failure.code, failure.param.as_deref()),
                (code, Some(param)),
                "{body}"
            );
        }
        assert!(read(r#"{"model":"m/v","model":"m/w","text":"Hi"}"#).is_err());
        assert!(read(r#"{"model":"m/v","text":"\ud800"}"#).is_err());
    }

    #[test]
    fn the_form_of_common_sdks_is_renamed() {
        let read = |body: &str| read_renamed_speech(&Bytes::copy_from_slice(body.as_bytes()));
        for (body, sent, dropped) in [
            (
                r#"{"input":"Hi","model":"m/v","voice":"Eve","response_format":"wav","speed":1.2}"#,
                r#"{"text":"Hi","voice_id":"Eve","output_format":{"codec":"wav"},"speed":1.2,"language":"auto"}"#,
                None,
            ),
            (
                r#"{"model":"m/v","voice":{"id":"ara"},"input":"Hi","language":"en","instructions":"Softly."}"#,
                r#"{"voice_id":"ara","text":"Hi","language":"en"}"#,
                Some("instructions"),
            ),
            (
                r#"{"model":"m/v","input":"Hi","response_format":null,"a\"b":1,"stream_format":"audio"}"#,
                r#"{"text":"Hi","a\"b":1,"language":"auto"}"#,
                None,
            ),
        ] {
            let speech = read(body).unwrap();
            assert_eq!(&*speech.body, sent.as_bytes());
            assert_eq!(speech.dropped.as_deref(), dropped);
            assert_eq!(speech.characters, 2);
        }
        for (body, param) in [
            (
                r#"{"model":"m/v","input":"Hi","response_format":"opus"}"#,
                "response_format",
            ),
            (
                r#"{"model":"m/v","input":"Hi","stream_format":"sse"}"#,
                "stream_format",
            ),
            (r#"{"model":"m/v","input":"Hi","voice":7}"#, "voice"),
            (r#"{"model":"m/v","text":"Hi"}"#, "input"),
            (r#"{"model":"m/v","input":"Hi","text":"Ho"}"#, "text"),
        ] {
            assert_eq!(
                read(body).unwrap_err().param.as_deref(),
                Some(param),
                "{body}"
            );
        }
    }
}
