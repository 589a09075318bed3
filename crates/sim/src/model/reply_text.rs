//! Creates the text of an answer if the prompt has no command that determines it.

use super::prompt::{Media, MediaKind, Prompt, Source, Turn};
use super::prompt_values::{clipped, find_ignoring_case};
use crate::seed::Seed;

const ECHO_WORDS_MAX: usize = 40;
const RESULT_BYTES_MAX: usize = 2000;
const SUBJECT_WORDS_MAX: usize = 12;
const LINK_BYTES_MAX: usize = 200;

/// Creates a text that depends on the prompt.
pub(super) fn reply_text(prompt: &Prompt, seed: &mut Seed) -> String {
    if let Some(results) = repeat_results(prompt) {
        return results;
    }
    let (question, media) = prompt.question();
    let description = (!media.is_empty()).then(|| describe(media));
    let answer = reply(prompt, question, seed);
    match (description, question.trim().is_empty()) {
        (Some(description), true) => description,
        (Some(description), false) => format!("{description} {answer}"),
        (None, _) => answer,
    }
}

pub(super) fn reasoning_text(prompt: &Prompt, sentences: usize) -> String {
    let (question, _) = prompt.question();
    let subject = echo(question, SUBJECT_WORDS_MAX);
    let thoughts = [
        format!("The user asks: {subject}."),
        "I should look at what is given first.".to_owned(),
        format!(
            "There are {} turns and {} tools to consider.",
            prompt.turns.len(),
            prompt.tools.len()
        ),
        "A short and direct answer fits best.".to_owned(),
        "I check once more that nothing was overlooked.".to_owned(),
    ];
    let thoughts: Vec<_> = thoughts
        .iter()
        .map(String::as_str)
        .cycle()
        .take(sentences)
        .collect();
    thoughts.join(" ")
}

fn reply(prompt: &Prompt, question: &str, seed: &mut Seed) -> String {
    let asks = |words: &str| find_ignoring_case(clipped(question, 4096), words).is_some();
    if asks("my name") && asks("what") {
        return match name_given(prompt) {
            Some(name) => format!("Your name is {name}."),
            None => "You have not told me your name.".to_owned(),
        };
    }
    if asks("system prompt") || asks("your instructions") {
        return if prompt.system.is_empty() {
            "I have no instructions.".to_owned()
        } else {
            format!("My instructions are: {}", prompt.system.join("\n"))
        };
    }
    if question.trim().is_empty() {
        return "Please tell me more.".to_owned();
    }
    let words = question.split_whitespace().count();
    if words <= 4
        && ["hello", "hi ", "hi!", "hey", "good morning"]
            .iter()
            .any(|word| asks(word))
    {
        return seed
            .pick(&[
                "Hello! How can I help you today?",
                "Hi there! What can I do for you?",
                "Hello! What would you like to know?",
            ])
            .unwrap_or_default()
            .to_owned();
    }
    let opening = seed
        .pick(&[
            "You said:",
            "I understand:",
            "Here is what I read:",
            "Let me see:",
        ])
        .unwrap_or_default();
    format!(
        "{opening} \"{}\". That is {words} word{}, and this is a simulated answer.",
        echo(question, ECHO_WORDS_MAX),
        if words == 1 { "" } else { "s" }
    )
}

/// Repeats the latest tool results, each with the name of its tool.
fn repeat_results(prompt: &Prompt) -> Option<String> {
    let since = prompt.since_question();
    if !matches!(since.last(), Some(Turn::Result { .. })) {
        return None;
    }
    let sentence: Vec<_> = since
        .iter()
        .filter_map(|turn| match turn {
            Turn::Result {
                call_id,
                text,
                media,
                failed,
            } => {
                let name = tool_of(since, call_id).unwrap_or("tool");
                let text = clipped(text.trim(), RESULT_BYTES_MAX);
                let sentence = match (failed, text.is_empty() && !media.is_empty()) {
                    (true, _) => format!("The {name} call failed: {text}."),
                    (false, true) => format!("The {name} result is this:"),
                    (false, false) => format!("The {name} result is {text}."),
                };
                let seen = (!media.is_empty()).then(|| describe(media));
                Some(
                    std::iter::once(sentence)
                        .chain(seen)
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            }
            _ => None,
        })
        .collect();
    Some(sentence.join(" "))
}

fn tool_of<'a>(turns: &'a [Turn], call_id: &str) -> Option<&'a str> {
    turns.iter().rev().find_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls
            .iter()
            .find(|call| call.id == call_id)
            .map(|call| call.name.as_str()),
        _ => None,
    })
}

fn name_given(prompt: &Prompt) -> Option<&str> {
    prompt.turns.iter().rev().find_map(|turn| {
        let Turn::User { text, .. } = turn else {
            return None;
        };
        let lead = "my name is ";
        let start = find_ignoring_case(text, lead)? + lead.len();
        let name = text.get(start..)?.split_whitespace().next()?;
        Some(name.trim_end_matches(['.', ',', '!', '?']))
    })
}

fn describe(media: &[Media]) -> String {
    let described: Vec<_> = media.iter().map(describe_one).collect();
    format!("I received {}.", described.join(", and "))
}

fn describe_one(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Sound => "sound",
        MediaKind::File => "file",
    };
    match &media.source {
        Source::Link(url) => format!("one {kind} at {}", clipped(url, LINK_BYTES_MAX)),
        Source::Inline {
            format,
            bytes,
            pixels,
        } => {
            let size = pixels.map_or_else(String::new, |(w, h)| format!("{w}x{h} "));
            format!("one {size}{format} {kind} of {bytes} bytes")
        }
    }
}

/// The first words of a text, on one line.
fn echo(text: &str, words_max: usize) -> String {
    let mut words: Vec<_> = text.split_whitespace().take(words_max + 1).collect();
    if words.len() > words_max {
        words.truncate(words_max);
        words.push("…");
    }
    let line = words.join(" ");
    clipped(&line, RESULT_BYTES_MAX)
        .trim_end_matches(['.', '!', '?'])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::prompt::PastCall;
    use super::*;

    fn user(text: &str, media: Vec<Media>) -> Turn {
        Turn::User {
            text: text.to_owned(),
            media,
        }
    }

    fn answer_to(turns: Vec<Turn>) -> String {
        let prompt = Prompt {
            turns,
            system: vec!["Be kind.".to_owned()],
            ..Prompt::default()
        };
        reply_text(&prompt, &mut Seed::new(1))
    }

    #[test]
    fn the_answer_depends_on_the_prompt() {
        for (question, part) in [
            ("Hello!", "?"),
            (
                "Where do rivers go?",
                "\"Where do rivers go\". That is 4 words",
            ),
            ("What are your instructions?", "Be kind."),
            ("What is my name?", "You have not told me"),
            ("", "tell me more"),
        ] {
            let answer = answer_to(vec![user(question, vec![])]);
            assert!(answer.contains(part), "{question}: {answer}");
        }
    }

    #[test]
    fn earlier_turns_are_remembered() {
        let turns = vec![
            user("My name is Ada.", vec![]),
            user("What is my name?", vec![]),
        ];
        assert_eq!(answer_to(turns), "Your name is Ada.");
    }

    #[test]
    fn media_are_described() {
        let image = Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                format: "PNG".to_owned(),
                bytes: 68,
                pixels: Some((1, 1)),
            },
            low_detail: false,
        };
        let linked = Media {
            source: Source::Link("https://example.com/a.png".to_owned()),
            ..image.clone()
        };
        assert_eq!(
            answer_to(vec![user("", vec![image, linked])]),
            "I received one 1x1 PNG image of 68 bytes, and one image at https://example.com/a.png."
        );
    }

    #[test]
    fn results_are_told_by_the_name_of_their_tool() {
        let mut turns = vec![
            user("What is the weather?", vec![]),
            Turn::Assistant {
                text: String::new(),
                calls: vec![PastCall {
                    id: "c1".to_owned(),
                    name: "get_weather".to_owned(),
                    arguments: "{}".to_owned(),
                }],
            },
            Turn::Result {
                call_id: "c1".to_owned(),
                text: "18 degrees".to_owned(),
                media: vec![],
                failed: false,
            },
        ];
        assert_eq!(
            answer_to(turns.clone()),
            "The get_weather result is 18 degrees."
        );
        if let Some(Turn::Result { failed, .. }) = turns.last_mut() {
            *failed = true;
        }
        assert_eq!(answer_to(turns), "The get_weather call failed: 18 degrees.");
    }
}
