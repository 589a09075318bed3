//! Reads whole answers of voice upstreams.

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError, utf8, write_string};
use crate::native::{Answer, UnusableAnswer};
use crate::rejection;
use crate::scrub::{Ids, Names, is_identity, mask, strip, strip_transcript};

/// Speech with timestamps: JSON that contains the audio. The upstream's identity is removed, and
/// everything else passes unchanged.
pub fn read_timed_speech(body: &Bytes, public_model: &str) -> Result<Answer, UnusableAnswer> {
    let members = Members::read(body, Spelling::One)
        .map_err(|error| UnusableAnswer::malformed(error.to_string()))?;
    let member = |name: &str| members.iter().find(|it| it.name == name);
    let error = member("error").map(|it| it.value);
    if let Some(failure) = rejection::read_member(error, public_model) {
        return Err(UnusableAnswer::Failure(failure));
    }
    if member("audio").is_none_or(|it| it.value.string().is_none()) {
        return Err(UnusableAnswer::malformed("no audio in the answer"));
    }
    Ok(patched(body, |answer| strip(answer, public_model)))
}

/// A transcript. The upstream's identity is removed, and everything else passes unchanged. The
/// reported duration is billed.
pub fn read_transcription(body: &Bytes, public_model: &str) -> Result<Answer, UnusableAnswer> {
    let members = Members::read(body, Spelling::One)
        .map_err(|error| UnusableAnswer::malformed(error.to_string()))?;
    let member = |name: &str| members.iter().find(|it| it.name == name);
    let error = member("error").map(|it| it.value);
    if let Some(failure) = rejection::read_member(error, public_model) {
        return Err(UnusableAnswer::Failure(failure));
    }
    let text = member("text").and_then(|it| it.value.string());
    let text = text.ok_or_else(|| UnusableAnswer::malformed("no text in the answer"))?;
    let seconds = member("duration").and_then(|it| whole_seconds(it.value.text()));
    // A transcript with text cannot have a duration of zero.
    let seconds = seconds.filter(|seconds| *seconds > 0 || text.is_empty());
    Ok(Answer {
        seconds,
        ..patched(body, |answer| strip_transcript(answer, public_model))
    })
}

/// Decimal seconds, rounded up. `None` if the text is not a plain number.
fn whole_seconds(number: &str) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let seconds: u64 = whole.parse().ok().filter(|_| is_digits(part))?;
    seconds.checked_add(u64::from(part.bytes().any(|it| it != b'0')))
}

/// The upstream's list of voices, without the upstream's identity.
pub fn clean_voices(body: &Bytes, names: Names<'_>) -> Result<Bytes, UnusableAnswer> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut edits = Vec::new();
    if cursor.shape()? != Shape::Object {
        return Err(UnusableAnswer::malformed("no object"));
    }
    let value = cursor.value()?;
    cursor.end()?;
    let mut any = false;
    Cursor::new(value.text()).object(|cursor, name| {
        any = true;
        let value = cursor.value()?;
        // Some servers answer with only an error text.
        let is_detail = name.is("detail") && value.shape() == Shape::String;
        if is_detail || name.is("error") && rejection::is_error(value) {
            let failure = rejection::read_event(value.text().as_bytes(), names.public);
            return Err(UnusableAnswer::Failure(failure));
        }
        Ok(())
    })?;
    if !any {
        return Err(UnusableAnswer::malformed("an empty object"));
    }
    let mut model = Vec::new();
    write_string(&mut model, names.public);
    clean(value, names, &model, &mut edits)?;
    Ok(patch::apply(body, edits))
}

/// Members by which upstreams name a voice.
const VOICE: [&str; 3] = ["id", "voice_id", "voiceId"];

fn clean(
    value: Raw<'_>,
    names: Names<'_>,
    model: &[u8],
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    let offset = value.span().start;
    let mut cursor = Cursor::new(value.text());
    match value.shape() {
        Shape::String => {
            let text = value.string().map(|text| text.decode_lossy());
            let text = text.unwrap_or_default();
            let shown = mask(&text, names);
            if shown != text.trim() {
                let mut replaced = Vec::new();
                write_string(&mut replaced, &shown);
                edits.push(Edit::replace(value.span(), replaced));
            }
            Ok(())
        }
        Shape::Object => {
            let mut ids = Ids::new(model, offset);
            cursor.object(|cursor, name| {
                let value = cursor.value()?.moved(offset);
                let is_voice = VOICE.iter().any(|it| name.is(it));
                if !is_voice && is_identity(&name.decode_lossy()) {
                    ids.member(name, value, edits);
                    return Ok(());
                }
                ids.keep(name, value, edits);
                clean(value, names, model, edits)
            })?;
            ids.end(edits);
            Ok(())
        }
        Shape::Array => {
            cursor.array(|cursor| clean(cursor.value()?.moved(offset), names, model, edits))
        }
        _ => Ok(()),
    }
}

fn patched(body: &Bytes, edits_of: impl FnOnce(Raw<'_>) -> Vec<Edit>) -> Answer {
    let mut pieces = ByteQueue::new();
    let value = utf8(body).and_then(|text| Cursor::new(text).value());
    let edits = value.map(edits_of);
    patch::apply_to(body, edits.unwrap_or_default(), &mut pieces);
    Answer {
        pieces,
        ..Answer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names::of_model("voice-x", "maker/x");

    #[test]
    fn voices_are_unchanged_except_for_the_upstreams_identity() {
        let body = r#"{ "voices": [ {"voice_id":"eve","name":"Eve \u00e9","n":1.50},
            {"voice_id":"ara","preview":"https://v.example/ara.mp3","model":"voice-x"} ],"trace_id":"t","account":7 }"#;
        let clean = clean_voices(&Bytes::from_static(body.as_bytes()), NAMES).unwrap();
        let expected = body
            .replace("https://v.example/ara.mp3", "[url]")
            .replace("voice-x", "maker/x")
            .replace(r#","trace_id":"t","account":7"#, "");
        assert_eq!(clean, expected);
    }

    #[test]
    fn only_transcripts_have_labels() {
        for (words, expected) in [
            (
                r#"[{"speaker_id":"speaker_0","channel_id":1,"word_id":1},{"speakerId":"12"}]"#,
                r#"[{"speaker_id":"speaker_0","channel_id":1},{"speakerId":"12"}]"#,
            ),
            (
                r#"{"speaker_id":"acct_1","channel_id":12345,"a":1,"speaker_id":null,"channelId":""}"#,
                r#"{"a":1}"#,
            ),
        ] {
            let body = format!(r#"{{"text":"Hi","words":{words}}}"#);
            let answer = read_transcription(&Bytes::from(body), "m/v").unwrap();
            let expected = format!(r#"{{"text":"Hi","words":{expected}}}"#);
            assert_eq!(answer.pieces.into_bytes(), expected);
        }
        let body = r#"{"audio":"AAAA","channel_id":12,"marks":[{"speaker_id":"speaker_1"}]}"#;
        let answer = read_timed_speech(&Bytes::from(body), "m/v").unwrap();
        assert_eq!(
            answer.pieces.into_bytes(),
            r#"{"audio":"AAAA","marks":[{}]}"#
        );
    }

    #[test]
    fn a_transcript_is_billed_by_its_duration_rounded_up() {
        for (duration, seconds) in [
            ("12.34", Some(13)),
            ("12.00", Some(12)),
            ("12", Some(12)),
            ("0.01", Some(1)),
            ("0", None),
            ("0.00", None),
            ("-1", None),
            ("1e3", None),
            ("\"12\"", None),
            ("null", None),
            ("99999999999999999999", None),
        ] {
            let body = format!(r#"{{"text":"Hi","duration":{duration}}}"#);
            let answer = read_transcription(&Bytes::from(body.clone()), "m/v").unwrap();
            assert_eq!(answer.seconds, seconds, "{duration}");
            assert_eq!(answer.pieces.into_bytes(), body);
        }
        let silence = Bytes::from_static(br#"{"text":"","duration":0}"#);
        assert_eq!(
            read_transcription(&silence, "m/v").unwrap().seconds,
            Some(0)
        );
        for body in ["{}", r#"{"text":7}"#, r#"{"error":"no"}"#] {
            assert!(read_transcription(&Bytes::from_static(body.as_bytes()), "m/v").is_err());
        }
    }

    #[test]
    fn answers_do_not_identify_the_upstream() {
        let transcript = r#"{"id":"t1","text":"Hi","duration":1,"model":"voice-x","words":[{"text":"Hi","speaker":0}],"request_id":"r"}"#;
        let answer = read_transcription(&Bytes::from_static(transcript.as_bytes()), "m/v").unwrap();
        assert_eq!(
            answer.pieces.into_bytes(),
            r#"{"text":"Hi","duration":1,"model":"m/v","words":[{"text":"Hi","speaker":0}]}"#
        );
        let timed = r#"{"trace_id":"t","audio":"AAAA","duration":0.92}"#;
        let answer = read_timed_speech(&Bytes::from_static(timed.as_bytes()), "maker/x").unwrap();
        assert_eq!(
            answer.pieces.into_bytes(),
            r#"{"audio":"AAAA","duration":0.92}"#
        );
    }

    #[test]
    fn bodies_that_are_not_answers_are_errors() {
        for body in ["", "[]", "{}", "<html>", r#"{"error":{"message":"no"}}"#] {
            let body = Bytes::from_static(body.as_bytes());
            assert!(clean_voices(&body, NAMES).is_err());
            assert!(read_timed_speech(&body, "maker/x").is_err());
        }
        let timed = r#"{"audio":"AAAA","duration":0.92}"#;
        let answer = read_timed_speech(&Bytes::from_static(timed.as_bytes()), "maker/x").unwrap();
        assert_eq!(answer.pieces.into_bytes(), timed);
    }
}
