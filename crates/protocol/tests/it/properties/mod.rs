//! Properties that hold for every pair of dialects.

mod continuity;
mod converse;
mod emptied;
mod gaps;
mod logprobs;
mod native_gaps;
mod page;
mod paths;
mod refused;
mod requests;
mod streams;
mod whole_answers;

use std::sync::Arc;

use protocol::canon::{AnswerContext, Event, Reasoning, Request, Response};
use protocol::{ByteQueue, Dialect, chat, generate, interactions, messages, responses};

/// All pairs, including a dialect with itself: a property of two dialects must hold there too.
fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    let to_all = |from| Dialect::ALL.into_iter().map(move |to| (from, to));
    Dialect::ALL.into_iter().flat_map(to_all)
}

/// The text that a Responses client receives if the upstream refuses without a text.
const REFUSED: &str = "The model refused to answer.";

const MODEL: &str = "maker/m";

fn id_prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "chatcmpl_",
        Dialect::Responses => "resp_",
        Dialect::Messages => "msg_",
        Dialect::Generate => "gen_",
        Dialect::Interactions => "int_",
    }
}

/// A client that wants to see everything.
fn context(dialect: Dialect, name: &str, model: &str) -> AnswerContext {
    AnswerContext {
        id: format!("{}{name}", id_prefix(dialect)).into(),
        model: model.into(),
        created: 1_760_000_000,
        input_tokens: 40,
        request: Arc::new(Request {
            include_usage: true,
            reasoning: Some(Reasoning {
                show: true,
                ..Reasoning::default()
            }),
            ..Request::default()
        }),
    }
}

fn upstream_stream(dialect: Dialect, events: &[Event]) -> Vec<u8> {
    let context = context(dialect, "theirs", "up-2026");
    let mut out = ByteQueue::new();
    macro_rules! write {
        ($dialect:ident) => {{
            let mut writer = $dialect::Writer::new(context);
            for event in events {
                writer.event(event.clone(), &mut out);
            }
        }};
    }
    match dialect {
        Dialect::Chat => write!(chat),
        Dialect::Responses => write!(responses),
        Dialect::Generate => write!(generate),
        Dialect::Interactions => write!(interactions),
        Dialect::Messages => write!(messages),
    }
    out.into_bytes().to_vec()
}

fn upstream_answer(dialect: Dialect, response: &Response) -> Vec<u8> {
    let context = context(dialect, "theirs", "up-2026");
    match dialect {
        Dialect::Chat => chat::write_response(response, &context),
        Dialect::Responses => responses::write_response(response, &context),
        Dialect::Generate => generate::write_response(response, &context),
        Dialect::Interactions => interactions::write_response(response, &context),
        Dialect::Messages => messages::write_response(response, &context),
    }
}
