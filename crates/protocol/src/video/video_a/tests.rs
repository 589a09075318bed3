//! Tests of the rules for creation requests, and of the bytes on the wire.

use bytes::Bytes;

use super::{Operation, read_request};
use crate::profile::{AllowedValues, BuiltInProfile, Profile};

fn profile() -> Profile {
    let bare = Profile {
        base: Some(BuiltInProfile::VideoA),
        ..Profile::default()
    };
    bare.over_base()
}

/// `ok`, or the code and the member of the refusal.
fn verdict(operation: Operation, body: &str) -> String {
    let read = read_request(&Bytes::copy_from_slice(body.as_bytes()), operation);
    match read.and_then(|request| request.check_profile(&profile())) {
        Ok(()) => "ok".to_owned(),
        Err(failure) => {
            assert_eq!(failure.status(), 400, "{body}");
            let param = failure.param.as_deref().unwrap_or_default();
            format!("{}:{param}", failure.code.as_str())
        }
    }
}

/// One case per line: the operation, the verdict, and the request.
const CASES: &str = r#"
generation ok {"model":"a/b","prompt":"x"}
generation ok {"model":"a/b","prompt":"x","image":null,"duration":null,"output":null,"provider":null}
generation invalid_request:model {"prompt":"x"}
generation invalid_request:prompt {"model":"a/b"}
generation invalid_request:prompt {"model":"a/b","prompt":"  "}
generation invalid_request:prompt {"model":"a/b","prompt":7}
generation ok {"model":"a/b","image":{"url":"https://x.example/a.png"}}
generation ok {"model":"a/b","image":{"url":"data:image/png;base64,AA"}}
generation ok {"model":"a/b","image":{"file_id":"f"}}
generation invalid_request:image {"model":"a/b","image":{"file_id":"f","url":"https://x.example"}}
generation invalid_request:image {"model":"a/b","image":{"url":"data:video/mp4;base64,AA"}}
generation invalid_request:image {"model":"a/b","image":{"url":"ftp://x"}}
generation invalid_request:image {"model":"a/b","image":{}}
generation invalid_request:image {"model":"a/b","image":"https://x"}
generation ok {"model":"a/b","reference_images":[{"url":"https://x"}]}
generation invalid_request:reference_images {"model":"a/b","reference_images":[{"url":"https://x"}],"image":{"url":"https://x"}}
generation invalid_request:reference_images {"model":"a/b","reference_images":[7]}
generation invalid_request:resolution {"model":"a/b","reference_images":[{"url":"https://x"}],"resolution":"1080p"}
generation invalid_request:reference_images {"model":"a/b","reference_images":[{"file_id":"1"},{"file_id":"2"},{"file_id":"3"},{"file_id":"4"},{"file_id":"5"},{"file_id":"6"},{"file_id":"7"},{"file_id":"8"}]}
generation ok {"model":"a/b","prompt":"x","reference_audios":[{"voice_id":"v"},{"url":"https://x"},{"voice_id":"v"}]}
generation invalid_request:reference_audios {"model":"a/b","prompt":"x","reference_audios":[{"voice_id":"1"},{"voice_id":"2"},{"voice_id":"3"},{"voice_id":"4"}]}
generation ok {"model":"a/b","prompt":"x","resolution":"1080p"}
generation invalid_request:resolution {"model":"a/b","prompt":"x","resolution":"4k"}
generation ok {"model":"a/b","prompt":"x","aspect_ratio":"3:2"}
generation invalid_request:aspect_ratio {"model":"a/b","prompt":"x","aspect_ratio":"21:9"}
generation ok {"model":"a/b","prompt":"x","duration":15}
generation ok {"model":"a/b","prompt":"x","duration":"1"}
generation invalid_request:duration {"model":"a/b","prompt":"x","duration":16}
generation invalid_request:duration {"model":"a/b","prompt":"x","duration":0}
generation invalid_request:duration {"model":"a/b","prompt":"x","duration":-3}
generation invalid_request:duration {"model":"a/b","prompt":"x","duration":7.5}
generation invalid_request:duration {"model":"a/b","prompt":"x","duration":"eight"}
generation invalid_request:duration {"model":"a/b","prompt":"x","seconds":"20"}
generation ok {"model":"a/b","prompt":"x","seconds":"20","duration":5}
generation stateful_not_supported:output {"model":"a/b","prompt":"x","output":{"upload_url":"x"}}
generation stateful_not_supported:storage_options {"model":"a/b","prompt":"x","storage_options":{}}
generation stateful_not_supported:store {"model":"a/b","prompt":"x","store":true}
generation stateful_not_supported:background {"model":"a/b","prompt":"x","background":true}
edit stateful_not_supported:deferred {"model":"a/b","prompt":"x","video":{"url":"https://x"},"deferred":true}
generation ok {"model":"a/b","prompt":"x","store":false,"background":null}
generation ok {"model":"a/b","prompt":"x","size":null}
generation unsupported_parameter:size {"model":"a/b","prompt":"x","size":"1280x720"}
edit unsupported_parameter:size {"model":"a/b","prompt":"x","video":{"url":"https://x"},"size":"1280x720"}
extension unsupported_parameter:size {"model":"a/b","prompt":"x","video":{"url":"https://x"},"size":7}
generation routing_not_supported:provider {"model":"a/b","prompt":"x","provider":"p"}
generation service_tier_not_supported:service_tier {"model":"a/b","prompt":"x","service_tier":"priority"}
edit ok {"model":"a/b","prompt":"x","video":{"url":"https://x"}}
edit invalid_request:prompt {"model":"a/b","video":{"url":"https://x"}}
edit invalid_request:video {"model":"a/b","prompt":"x"}
edit unsupported_parameter:duration {"model":"a/b","prompt":"x","video":{"url":"https://x"},"duration":5}
extension ok {"model":"a/b","prompt":"x","video":{"url":"data:video/mp4;base64,AA"},"duration":2}
extension invalid_request:duration {"model":"a/b","prompt":"x","video":{"file_id":"f"},"duration":11}
extension unsupported_parameter:resolution {"model":"a/b","prompt":"x","video":{"file_id":"f"},"resolution":"720p"}
"#;

#[test]
fn every_rule_has_its_refusal() {
    for case in CASES.lines().filter(|case| !case.is_empty()) {
        let (operation, rest) = case.split_once(' ').unwrap();
        let (expected, body) = rest.split_once(' ').unwrap();
        let operation = match operation {
            "generation" => Operation::Generation,
            "edit" => Operation::Edit,
            _ => Operation::Extension,
        };
        assert_eq!(verdict(operation, body), expected, "{case}");
    }
}

#[test]
fn a_mode_that_the_model_lacks_is_refused() {
    let body = Bytes::from_static(br#"{"model":"a/b","prompt":"x","video":{"url":"https://x"}}"#);
    let request = read_request(&body, Operation::Edit).unwrap();
    let profile = Profile {
        modes: Some(AllowedValues::Words(vec!["text".to_owned()])),
        ..profile()
    };
    let failure = request.check_profile(&profile).unwrap_err();
    assert_eq!(failure.code.as_str(), "model_not_supported");
}

#[test]
fn an_upstream_gets_its_own_model_and_nothing_of_ours() {
    let body = br#"{ "prompt":"a \"b\"", "seconds":"9","callback_url":"https://c","user":null,"generate_audio" : true,"model":"a/b"}"#;
    let request = read_request(&Bytes::from_static(body), Operation::Generation).unwrap();
    let written = request.write_for("up-1").unwrap().concat();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        r#"{"model":"up-1","duration":9,"prompt":"a \"b\"","generate_audio":true}"#
    );
    assert_eq!(request.callback_url.as_deref(), Some("https://c"));
    assert_eq!(
        (request.seconds_max(&profile()), request.resolution()),
        (9, Some("480p"))
    );
}

#[test]
fn an_edit_is_held_at_the_longest_source() {
    let body = Bytes::from_static(br#"{"model":"a/b","prompt":"x","video":{"file_id":"f"}}"#);
    let edit = read_request(&body, Operation::Edit).unwrap();
    assert_eq!((edit.seconds_max(&profile()), edit.resolution()), (9, None));
    let extension = read_request(&body, Operation::Extension).unwrap();
    assert_eq!(extension.seconds_max(&profile()), 6);
}
