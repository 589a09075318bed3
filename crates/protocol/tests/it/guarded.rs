//! Guarded names and values are compared after decoding, so that escapes cannot hide them.

use proptest::prelude::*;
use protocol::native;
use protocol::{Dialect, Failure, Tool};

use crate::bodies::same_decisions;

/// Members that a client must not set or that affect its bill, in each place where they can occur.
const GUARDED: [&str; 51] = [
    r#""provider":{"order":["x"]}"#,
    r#""routing":"x""#,
    r#""route":"fallback""#,
    r#""routes":[1]"#,
    r#""models":["a"]"#,
    r#""fallbacks":["a"]"#,
    r#""service_tier":"flex""#,
    r#""service_tier":"priority""#,
    r#""serviceTier":"priority""#,
    r#""speed":"fast""#,
    r#""inference_geo":"us""#,
    r#""providerOptions":{"gateway":{"models":["a"]}}"#,
    r#""preset":"p""#,
    r#""plugins":[{"id":"web"}]"#,
    r#""enable_search":true"#,
    r#""generationConfig":{"routingConfig":{"manualMode":{"modelName":"m"}}}"#,
    r#""store":true"#,
    r#""background":true"#,
    r#""deferred":true"#,
    r#""thread":{"id":"t"}"#,
    r#""conversation":"c""#,
    r#""previous_response_id":"r""#,
    r#""previous_interaction_id":"i""#,
    r#""agent":"deep""#,
    r#""environment":"e""#,
    r#""webhook_config":{}"#,
    r#""generationOutputConfig":{}"#,
    r#""input":[{"type":"item_reference","id":"x"}]"#,
    r#""response_format":{"type":"video"}"#,
    r#""generation_config":{"video_config":{}}"#,
    r#""tools":[{"type":"web_search_20260318"},{"type":"mcp"}]"#,
    r#""tools":[{"googleSearch":{}},{"url_context":{}}]"#,
    r#""tools":[{"type":"advisor_20260301","model":"big"}]"#,
    r#""tools":[{"type":"shell","environment":{"type":"container_auto"}}]"#,
    r#""input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]"#,
    r#""web_search_options":{}"#,
    r#""system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]"#,
    r#""mcp_servers":[{"url":"https://a.example"}]"#,
    r#""generationConfig":{"maxOutputTokens":7,"candidateCount":3}"#,
    r#""max_output_tokens":9,"n":4,"stream":true"#,
    r#""messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]"#,
    r#""prompt":{"id":"pmpt_1"}"#,
    r#""tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]"#,
    r#""tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]"#,
    r#""input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]"#,
    r#""messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]"#,
    r#""contents":[{"parts":[{"fileData":{"fileUri":"files/abc"}}]}]"#,
    r#""tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/a"]}}]"#,
    r#""quality":"high","size":"2K","sequential_image_generation":"auto","n":2"#,
    r#""callback_url":"https://a.example","resolution":"1080p","duration":9"#,
    r#""with_timestamps":true,"stream":true"#,
];

/// A request that every endpoint would accept without `member`. In one dialect `prompt` is a stored template,
/// so it can be left out.
fn request(member: &str, with_prompt: bool) -> String {
    let name = member.split('"').nth(1).unwrap();
    let usual = [
        ("model", r#""maker/public""#),
        ("messages", r#"[{"role":"user","content":"hello"}]"#),
        ("input", r#""hello""#),
        ("contents", r#"[{"parts":[{"text":"hello"}]}]"#),
        ("max_tokens", "5"),
        ("prompt", r#""a cat""#),
        ("text", r#""hello""#),
    ];
    let usual = usual
        .iter()
        .filter(|(usual, _)| *usual != name && (with_prompt || *usual != "prompt"));
    let usual: Vec<_> = usual
        .map(|(name, value)| format!(r#""{name}":{value}"#))
        .collect();
    format!("{{{member},{}}}", usual.join(","))
}

#[test]
fn an_escaped_tool_is_seen() {
    for (dialect, tools) in [
        (Dialect::Chat, r#"[{"type":"web\u005fsearch"}]"#),
        (
            Dialect::Responses,
            r#"[{"t\u0079pe":"web\u005fsearch_preview"}]"#,
        ),
        (
            Dialect::Messages,
            r#"[{"type":"web_search\u005f20260318"}]"#,
        ),
        (Dialect::Interactions, r#"[{"type":"google\u005fsearch"}]"#),
        (Dialect::Generate, r#"[{"google\u0053earch":{}}]"#),
    ] {
        let head = read_head(dialect, tools).unwrap();
        let tools: Vec<_> = head.tools.iter().collect();
        assert_eq!(tools, [Tool::WebSearch], "{dialect}");
    }
}

/// Some upstreams accept one object as a list of one tool. The gateway would neither price nor refuse that
/// tool.
#[test]
fn tools_that_are_not_a_list_are_refused() {
    for dialect in Dialect::ALL {
        for tools in [
            r#"{"google_search":{}}"#,
            r#"{"type":"web_search"}"#,
            r#""web_search""#,
            "{}",
            "true",
        ] {
            let failure = read_head(dialect, tools).unwrap_err();
            assert_eq!(failure.status(), 400, "{dialect} {tools}");
            assert_eq!(failure.param.as_deref(), Some("tools"), "{dialect} {tools}");
            assert_eq!(
                failure.message, "`tools` must be an array.",
                "{dialect} {tools}"
            );
        }
        for tools in ["null", "[]"] {
            assert!(
                read_head(dialect, tools).unwrap().tools.is_empty(),
                "{dialect}"
            );
        }
    }
}

fn read_head(dialect: Dialect, tools: &str) -> Result<native::Head, Failure> {
    let body = bytes::Bytes::from(request(&format!(r#""tools":{tools}"#), false));
    match dialect {
        Dialect::Generate => native::read_named_head(&body, "maker/public", false),
        _ => native::read_head(dialect, &body),
    }
}

proptest! {
    #[test]
    fn escapes_change_no_decision(index in 0..GUARDED.len(), seed in any::<u64>()) {
        for with_prompt in [false, true] {
            same_decisions(&request(GUARDED[index], with_prompt), seed);
        }
    }
}
