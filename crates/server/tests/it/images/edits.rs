//! Image edits for every model family, and the limits of uploads.

use serde_json::{Value, json};
use sim::raster::Raster;

use super::generations::{gateway, picture_of};
use crate::harness::pictures::{base64, form, png};
use crate::harness::{Connection, Key, Request};

pub(super) fn edit(key: &Key, body: &Value) -> Request {
    Request::post("/v1/images/edits")
        .json(body)
        .bearer(&key.secret)
}

#[tokio::test]
async fn an_edit_changes_the_picture_inside_its_mask_alone() {
    let (gateway, key) = gateway().await;
    let source = png(64, 48, [1, 2, 3, 255]);
    let mut mask = Raster::filled(64, 48, [0, 0, 0, 255]);
    for y in 0..48 {
        for x in 0..32 {
            mask.set_pixel(x, y, [0; 4]);
        }
    }
    let mask = crate::harness::pictures::encoded(&mask);
    let uri = |bytes: &[u8]| format!("data:image/png;base64,{}", base64(bytes));
    let json = json!({ "model": "maker/gpt", "prompt": "a yellow star", "n": 1,
                       "image": { "type": "image_url", "url": uri(&source) },
                       "mask": { "image_url": uri(&mask) } });
    let (content_type, body) = form(
        &[
            ("model", "maker/gpt"),
            ("prompt", "a yellow star"),
            ("n", "1"),
        ],
        &[("image", &source), ("mask", &mask)],
    );
    let multipart = Request::post("/v1/images/edits")
        .bearer(&key.secret)
        .header("content-type", &content_type)
        .body(body);
    for request in [edit(&key, &json), multipart] {
        let picture = picture_of(&gateway.send(&request).await.ok());
        assert_eq!(picture.dimensions(), (64, 48));
        assert_ne!(picture.pixel(2, 2), [1, 2, 3, 255]);
        assert_eq!(picture.pixel(60, 40), [1, 2, 3, 255]);
    }
    gateway.verify().await;
}

/// Several files, unknown parts, file references, and the form in which each family takes pictures.
#[tokio::test]
async fn edits_reach_each_family_in_its_own_form() {
    let (gateway, key) = gateway().await;
    let one = png(32, 32, [200, 0, 0, 255]);
    let two = png(32, 32, [0, 200, 0, 255]);
    let uri = |bytes: &[u8]| format!("data:image/png;base64,{}", base64(bytes));
    for (model, path, dropped) in [
        ("maker/gpt", "/v1/images/edits", Some("response_format")),
        ("maker/video-a", "/v1/images/edits", None),
        ("maker/content", "/v1/images/generations", None),
    ] {
        let (content_type, body) = form(
            &[
                ("model", model),
                ("prompt", "a yellow star"),
                ("x_unknown", "kept"),
                ("response_format", "b64_json"),
            ],
            &[("image[]", &one), ("image[]", &two)],
        );
        let request = Request::post("/v1/images/edits")
            .bearer(&key.secret)
            .header("content-type", &content_type)
            .body(body);
        let answer = gateway.send(&request).await.ok();
        assert_eq!(answer.header("x-dropped-params"), dropped, "{model}");
        assert!(picture_of(&answer).dimensions().0 >= 32);
        let call = gateway.sim.calls().pop().unwrap();
        assert_eq!(call.path, path);
        let sent = String::from_utf8_lossy(&call.body);
        assert!(
            sent.contains("x_unknown") && sent.contains("kept"),
            "{model}"
        );
        assert!(!sent.contains("maker/"), "{model}");

        let items = json!([{ "type": "image_url", "url": uri(&one) }, { "image_url": uri(&two) }]);
        let body = json!({ "model": model, "prompt": "a yellow star", "images": items });
        let answer = gateway.send(&edit(&key, &body)).await.ok();
        assert!(!answer.json()["data"].as_array().unwrap().is_empty());
        assert_eq!(gateway.sim.calls().pop().unwrap().path, path);
    }
    let file = json!({ "model": "maker/content", "prompt": "x", "image": { "file_id": "file-1" } });
    let refused = gateway.send(&edit(&key, &file)).await;
    assert_eq!(refused.failure(), (400, "unsupported_parameter".to_owned()));
    gateway.verify().await;
}

#[tokio::test]
async fn an_edit_without_what_it_needs_is_refused() {
    let (gateway, key) = gateway().await;
    for body in [
        json!({ "model": "maker/gpt", "prompt": "x" }),
        json!({ "model": "maker/gpt", "prompt": "x", "images": [] }),
        json!({ "model": "maker/gpt", "prompt": "x", "images": { "image_url": "https://a/b.png" } }),
        json!({ "model": "maker/content", "prompt": "x", "images": "https://a/b.png" }),
        json!({ "model": "maker/gpt", "prompt": "x", "image": {} }),
        json!({ "model": "maker/gpt", "image": { "url": "https://a/b.png" } }),
        json!({ "prompt": "x", "image": { "url": "https://a/b.png" } }),
    ] {
        let refused = gateway.send(&edit(&key, &body)).await;
        assert_eq!(
            refused.failure(),
            (400, "invalid_request".to_owned()),
            "{body}"
        );
    }
    let source = png(8, 8, [0, 0, 0, 255]);
    let twice = [
        ("model", "maker/gpt"),
        ("model", "maker/tiered"),
        ("prompt", "x"),
    ];
    for fields in [
        &[("model", "maker/gpt")][..],
        &[("prompt", "x")],
        &twice,
        &[("model", "maker/gpt"), ("prompt", "x"), ("n", "many")],
        &[("model", "maker/gpt"), ("prompt", "x"), ("route", "1")],
        &[("model", "maker/gpt"), ("prompt", "x"), ("quality", "hd")],
    ] {
        let (content_type, body) = form(fields, &[("image", &source)]);
        let request = Request::post("/v1/images/edits")
            .bearer(&key.secret)
            .header("content-type", &content_type)
            .body(body);
        let refused = gateway.send(&request).await;
        assert_eq!(refused.status(), 400, "{fields:?}");
        refused.openai_error();
    }
    // Of the `multipart` types, only `form-data` is a form.
    let (content_type, body) = form(
        &[("model", "maker/gpt"), ("prompt", "x")],
        &[("image", &source)],
    );
    let mixed = content_type.replace("form-data", "mixed");
    let request = Request::post("/v1/images/edits")
        .bearer(&key.secret)
        .header("content-type", &mixed)
        .body(body);
    let refused = gateway.send(&request).await;
    assert_eq!(
        refused.failure(),
        (415, "unsupported_media_type".to_owned())
    );
    let (content_type, mut body) = form(
        &[("model", "maker/gpt"), ("prompt", "x")],
        &[("image", &source)],
    );
    body.truncate(body.len() - 10);
    let cut = Request::post("/v1/images/edits")
        .bearer(&key.secret)
        .header("content-type", &content_type)
        .body(body.clone());
    let refused = gateway.send(&cut).await;
    assert_eq!(refused.failure(), (400, "invalid_request".to_owned()));
    let elsewhere = Request::post("/v1/images/generations")
        .bearer(&key.secret)
        .header("content-type", &content_type)
        .body(body);
    assert_eq!(gateway.send(&elsewhere).await.failure().0, 415);
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.usage(&key).await, 0);
}

/// An upload that is too large is refused by its announced length, before it is read.
#[tokio::test]
async fn an_upload_above_the_limit_is_not_read() {
    let (gateway, key) = gateway().await;
    for target in ["/v1/images/edits", "/v1/images/generations"] {
        let mut connection = Connection::open(gateway.address()).await;
        let head = format!(
            "POST {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{{",
            key.secret,
            101 << 20
        );
        connection.write(head.as_bytes()).await;
        let answer = connection.answer().await;
        assert_eq!(answer.failure(), (413, "request_too_large".to_owned()));
    }
}

/// An upload of 95 MiB is held in memory once: the peak grows by less than one and a half times its size.
#[tokio::test]
async fn a_large_upload_is_held_once() {
    let (gateway, key) = gateway().await;
    let source = crate::harness::pictures::padded_png(32, 32, 95 << 20);
    let (content_type, body) = form(
        &[
            ("model", "maker/gpt"),
            ("prompt", "a yellow star"),
            ("size", "64x64"),
        ],
        &[("image", &source)],
    );
    drop(source);
    let bytes = body.len();
    let before = crate::harness::pictures::peak_memory(gateway.pid());
    let request = Request::post("/v1/images/edits")
        .bearer(&key.secret)
        .header("content-type", &content_type)
        .body(body);
    let answer = gateway.send(&request).await.ok();
    assert_eq!(picture_of(&answer).dimensions(), (64, 64));
    let grown = crate::harness::pictures::peak_memory(gateway.pid()) - before;
    assert!(grown < bytes / 2 * 3, "{grown} for {bytes}");
}
