use engine::{EmbeddingsPath, TextPath, VideoEndpoint, VoiceForm};
use http::Method;
use protocol::images::Operation as ImageOperation;
use protocol::video::video_a::Operation;
use protocol::{Dialect, Family};
use store::{MediaId, MediaName, MediaType};

use super::{Endpoint, MediaPath, Target};

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn paths_name_their_endpoint_and_family() {
    let model = |id: &str| Endpoint::Model(id.to_owned());
    let task = || Endpoint::Task("018f0000-0000-7000-8000-00000000000a".to_owned());
    let film = Endpoint::Media(
        MediaPath::Download,
        Some(MediaName {
            id: MediaId::parse("0123456789abcdefghijklmnopqrstuv").unwrap(),
            kind: MediaType::Mp4,
        }),
    );
    let named = |id: &str, stream: bool| {
        Endpoint::Named(TextPath {
            model: id.to_owned(),
            stream,
        })
    };
    let table = [
        (
            "POST",
            "/v1/chat/completions",
            Endpoint::Text(Dialect::Chat),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/chat/completions",
            Endpoint::Unknown,
            Family::OpenAi,
        ),
        ("GET", "/v1/models", Endpoint::Models, Family::OpenAi),
        ("HEAD", "/v1/models", Endpoint::Models, Family::OpenAi),
        (
            "HEAD",
            "/v1beta/models/a:b",
            Endpoint::GoogleModel("a:b".into()),
            Family::Google,
        ),
        (
            "HEAD",
            "/v1/models/maker/m:free",
            model("maker/m:free"),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/models/maker/m",
            model("maker/m"),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/models/maker/m:free",
            model("maker/m:free"),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/models/maker%2Fm",
            model("maker/m"),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/models/maker%252Fm",
            model("maker%2Fm"),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/models/maker%2",
            Endpoint::Unknown,
            Family::OpenAi,
        ),
        ("GET", "/v1/models/%ff", Endpoint::Unknown, Family::OpenAi),
        ("GET", "/v1/models/", Endpoint::Unknown, Family::OpenAi),
        (
            "GET",
            "/v1beta/models",
            Endpoint::GoogleModels,
            Family::Google,
        ),
        (
            "GET",
            "/v1beta/models/a/b",
            Endpoint::GoogleModel("a/b".into()),
            Family::Google,
        ),
        ("GET", "/v1/balance", Endpoint::Balance, Family::OpenAi),
        (
            "POST",
            "/v1/messages/count_tokens",
            Endpoint::TokenCount(Dialect::Messages),
            Family::Messages,
        ),
        (
            "POST",
            "/v1/responses/input_tokens",
            Endpoint::TokenCount(Dialect::Responses),
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/responses/compact",
            Endpoint::Unknown,
            Family::OpenAi,
        ),
        ("POST", "/v1/messagesx", Endpoint::Unknown, Family::OpenAi),
        (
            "POST",
            "/v1/models/a/b:countTokens",
            Endpoint::NamedTokenCount("a/b".to_owned()),
            Family::Google,
        ),
        (
            "POST",
            "/upload/v1beta/files",
            Endpoint::Unknown,
            Family::Google,
        ),
        (
            "POST",
            "/v1/interactions",
            Endpoint::Text(Dialect::Interactions),
            Family::Interactions,
        ),
        (
            "POST",
            "/v1/models/a/b:streamGenerateContent",
            named("a/b", true),
            Family::Google,
        ),
        (
            "POST",
            "/v1beta/models/a%2Fb:generateContent",
            named("a/b", false),
            Family::Google,
        ),
        (
            "POST",
            "/v1beta/a/b:generateContent",
            named("a/b", false),
            Family::Google,
        ),
        (
            "POST",
            "/v1beta/models/:generateContent",
            Endpoint::Unknown,
            Family::Google,
        ),
        (
            "POST",
            "/v1/images/edits",
            Endpoint::Images(ImageOperation::Edit),
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/embeddings",
            Endpoint::Embeddings,
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/models/a/b:batchEmbedContents",
            Endpoint::Contents(EmbeddingsPath {
                model: "a/b".to_owned(),
                batch: true,
            }),
            Family::Google,
        ),
        (
            "POST",
            "/v1/tts",
            Endpoint::Speech(VoiceForm::Own),
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/audio/speech",
            Endpoint::Speech(VoiceForm::Renamed),
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/contents/generations/tasks",
            Endpoint::Video(VideoEndpoint::ContentTask),
            Family::OpenAi,
        ),
        (
            "POST",
            "/api/v3/contents/generations/tasks",
            Endpoint::Video(VideoEndpoint::ContentTask),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/contents/generations/tasks",
            Endpoint::ContentTasks,
            Family::OpenAi,
        ),
        (
            "DELETE",
            "/v1/contents/generations/tasks/7",
            Endpoint::TaskDeletion("7".to_owned()),
            Family::OpenAi,
        ),
        ("DELETE", "/v1/tasks/7", Endpoint::Unknown, Family::OpenAi),
        (
            "GET",
            "/v1/contents/generations/tasks/7",
            Endpoint::Task("7".to_owned()),
            Family::OpenAi,
        ),
        (
            "POST",
            "/v1/videos/edits",
            Endpoint::Video(VideoEndpoint::VideoA(Operation::Edit)),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/tts/voices",
            Endpoint::Voices(None),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/tasks/abc",
            Endpoint::Task("abc".to_owned()),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/tts/voices/a%2Fb",
            Endpoint::Voices(Some("a/b".to_owned())),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/tts/voices/..",
            Endpoint::Voices(Some("..".to_owned())),
            Family::OpenAi,
        ),
        (
            "GET",
            "/v1/videos/abc",
            Endpoint::Task("abc".to_owned()),
            Family::OpenAi,
        ),
        ("POST", "/v1/tasks/abc", Endpoint::Unknown, Family::OpenAi),
        (
            "POST",
            "/v1/models/a/b:predictLongRunning",
            Endpoint::Video(VideoEndpoint::Predict("a/b".to_owned())),
            Family::Google,
        ),
        (
            "GET",
            "/v1beta/018f0000-0000-7000-8000-00000000000a",
            task(),
            Family::Google,
        ),
        (
            "GET",
            "/v1/018f0000-0000-7000-8000-00000000000a",
            task(),
            Family::Google,
        ),
        (
            "GET",
            "/v1beta/operations/018f0000-0000-7000-8000-00000000000a",
            task(),
            Family::Google,
        ),
        (
            "GET",
            "/v1/models/a/b/operations/018f0000-0000-7000-8000-00000000000a",
            task(),
            Family::Google,
        ),
        (
            "GET",
            "/v1beta/interactions/018f0000-0000-7000-8000-00000000000a",
            task(),
            Family::Interactions,
        ),
        (
            "GET",
            "/v1/files/0123456789abcdefghijklmnopqrstuv:download",
            film.clone(),
            Family::Google,
        ),
        (
            "HEAD",
            "/v1beta/files/0123456789abcdefghijklmnopqrstuv:download",
            film,
            Family::Google,
        ),
        (
            "GET",
            "/v1/files/0123456789abcdefghijklmnopqrstuv",
            Endpoint::Unknown,
            Family::OpenAi,
        ),
        ("GET", "/v1/nothing", Endpoint::Unknown, Family::OpenAi),
        ("GET", "/v1beta/nothing", Endpoint::Unknown, Family::Google),
        ("GET", "/", Endpoint::Page, Family::OpenAi),
        ("HEAD", "/", Endpoint::Page, Family::OpenAi),
        ("POST", "/", Endpoint::Unknown, Family::OpenAi),
        (
            "GET",
            "/page/0123/app.js",
            Endpoint::PageFile("0123/app.js".to_owned()),
            Family::OpenAi,
        ),
        ("GET", "/page", Endpoint::Unknown, Family::OpenAi),
        ("GET", "/pages", Endpoint::Unknown, Family::OpenAi),
        ("GET", "/openapi.json", Endpoint::OpenApi, Family::OpenAi),
    ];
    for (method, path, endpoint, family) in table {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        assert_eq!(
            Target::find(&method, path, true),
            Target { endpoint, family },
            "{path}"
        );
    }
}

#[test]
fn aliases_can_be_switched_off() {
    let id = "0123456789abcdefghijklmnopqrstuv";
    let target = format!("/v1/files/{id}:download");
    let found = Target::find(&Method::GET, &target, false);
    assert_eq!(found.endpoint, Endpoint::Unknown);
    for path in [
        "/v1/audio/speech",
        "/v1/interactions",
        "/v1beta/a/b:generateContent",
        "/v1beta/models/a/b:embedContent",
        "/v1/messages/count_tokens",
        "/v1/responses/input_tokens",
        "/v1/models/a/b:countTokens",
    ] {
        let found = Target::find(&Method::POST, path, false);
        assert_eq!(found.endpoint, Endpoint::Unknown, "{path}");
    }
}

/// Every `METHOD /path` in `docs/api` is served. `scripts/docs.py` checks that every path of the
/// router is documented.
#[test]
fn documented_paths_are_served() {
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api");
    let mut documented = 0;
    for page in std::fs::read_dir(pages).unwrap() {
        let page = page.unwrap().path();
        // The admin listener serves the admin API.
        if page.ends_with("admin.md") {
            continue;
        }
        let text = std::fs::read_to_string(page).unwrap();
        for code in text.split('`').skip(1).step_by(2) {
            let Some((method, path)) = code.split_once(" /") else {
                continue;
            };
            if !["GET", "POST", "DELETE"].contains(&method) {
                continue;
            }
            let path = format!("/{path}")
                .replace("{model}", "maker/m")
                .replace("{voice_id}", "eve")
                .replace("{id}", "018f0000-0000-7000-8000-00000000000a");
            let found = Target::find(&method.parse().unwrap(), &path, true);
            assert_ne!(found.endpoint, Endpoint::Unknown, "{code}");
            documented += 1;
        }
    }
    assert!(documented > 40, "{documented}");
}
