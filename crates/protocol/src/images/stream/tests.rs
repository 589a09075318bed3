//! Streams of each family, in any chunking.

use proptest::prelude::*;

use super::*;
use crate::images::read_json;
use crate::tool::Tool;

const GPT: &str = concat!(
    "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"QQ==\",\"partial_image_index\":0,\"x\":1}\n\n",
    ": keep-alive\n\n",
    "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"QUJD\",\"usage\":{\"input_tokens\":5,\"output_tokens\":9,\"total_tokens\":14}}\n\n",
);
const CONTENT: &str = concat!(
    "event: image_generation.partial_succeeded\ndata: {\"type\":\"image_generation.partial_succeeded\",\"model\":\"hidden\",\"image_index\":0,\"url\":\"https://a\",\"size\":\"2048x2048\"}\n\n",
    "event: image_generation.partial_failed\ndata: {\"type\":\"image_generation.partial_failed\",\"model\":\"hidden\",\"image_index\":1,\"error\":{\"code\":\"invalid_image\",\"message\":\"host api.v.example broke\",\"request_id\":\"r\",\"details\":{\"host\":\"api.v.example\"}}}\n\n",
    "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"model\":\"hidden\",\"usage\":{\"generated_images\":1,\"output_tokens\":4,\"total_tokens\":4}}\n\n",
    "data: [DONE]\n\n",
);

fn request(operation: Operation, more: &str) -> Request {
    let body = format!(r#"{{"model":"maker/m","prompt":"x","image":{{"url":"https://a"}}{more}}}"#);
    read_json(operation, &body.into()).unwrap()
}

fn run(
    family: Family,
    stream: &str,
    piece: usize,
) -> (Result<(), UnusableAnswer>, String, AnswerSummary) {
    run_for(&request(Operation::Generation, ""), family, stream, piece)
}

fn run_for(
    request: &Request,
    family: Family,
    stream: &str,
    piece: usize,
) -> (Result<(), UnusableAnswer>, String, AnswerSummary) {
    let mut rewriter = Rewriter::new(request, family, "maker/m");
    let mut out = ByteQueue::new();
    let result = stream
        .as_bytes()
        .chunks(piece)
        .try_for_each(|chunk| rewriter.push(Bytes::copy_from_slice(chunk), &mut out))
        .and_then(|()| rewriter.end(&mut out));
    let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    (result, text, rewriter.summary().clone())
}

#[test]
fn previews_and_results_pass_as_they_are() {
    let (result, text, summary) = run(Family::Gpt, GPT, usize::MAX);
    assert_eq!(result, Ok(()));
    assert_eq!(text, GPT);
    assert_eq!(summary.usage.unwrap().image_output, 9);
    assert_eq!(summary.pictures.unwrap().delivered, 1);
    assert!(summary.ended);
}

#[test]
fn the_maker_of_a_picture_is_not_shown() {
    let stream = concat!(
        ": routed by vendor.example\n\n",
        "id: 7\nevent: image_generation.completed\ndata: {\"id\":\"up-1\",\"type\":\"image_generation.completed\",\"b64_json\":\"QUJD\",\"request_id\":\"r\",\"x\":1}\n\n",
    );
    let (result, text, _) = run(Family::Gpt, stream, usize::MAX);
    assert_eq!(result, Ok(()));
    let expected = concat!(
        ": keep-alive\n\n",
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"QUJD\",\"x\":1}\n\n",
    );
    assert_eq!(text, expected);
}

#[test]
fn a_completion_without_a_picture_gets_the_last_one() {
    let (result, text, summary) = run(Family::Content, CONTENT, usize::MAX);
    assert_eq!(result, Ok(()));
    insta::assert_snapshot!(text, @r#"
    event: image_generation.partial_succeeded
    data: {"type":"image_generation.partial_succeeded","model":"maker/m","image_index":0,"url":"https://a","size":"2048x2048"}

    event: image_generation.partial_failed
    data: {"type":"image_generation.partial_failed","model":"maker/m","image_index":1,"error":{"code":"invalid_image","message":"This picture could not be made."}}

    event: image_generation.completed
    data: {"url":"https://a","type":"image_generation.completed","model":"maker/m","usage":{"input_tokens":0,"generated_images":1,"output_tokens":4,"total_tokens":4}}

    data: [DONE]
    "#);
    let pictures = summary.pictures.unwrap();
    assert_eq!(pictures.delivered, 1);
    assert_eq!(pictures.reported.size.as_deref(), Some("2048x2048"));
}

#[test]
fn events_are_named_after_the_endpoint_that_was_called() {
    let edited = |stream: &str| stream.replace("image_generation.", "image_edit.");
    for (family, stream) in [(Family::Gpt, GPT), (Family::Content, CONTENT)] {
        let (_, generated, _) = run(family, stream, usize::MAX);
        for (operation, expected) in [
            (Operation::Generation, generated.clone()),
            (Operation::Edit, edited(&generated)),
        ] {
            let request = request(operation, "");
            for stream in [stream.to_owned(), edited(stream)] {
                let (result, text, summary) = run_for(&request, family, &stream, usize::MAX);
                assert_eq!((result, text), (Ok(()), expected.clone()), "{operation:?}");
                assert_eq!(summary.pictures.unwrap().delivered, 1);
            }
        }
    }
}

#[test]
fn a_picture_is_in_the_member_that_the_client_asked_for() {
    let uri = "data:image/png;base64,iVBORw0K";
    let stream = CONTENT.replace("https://a", uri);
    let options = r#","response_format":"b64_json""#;
    let request = request(Operation::Generation, options);
    let (_, text, _) = run_for(&request, Family::Content, &stream, usize::MAX);
    assert!(!text.contains("data:image"), "{text}");
    assert_eq!(
        text.matches(r#""b64_json":"iVBORw0K""#).count(),
        2,
        "{text}"
    );
    let (_, text, _) = run(Family::Content, &stream, usize::MAX);
    let whole = format!(r#""url":"{uri}""#);
    assert_eq!(text.matches(&whole).count(), 2, "{text}");
}

#[test]
fn a_completion_reports_its_totals_and_tools() {
    let usage = r#""usage":{"generated_images":1,"output_tokens":4,"total_tokens":4}"#;
    for (reported, shown) in [
        (
            r#""usage":{"output_tokens":4,"total_tokens":null,"tool_usage":{"web_search":2}}"#,
            r#""usage":{"input_tokens":0,"output_tokens":4,"total_tokens":4,"tool_usage":{"web_search":2}}"#,
        ),
        (
            r#""usage":null"#,
            r#""usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#,
        ),
        (
            r#""x":1"#,
            r#""usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#,
        ),
    ] {
        let stream = CONTENT.replace(usage, reported);
        let (_, text, summary) = run(Family::Content, &stream, usize::MAX);
        assert!(text.contains(shown), "{text}");
        let searches = if reported.contains("tool_usage") {
            2
        } else {
            0
        };
        assert_eq!(summary.tools.get(Tool::WebSearch), searches);
    }
}

#[test]
fn the_upstreams_cost_is_billed_and_not_shown() {
    let costs = r#""usage":{"cost":0.1,"cost_in_usd_ticks":7,"cost_details":{"x":1},"#;
    let preview = r#"{"type":"image_generation.partial_image","usage":{"cost":1,"x":2},"#;
    for (family, stream) in [(Family::Gpt, GPT), (Family::Content, CONTENT)] {
        let (_, expected, _) = run(family, stream, usize::MAX);
        let stream = stream.replace(r#""usage":{"#, costs);
        let (result, text, summary) = run(family, &stream, usize::MAX);
        assert_eq!((result, text), (Ok(()), expected));
        assert_eq!(summary.pictures.unwrap().usd_ticks, Some(7));
    }
    let stream = GPT.replace(r#"{"type":"image_generation.partial_image","#, preview);
    let (_, text, _) = run(Family::Gpt, &stream, usize::MAX);
    assert_eq!(text, stream.replace(r#""cost":1,"#, ""));
    // The provider of the picture is hidden too.
    let named = r#""usage":{"provider":"acme","request_id":"r-7","#;
    let stream = GPT.replace(r#""usage":{"#, named);
    assert_eq!(run(Family::Gpt, &stream, usize::MAX).1, GPT);
    // Clients of this family read this cost.
    let stream = GPT.replace(r#""usage":{"#, costs);
    let (_, text, _) = run(Family::VideoA, &stream, usize::MAX);
    assert!(
        text.contains(r#""usage":{"cost_in_usd_ticks":7,"input_tokens":5"#),
        "{text}"
    );
}

/// Each picture of which a preview was delivered counts once, until it is delivered itself.
#[test]
fn previews_count_as_one_picture_until_it_comes() {
    let preview = |index: &str| {
        format!(
            r#"{{"type":"image_generation.partial_image","b64_json":"QQ==","size":"1024x1024"{index}}}"#
        )
    };
    let at = |index: u64| preview(&format!(r#","partial_image_index":{index}"#));
    let result = || r#"{"type":"image_generation.completed","b64_json":"QUJD"}"#.to_owned();
    let empty =
        r#"{"type":"image_generation.partial_image","b64_json":"","partial_image_index":0}"#;
    for (events, expected) in [
        (vec![], (0, 0)),
        (vec![empty.to_owned()], (0, 0)),
        (vec![at(0)], (0, 1)),
        (vec![preview("")], (0, 1)),
        (vec![at(0), at(1), at(2)], (0, 1)),
        (vec![at(0), at(1), result()], (1, 0)),
        (vec![at(0), result(), at(0)], (1, 1)),
        (vec![at(0), result(), at(1)], (1, 1)),
        (vec![result(), at(0)], (1, 1)),
        // Two pictures are mixed.
        (vec![at(0), at(0)], (0, 2)),
        (vec![at(0), at(0), result()], (1, 1)),
        (vec![at(0), at(0), result(), result()], (2, 0)),
        // The request asks for three.
        (vec![at(0), at(0), at(0), at(0)], (0, 3)),
        (vec![result(), result(), result(), at(0)], (3, 0)),
    ] {
        let stream = format!("data: {}\n\n", events.join("\n\ndata: "));
        let asked = request(Operation::Generation, r#","n":3"#);
        let (_, _, summary) = run_for(&asked, Family::Gpt, &stream, usize::MAX);
        let pictures = summary.pictures.unwrap();
        assert_eq!(
            (pictures.delivered, pictures.previewed),
            expected,
            "{events:?}"
        );
        let sees_size = events.iter().any(|event| event.contains("1024"));
        assert_eq!(
            pictures.reported.size.is_some(),
            sees_size && expected != (3, 0),
            "{events:?}"
        );
    }
}

/// Families whose streams end with a mark or with the connection: the upstream may make fewer pictures than requested,
/// and number the previews of one picture from 0 again.
#[test]
fn previews_never_count_as_more_pictures_than_requested_or_made() {
    let preview =
        r#"{"type":"image_generation.partial_image","b64_json":"QQ==","partial_image_index":0}"#;
    let result = r#"{"type":"image_generation.partial_succeeded","b64_json":"QUJD"}"#;
    let completed = r#"{"type":"image_generation.completed"}"#;
    let (one, several) = (
        "",
        r#","n":4,"sequential_image_generation":"auto","sequential_image_generation_options":{"max_images":4}"#,
    );
    for family in [Family::Unknown, Family::VideoA, Family::Content] {
        for (options, events, expected) in [
            (one, vec![preview, preview, preview], (0, 1)),
            (one, vec![preview, result, preview], (1, 0)),
            (several, vec![preview; 6], (0, 4)),
            (several, vec![preview, preview, result, preview], (1, 2)),
            // The stream is whole.
            (several, vec![preview, preview, result, completed], (1, 0)),
            (
                several,
                vec![preview, result, preview, completed, "[DONE]"],
                (1, 0),
            ),
            (several, vec![preview, preview, completed], (0, 1)),
            (several, vec![preview, preview, completed, "[DONE]"], (0, 1)),
        ] {
            let stream = format!("data: {}\n\n", events.join("\n\ndata: "));
            let asked = request(Operation::Generation, options);
            let (_, _, summary) = run_for(&asked, family, &stream, usize::MAX);
            let pictures = summary.pictures.unwrap();
            let found = (pictures.delivered, pictures.previewed);
            assert_eq!(found, expected, "{family:?} {events:?}");
        }
    }
}

#[test]
fn a_stream_without_a_result_is_broken() {
    let preview = GPT.split_inclusive("\n\n").next().unwrap();
    for (family, stream) in [
        (Family::Gpt, preview),
        (Family::Gpt, &GPT[..GPT.len() - 10]),
        (Family::Content, "data: [DONE]\n\n"),
        (Family::Gpt, ""),
    ] {
        let (result, ..) = run(family, stream, usize::MAX);
        assert_eq!(result, Err(UnusableAnswer::Unfinished), "{stream}");
    }
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"content_policy_violation\"}}\n\n";
    let (result, ..) = run(Family::Gpt, error, usize::MAX);
    assert!(matches!(result, Err(UnusableAnswer::Failure(_))));
}

#[test]
fn a_failure_ends_a_stream_in_the_form_that_clients_raise() {
    let mut out = ByteQueue::new();
    let asked = request(Operation::Generation, "");
    let mut rewriter = Rewriter::new(&asked, Family::Gpt, "maker/m");
    rewriter.fail(&Failure::upstream_error(), "req_1", &mut out);
    let text = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    insta::assert_snapshot!(text, @r#"
    event: error
    data: {"type":"error","error":{"message":"The model's upstream failed to answer this request.","type":"server_error","param":null,"code":"upstream_error"}}
    "#);
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_stream(piece in 1_usize..200) {
        for (family, stream) in [(Family::Gpt, GPT), (Family::Content, CONTENT)] {
            prop_assert_eq!(run(family, stream, piece), run(family, stream, usize::MAX));
        }
    }
}
