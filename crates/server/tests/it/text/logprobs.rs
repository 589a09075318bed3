//! Log probabilities between the dialects that support them.

use serde_json::{Value, json};

use crate::harness::{Dialect, GatewayBuilder, with};

const DIALECTS: [Dialect; 3] = [Dialect::Chat, Dialect::Responses, Dialect::Generate];

/// The text of an answer, the concatenation of its tokens, and the number of alternatives of each token.
fn text_and_tokens(dialect: Dialect, answer: &Value) -> (String, String, Vec<usize>) {
    let list = |value: &Value| value.as_array().cloned().unwrap();
    let (text, tokens, tops) = match dialect {
        Dialect::Chat => {
            let choice = &answer["choices"][0];
            let tokens = list(&choice["logprobs"]["content"]);
            let tops = tokens.iter().map(|it| list(&it["top_logprobs"])).collect();
            (choice["message"]["content"].clone(), tokens, tops)
        }
        Dialect::Responses => {
            let output = list(&answer["output"]);
            let message = output.iter().find(|it| it["type"] == "message").unwrap();
            let part = &message["content"][0];
            let tokens = list(&part["logprobs"]);
            let tops = tokens.iter().map(|it| list(&it["top_logprobs"])).collect();
            (part["text"].clone(), tokens, tops)
        }
        _ => {
            let candidate = &answer["candidates"][0];
            let parts = list(&candidate["content"]["parts"]);
            let said = parts.iter().find(|part| part["thought"] != true).unwrap();
            let result = &candidate["logprobsResult"];
            let tops = list(&result["topCandidates"]);
            let tops: Vec<_> = tops.iter().map(|it| list(&it["candidates"])).collect();
            (
                said["text"].clone(),
                list(&result["chosenCandidates"]),
                tops,
            )
        }
    };
    let tokens: String = tokens
        .iter()
        .map(|it| it["token"].as_str().unwrap())
        .collect();
    let tops = tops.iter().map(Vec::len).collect();
    (text.as_str().unwrap().to_owned(), tokens, tops)
}

#[tokio::test]
async fn a_caller_is_told_how_likely_each_token_was() {
    for upstream in DIALECTS {
        let entries = format!(
            "[[channel]]
            name = \"only\"
            preset = \"sim\"
            base_url = \"http://SIM/v1\"
            protocols = [\"{}\"]
            [[model]]
            id = \"maker/sure\"
            kind = \"text\"
            routes = [{{ channel = \"only\", model = \"sim-chat\" }}]
            price = {{ input = \"1\", output = \"2\" }}
            profile = {{ max_output_tokens = 128000, reasoning = false }}",
            upstream.name()
        );
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        for caller in DIALECTS {
            let wish = match caller {
                Dialect::Chat => json!({ "logprobs": true, "top_logprobs": 2 }),
                Dialect::Responses => {
                    json!({ "include": ["message.output_text.logprobs"], "top_logprobs": 2 })
                }
                _ => json!({ "generationConfig": { "responseLogprobs": true, "logprobs": 2 } }),
            };
            let body = with(caller.ask("Say hello."), &wish);
            let request = caller.call(&key.secret, "maker/sure", body, false);
            let answer = gateway.send(&request).await.ok();
            assert_eq!(answer.header("x-dropped-params"), None);
            let (text, tokens, tops) = text_and_tokens(caller, &answer.json());
            assert_eq!(text, tokens, "{caller:?} to {upstream:?}");
            assert!(!tops.is_empty(), "{caller:?} to {upstream:?}");
            assert!(
                tops.iter().all(|top| *top == 2),
                "{caller:?} to {upstream:?}"
            );
        }
    }
}
