//! Tests that videos are held and paid for as they become, if they become more than the members of their request say.

use serde_json::{Value, json};

use super::{content_tasks, omni};
use crate::harness::with;

#[tokio::test]
async fn an_edit_is_paid_for_as_long_as_its_source() {
    let (gateway, key) = omni::builder().funded().await;
    let mut spent = 0;
    for (model, text, resolution, charge) in [
        ("maker/omni", "fog", "4k", 3_000_000),
        ("maker/omni", "[unpriced]", "720p", 1_000_000),
        // 10 x 5,792 tokens at 20 credits per million.
        ("maker/omni-tokens-alone", "fog", "720p", 1_158_400),
        ("maker/omni-tokens-alone", "[unpriced]", "720p", 1_158_400),
    ] {
        let source = json!({ "type": "video", "data": "AAAAIGZ0", "mime_type": "video/mp4" });
        let body = json!({
            "model": model, "input": [{ "type": "text", "text": text }, source],
            "response_format": { "type": "video", "duration": "3s", "resolution": resolution },
        });
        let id = omni::create(&gateway, &key, &body).await;
        let shown = omni::wait_for_end(&gateway, &key, &id).await.json();
        assert_eq!(shown["status"], "completed", "{shown}");
        spent += charge;
        assert_eq!(gateway.usage(&key).await, spent, "{model} {text}");
        assert_eq!(gateway.frozen(&key).await, 0);
    }
    gateway.verify().await;
}

#[tokio::test]
async fn options_in_the_text_of_a_content_task_are_paid_for() {
    let (gateway, key) = content_tasks::builder().funded().await;
    let task = |model: &str, text: &str, members: &Value| {
        let content = [content_tasks::text(text)];
        with(json!({ "model": model, "content": content }), members)
    };
    let mut spent = 0;
    for (model, text, members, charge) in [
        // 1920 x 1088 x 289 / 1024 tokens at 10 credits per million.
        (
            "maker/film-1.5",
            "a boat --rs 1080p",
            json!({ "duration": 12 }),
            5_895_600,
        ),
        // 1280 x 720 x 289 / 1024 tokens.
        ("maker/film-1.5", "a boat --dur 12", json!({}), 2_601_000),
        // 864 x 480 x 121 / 1024 tokens at 5 credits per million, the price of 480p.
        (
            "maker/film",
            "a boat --rs 480p",
            json!({ "duration": 5 }),
            245_025,
        ),
        // This upstream prefers the member.
        (
            "maker/film",
            "a boat --rs 4k",
            json!({ "resolution": "480p", "duration": 5 }),
            245_025,
        ),
    ] {
        let id = content_tasks::create(&gateway, &key, &task(model, text, &members)).await;
        let shown = content_tasks::wait_for_end(&gateway, &key, &id).await;
        let shown = shown.json();
        assert_eq!(shown["status"], "succeeded", "{shown}");
        spent += charge;
        assert_eq!(gateway.usage(&key).await, spent, "{model} {text}");
        assert_eq!(gateway.frozen(&key).await, 0);
    }
    gateway.verify().await;
}
