//! Rewrites whole answers: images are delivered in the form that the client asked for, and members that
//! clients expect are added.

use bytes::Bytes;

use super::delivery::{DeliveryForm, SentImage};
use super::family::Family;
use super::grade::PriceGrade;
use super::picture::Pictures;
use super::request::Request;
use super::usage;
use crate::byte_queue::ByteQueue;
use crate::json::patch::{self, Edit};
use crate::json::write::object;
use crate::json::{Cursor, Raw, Shape, SyntaxError, utf8, write_string};
use crate::native::{Answer, UnusableAnswer};
use crate::rejection;
use crate::scrub::{Ids, Names, explain_code};

impl Request {
    /// Replaces the model in an answer with the public id, and adds members that clients expect but
    /// the upstream left out. `created` is in Unix seconds.
    pub fn rewrite(
        &self,
        family: Family,
        body: &Bytes,
        public_model: &str,
        created: i64,
    ) -> Result<Answer, UnusableAnswer> {
        let text = utf8(body)?;
        let wanted = DeliveryForm::of(&self.options, family);
        let seen = AnswerFields::read(text, public_model, wanted)?;
        let mut edits = seen.edits;
        if let Some(model) = seen.model {
            let mut name = Vec::new();
            write_string(&mut name, public_model);
            edits.push(Edit::replace(model.span(), name));
        }
        // An invalid time, such as 0, is replaced with ours.
        let wrong = |reported: &Raw<'_>| {
            !reported.is_null() && !reported.text().starts_with(is_first_digit)
        };
        if let Some(reported) = seen.created.filter(wrong) {
            edits.push(Edit::replace(
                reported.span(),
                created.to_string().into_bytes(),
            ));
        }
        let mut missing = Vec::new();
        let mut complete =
            |name: &str, reported: Option<Raw<'_>>, value: Option<Vec<u8>>| match (reported, value)
            {
                (Some(reported), Some(value)) if reported.is_null() => {
                    edits.push(Edit::replace(reported.span(), value));
                }
                (None, Some(value)) => {
                    missing.extend_from_slice(format!("\"{name}\":").as_bytes());
                    missing.extend_from_slice(&value);
                    missing.push(b',');
                }
                _ => {}
            };
        let quoted = |text: Option<&str>| {
            text.map(|text| {
                let mut out = Vec::new();
                write_string(&mut out, text);
                out
            })
        };
        complete("created", seen.created, Some(created.to_string().into()));
        let asked = PriceGrade::requested(&self.options, family);
        complete(
            "output_format",
            seen.output_format,
            quoted(self.options.output_format.as_deref()),
        );
        complete("quality", seen.quality, quoted(asked.quality.as_deref()));
        complete("size", seen.size, quoted(asked.size.as_deref()));
        let reported = seen.usage.and_then(usage::read);
        // These two families may report no usage at all. Clients read all three totals.
        if matches!(family, Family::VideoA | Family::Content) {
            complete("usage", seen.usage, Some(usage::NONE.to_vec()));
        }
        if let Some(usage) = seen.usage {
            edits.extend(usage::shown(usage, family, public_model));
        }
        if !missing.is_empty() {
            edits.push(Edit::insert(seen.inside, missing));
        }
        let mut pieces = ByteQueue::new();
        patch::apply_to(body, edits, &mut pieces);
        let mut grade = seen.item_grade;
        grade.merge(reported_grade(seen.quality, seen.resolution, seen.size));
        Ok(Answer {
            pieces,
            usage: reported.and_then(|reported| reported.tokens),
            usage_malformed: reported.is_none() && seen.usage.is_some_and(|usage| !usage.is_null()),
            output_tokens_counted: 0,
            tools: reported.map(|reported| reported.tools).unwrap_or_default(),
            seconds: None,
            withheld: None,
            pictures: Some(Box::new(Pictures {
                delivered: seen.delivered,
                previewed: 0,
                usd_ticks: reported.and_then(|reported| reported.usd_ticks),
                reported: grade,
            })),
        })
    }
}

#[derive(Default)]
struct AnswerFields<'a> {
    model: Option<Raw<'a>>,
    created: Option<Raw<'a>>,
    output_format: Option<Raw<'a>>,
    quality: Option<Raw<'a>>,
    resolution: Option<Raw<'a>>,
    size: Option<Raw<'a>>,
    usage: Option<Raw<'a>>,
    edits: Vec<Edit>,
    delivered: u64,
    /// The grade that single images report.
    item_grade: PriceGrade,
    /// The position after the opening brace.
    inside: usize,
}

impl<'a> AnswerFields<'a> {
    fn read(
        text: &'a str,
        public_model: &str,
        wanted: DeliveryForm,
    ) -> Result<Self, UnusableAnswer> {
        let mut seen = Self::default();
        let mut error = None;
        let mut data = None;
        let mut cursor = Cursor::new(text);
        cursor.shape()?;
        seen.inside = cursor.position().saturating_add(1);
        let mut model = Vec::new();
        write_string(&mut model, public_model);
        let mut ids = Ids::new(&model, 0);
        let mut edits = Vec::new();
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            let place = [
                ("model", &mut seen.model),
                ("created", &mut seen.created),
                ("output_format", &mut seen.output_format),
                ("quality", &mut seen.quality),
                ("resolution", &mut seen.resolution),
                ("size", &mut seen.size),
                ("usage", &mut seen.usage),
                ("error", &mut error),
                ("data", &mut data),
            ]
            .into_iter()
            .find(|(known, _)| name.is(known));
            if let Some((_, place)) = place {
                *place = Some(value);
                ids.keep(name, value, &mut edits);
            } else {
                ids.member(name, value, &mut edits);
            }
            Ok::<(), SyntaxError>(())
        })?;
        cursor.end()?;
        ids.end(&mut edits);
        seen.edits = edits;
        if let Some(failure) = rejection::read_member(error, public_model) {
            return Err(UnusableAnswer::Failure(failure));
        }
        let data = data.filter(|data| data.shape() == Shape::Array);
        let data = data.ok_or_else(|| UnusableAnswer::malformed("the answer has no pictures"))?;
        let offset = data.span().start;
        Cursor::new(data.text()).array(|cursor| seen.item(cursor, offset, &model, wanted))?;
        Ok(seen)
    }

    /// Reads one image, or the error in its place.
    fn item(
        &mut self,
        cursor: &mut Cursor<'a>,
        offset: usize,
        model: &[u8],
        wanted: DeliveryForm,
    ) -> Result<(), SyntaxError> {
        let mut given = SentImage::default();
        let mut ids = Ids::new(model, offset);
        let mut failed = false;
        let [mut quality, mut resolution, mut size] = [None; 3];
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            let is_picture = given.note(name, value);
            let value = value.moved(offset);
            if is_picture || name.is("error") {
                ids.keep(name, value, &mut self.edits);
            } else {
                ids.member(name, value, &mut self.edits);
            }
            if name.is("quality") {
                quality = Some(value);
            } else if name.is("resolution") {
                resolution = Some(value);
            } else if name.is("size") {
                size = Some(value);
            } else if name.is("error") && rejection::is_error(value) {
                failed = true;
                self.edits.push(shown_error(value));
            }
            Ok::<(), SyntaxError>(())
        })?;
        ids.end(&mut self.edits);
        let picture = given.picture(wanted);
        if let Some(picture) = &picture {
            self.edits.extend(picture.edits(offset));
        }
        if picture.is_some() && !failed {
            self.delivered += 1;
            self.item_grade
                .merge(reported_grade(quality, resolution, size));
        }
        Ok(())
    }
}

pub(super) fn reported_grade(
    quality: Option<Raw<'_>>,
    resolution: Option<Raw<'_>>,
    size: Option<Raw<'_>>,
) -> PriceGrade {
    let text = |raw: Option<Raw<'_>>| {
        let text = raw?.string()?.decode().ok()?;
        Some(text.into_owned().into_boxed_str())
    };
    PriceGrade {
        quality: text(quality),
        resolution: text(resolution),
        size: text(size),
    }
}

/// Replaces the message of an image that failed.
const NOT_MADE: &str = "This picture could not be made.";

/// Rewrites the error of a failed image, because its text and other members may identify the upstream. Only a
/// code of plain words remains.
pub(super) fn shown_error(error: Raw<'_>) -> Edit {
    let mut out = Vec::new();
    if error.shape() == Shape::Object {
        let code = code_of(error);
        let code = code.as_deref();
        object(&mut out, |it| {
            if let Some(code) = code.and_then(|code| explain_code(code, Names::default())) {
                it.text("code", code);
            }
            it.text("message", NOT_MADE);
        });
    } else {
        write_string(&mut out, NOT_MADE);
    }
    Edit::replace(error.span(), out)
}

fn code_of(error: Raw<'_>) -> Option<String> {
    let mut code = None;
    let read = Cursor::new(error.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("code") {
            code = value.string().map(|text| text.decode_lossy().into_owned());
        }
        Ok::<(), SyntaxError>(())
    });
    read.ok().and(code)
}

/// Whether a number that starts with this digit is above zero.
fn is_first_digit(sign: char) -> bool {
    ('1'..='9').contains(&sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{Operation, read_json};

    fn request(more: &str) -> Request {
        let body = format!(r#"{{"model":"maker/m","prompt":"x"{more}}}"#);
        read_json(Operation::Generation, &Bytes::from(body)).unwrap()
    }

    #[test]
    fn the_maker_of_a_picture_is_not_shown() {
        let body = r#"{"id":"img_1","created":1,"request_id":"r","data":[{"id":"a","b64_json":"AA","model":"up"},
            {"error":"upstream.example is full","task_id":"t"},
            {"error":{"message":"acme is full","code":"OutputImageSensitiveContentDetected","request_id":"r","details":[{"host":"acme-7"}]}},
            {"error":{"code":"acme_zork_7","message":"x","param":"acme"}},{"error":{"code":7}},{"error":null}],"provider":"p","model":"up"}"#;
        let (written, _) = rewritten(&request(""), Family::Gpt, body);
        let expected = r#"{"created":1,"data":[{"b64_json":"AA","model":"maker/m"},
            {"error":"This picture could not be made."},
            {"error":{"code":"OutputImageSensitiveContentDetected","message":"This picture could not be made."}},
            {"error":{"message":"This picture could not be made."}},{"error":{"message":"This picture could not be made."}},{"error":null}],"model":"maker/m"}"#;
        assert_eq!(written, expected);
    }

    fn rewritten(request: &Request, family: Family, body: &'static str) -> (String, Answer) {
        let body = Bytes::from_static(body.as_bytes());
        let mut answer = request
            .rewrite(family, &body, "maker/m", 1_700_000_000)
            .unwrap();
        let pieces = std::mem::take(&mut answer.pieces);
        (
            String::from_utf8(pieces.into_bytes().to_vec()).unwrap(),
            answer,
        )
    }

    #[test]
    fn a_complete_answer_is_relayed_unchanged() {
        let body = r#"{"created":1,"data":[{"b64_json":"QUJD"}],"output_format":"png","quality":"high","size":"1024x1024","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3},"x":1}"#;
        let (text, answer) = rewritten(&request(r#","quality":"low""#), Family::Gpt, body);
        assert_eq!(text, body);
        assert_eq!(answer.usage.unwrap().image_output, 2);
        assert_eq!(answer.pictures.unwrap().delivered, 1);
    }

    #[test]
    fn an_invalid_time_is_replaced_by_ours() {
        for body in [
            r#"{"created":0,"data":[{"b64_json":"QUJD"}]}"#,
            r#"{"created":null,"data":[{"b64_json":"QUJD"}]}"#,
            r#"{"created":-1,"data":[{"b64_json":"QUJD"}]}"#,
            r#"{"created":"1700000001","data":[{"b64_json":"QUJD"}]}"#,
        ] {
            let (text, _) = rewritten(&request(""), Family::Gpt, body);
            assert!(text.contains(r#""created":1700000000,"#), "{body}: {text}");
        }
    }

    #[test]
    fn missing_members_come_from_the_request() {
        let request = request(r#","quality":"high","size":"2K","output_format":"jpeg""#);
        let body = r#"{"data":[{"url":"https://x/y"}],"model":"hidden","size":null}"#;
        let (text, _) = rewritten(&request, Family::Gpt, body);
        insta::assert_snapshot!(text, @r#"{"created":1700000000,"output_format":"jpeg","quality":"high","data":[{"url":"https://x/y"}],"model":"maker/m","size":"2K"}"#);
    }

    #[test]
    fn totals_are_shown_for_every_family() {
        let body = r#"{"data":[{"b64_json":"data:image/jpeg;base64,QUJD"},{"url":""}],"usage":{"cost_in_usd_ticks":400}}"#;
        let (text, answer) = rewritten(&request(""), Family::VideoA, body);
        insta::assert_snapshot!(text, @r#"{"created":1700000000,"data":[{"b64_json":"QUJD"},{"url":""}],"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0,"cost_in_usd_ticks":400}}"#);
        let pictures = answer.pictures.unwrap();
        assert_eq!((pictures.delivered, pictures.usd_ticks), (1, Some(400)));
        let (text, _) = rewritten(&request(""), Family::VideoA, r#"{"data":[],"usage":{}}"#);
        assert!(text.contains(r#""usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#));
    }

    #[test]
    fn usage_does_not_tell_who_made_the_picture() {
        for (family, usage, expected) in [
            (
                Family::Gpt,
                r#"{"input_tokens":1,"provider":"acme","request_id":"r-7"}"#,
                r#"{"input_tokens":1}"#,
            ),
            (
                Family::Unknown,
                r#"{"id":"r-7","cost":1,"model":"up","details":[{"host":"acme"}]}"#,
                r#"{"model":"maker/m","details":[{}]}"#,
            ),
            (
                Family::Content,
                r#"{"provider":"acme"}"#,
                r#"{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#,
            ),
            (
                Family::VideoA,
                r#"{"provider":"acme","cost_in_usd_ticks":4,"total_tokens":null}"#,
                r#"{"input_tokens":0,"output_tokens":0,"cost_in_usd_ticks":4,"total_tokens":0}"#,
            ),
        ] {
            let body = format!(r#"{{"created":1,"data":[],"usage":{usage}}}"#);
            let body = Bytes::from(body);
            let answer = request("").rewrite(family, &body, "maker/m", 1).unwrap();
            let shown = answer.pieces.into_bytes();
            let expected = format!(r#"{{"created":1,"data":[],"usage":{expected}}}"#);
            assert_eq!(shown, expected, "{family:?}");
        }
    }

    #[test]
    fn the_upstreams_cost_is_billed_and_not_shown() {
        let body = r#"{"created":1,"data":[{"b64_json":"QUJD"}],"usage":{"cost":0.1,"input_tokens":1,"output_tokens":2,"cost_details":{"x":1},"cost_in_usd_ticks":7}}"#;
        let (text, answer) = rewritten(&request(""), Family::Gpt, body);
        let expected = r#"{"created":1,"data":[{"b64_json":"QUJD"}],"usage":{"input_tokens":1,"output_tokens":2}}"#;
        assert_eq!(text, expected);
        assert_eq!(answer.usage.unwrap().image_output, 2);
        assert_eq!(answer.pictures.unwrap().usd_ticks, Some(7));
    }

    #[test]
    fn a_picture_is_in_the_member_that_the_client_asked_for() {
        let body = r#"{"created":1,"data":[{"url":"data:image/png;base64,iVBORw0K"}]}"#;
        let bare = r#"{"created":1,"data":[{"b64_json":"iVBORw0K"}]}"#;
        for (family, format, expected) in [
            (Family::Gpt, "", bare),
            (Family::Unknown, "", body),
            (Family::Unknown, r#","response_format":"url""#, body),
            (Family::Unknown, r#","response_format":"b64_json""#, bare),
        ] {
            let (text, answer) = rewritten(&request(format), family, body);
            assert_eq!(text, expected, "{family:?} {format}");
            assert_eq!(answer.pictures.unwrap().delivered, 1);
        }
    }

    #[test]
    fn failed_pictures_are_shown_and_not_counted() {
        let body = r#"{"data":[{"url":"https://a","size":"2048x2048"},{"error":{"code":"x","message":"host api.vendor.example says no"}}],"usage":{"generated_images":1,"output_tokens":9,"total_tokens":9}}"#;
        let (text, answer) = rewritten(&request(""), Family::Content, body);
        let pictures = answer.pictures.unwrap();
        assert_eq!(pictures.delivered, 1);
        assert_eq!(pictures.reported.size.as_deref(), Some("2048x2048"));
        assert!(!text.contains("vendor"), "{text}");
        assert!(
            text.contains(r#""usage":{"input_tokens":0,"generated_images":1"#),
            "{text}"
        );
    }

    #[test]
    fn an_answer_without_pictures_is_refused() {
        for body in [
            "{}",
            "[]",
            "",
            r#"{"error":{"message":"x"}}"#,
            r#"{"data":{}}"#,
        ] {
            let body = Bytes::from_static(body.as_bytes());
            assert!(request("").rewrite(Family::Gpt, &body, "m/x", 0).is_err());
        }
    }
}
