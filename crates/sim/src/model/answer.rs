//! Creates the model's output for a prompt.

use super::limit::UnlimitedOutput;
use super::output::{ChunkedText, Output};
use super::prompt::{Effort, Prompt, TextFormat};
use super::prompt_values::{PromptValues, find_ignoring_case};
use super::schema::{Optional, fill};
use super::{citation, command, reply_text, tool_use};
use crate::fault::Script;
use crate::reply::INVALID_UTF8_MARK;
use crate::seed::Seed;

const REFUSAL: &str = "I'm sorry, but I can't help with that request.";

/// Creates the output. `choice` is the index of the choice, if the caller asked for several.
pub(crate) fn respond(prompt: &Prompt, script: &Script, choice: usize) -> Output {
    let (question, _) = prompt.question();
    let seed = [
        question.as_bytes(),
        &prompt.seed.to_le_bytes(),
        &choice.to_le_bytes(),
    ];
    let mut seed = Seed::of(&seed);
    let refused =
        script.text.refuse.is_some() || find_ignoring_case(question, "please refuse").is_some();
    let has_scripted_length = script.text.chunks.is_some() || script.text.bytes.is_some();
    let calls = if refused || has_scripted_length {
        Vec::new()
    } else {
        tool_use::decide(prompt)
    };
    let text = if refused {
        ChunkedText::new(REFUSAL)
    } else if has_scripted_length {
        text_of_scripted_length(script)
    } else if calls.is_empty() {
        ChunkedText::new(answer_text(prompt, &mut seed))
    } else if find_ignoring_case(question, "explain").is_some() {
        ChunkedText::new("Let me look that up for you.")
    } else {
        ChunkedText::default()
    };
    let mut uncut = UnlimitedOutput {
        reasoning: ChunkedText::new(reply_text::reasoning_text(prompt, sentences(prompt.effort))),
        text: if calls.is_empty() {
            with_text_faults(text, script)
        } else {
            text
        },
        refused,
        calls,
        stop: None,
        citation: citation::requested(question).filter(|_| !refused),
    };
    uncut.stop_at(&prompt.stops);
    if script.text.content_filter {
        uncut.filter_half();
    }
    let tokens_max = prompt.tokens_max.filter(|_| !script.text.ignore_limit);
    uncut.finish(tokens_max, script.text.content_filter)
}

fn sentences(effort: Effort) -> usize {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 1,
        Effort::Low => 2,
        Effort::Medium => 4,
        Effort::High => 8,
        Effort::Max => 16,
    }
}

fn answer_text(prompt: &Prompt, seed: &mut Seed) -> String {
    let (question, _) = prompt.question();
    let ordered = command::commanded_text(question);
    match &prompt.text_format {
        TextFormat::Text => ordered.unwrap_or_else(|| reply_text::reply_text(prompt, seed)),
        TextFormat::Json => ordered
            .filter(|text| serde_json::from_str::<serde_json::Value>(text).is_ok())
            .unwrap_or_else(|| {
                let answer = reply_text::reply_text(prompt, seed);
                let words = question.split_whitespace().count();
                serde_json::json!({"answer": answer, "words": words}).to_string()
            }),
        TextFormat::Schema(schema) => {
            fill(schema, Optional::All, &mut PromptValues::new(question)).to_string()
        }
    }
}

/// Creates a text of the length that a script asks for.
fn text_of_scripted_length(script: &Script) -> ChunkedText {
    match (script.text.bytes, script.text.chunks) {
        (Some(bytes), Some(chunks)) => ChunkedText::evenly(command::bytes(bytes), chunks),
        (Some(bytes), None) => ChunkedText::new(command::bytes(bytes)),
        (None, chunks) => ChunkedText::new(command::words(chunks.unwrap_or_default())),
    }
}

/// Adds a mark for invalid UTF-8 and a huge piece, if a script asks for them.
fn with_text_faults(original: ChunkedText, script: &Script) -> ChunkedText {
    let mut text = original.as_str().to_owned();
    if script.text.invalid_utf8 {
        text.push(INVALID_UTF8_MARK);
    }
    match script.text.huge_event_bytes {
        Some(bytes) => {
            let from = text.len();
            text.push_str(&"x".repeat(bytes));
            let to = text.len();
            ChunkedText::with_huge(text, from, to)
        }
        None if script.text.invalid_utf8 => ChunkedText::new(text),
        None => original,
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::Finish;
    use super::super::prompt::Turn;
    use super::*;

    fn asked(question: &str) -> Prompt {
        Prompt {
            turns: vec![Turn::User {
                text: question.to_owned(),
                media: vec![],
            }],
            parallel: true,
            ..Prompt::default()
        }
    }

    fn script(text: &str) -> Script {
        let mut script = Script::default();
        script.apply(text).unwrap();
        script
    }

    #[test]
    fn equal_prompts_give_equal_answers() {
        let prompt = asked("Where do all the rivers go?");
        let honest = Script::default();
        assert_eq!(respond(&prompt, &honest, 0), respond(&prompt, &honest, 0));
        let other = asked("Where do all the birds go?");
        assert_ne!(
            respond(&prompt, &honest, 0).text,
            respond(&other, &honest, 0).text
        );
    }

    #[test]
    fn effort_gives_reasoning_that_counts() {
        let mut prompt = asked("Say exactly: yes");
        prompt.effort = Effort::Medium;
        let output = respond(&prompt, &Script::default(), 0);
        assert!(output.reasoning_tokens > 10);
        assert_eq!(output.tokens, output.reasoning_tokens + 1);
        prompt.tokens_max = Some(output.reasoning_tokens);
        let output = respond(&prompt, &Script::default(), 0);
        assert_eq!((output.text.as_str(), output.finish), ("", Finish::Length));
    }

    #[test]
    fn scripts_steer_the_text() {
        let prompt = asked("Hello");
        let pieces = |text: &str| {
            let output = respond(&prompt, &script(text), 0);
            let mut pieces = output.text.pieces();
            let mut count = 0;
            while pieces.next().is_some() {
                count += 1;
            }
            (output.text.as_str().len(), count)
        };
        assert_eq!(pieces("chunks=100").1, 100);
        assert_eq!(pieces("reply-bytes=1000").0, 1000);
        assert_eq!(pieces("reply-bytes=1000+chunks=10"), (1000, 10));
        assert!(pieces("huge-event=5000").0 > 5000);
        let output = respond(&prompt, &script("refuse"), 0);
        assert!(output.refused);
        let output = respond(&prompt, &script("content-filter"), 0);
        assert_eq!(output.finish, Finish::Filter);
    }

    #[test]
    fn json_is_json() {
        let mut prompt = asked("Give me JSON");
        prompt.text_format = TextFormat::Json;
        let output = respond(&prompt, &Script::default(), 0);
        let value: serde_json::Value = serde_json::from_str(output.text.as_str()).unwrap();
        assert_eq!(value["words"], 3);
        prompt = asked("say exactly: {\"a\":1}");
        prompt.text_format = TextFormat::Json;
        assert_eq!(
            respond(&prompt, &Script::default(), 0).text.as_str(),
            "{\"a\":1}"
        );
    }
}
