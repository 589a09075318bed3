//! Writes a whole interaction as the events of a stream. Values are copied as text, not decoded.

use crate::answer_layout::{Events, each_item};
use crate::interactions::answer_layout::END_MARK;
use crate::json::write::Object;
use crate::json::{Raw, RawObject, Shape, write_string};
use crate::unusable_answer::UnusableAnswer;

/// Writes the events that open the interaction, that start, fill and stop each step, and that
/// complete the interaction.
#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), UnusableAnswer> {
    let interaction =
        RawObject::of(answer).ok_or_else(|| UnusableAnswer::malformed("no interaction"))?;
    let status = interaction
        .get("status")
        .map_or("\"completed\"", |it| it.text());
    if ["\"in_progress\"", "\"queued\""].contains(&status) {
        return Err(UnusableAnswer::malformed("the interaction is not complete"));
    }
    named(events, "interaction.created", |it| {
        it.object("interaction", |it| {
            let cut = ["status", "steps", "usage"].map(|name| (name, None));
            interaction.write_to(it, &cut);
            it.text("status", "in_progress");
        });
    })?;
    named(events, "interaction.status_update", |it| {
        // The rewriter inserts our id here.
        it.null("interaction_id").text("status", "in_progress");
    })?;
    let mut steps = Steps { events, count: 0 };
    if let Some(list) = interaction.get("steps") {
        each_item(list, |_, step| {
            let step = RawObject::of(step);
            let step = step.ok_or_else(|| UnusableAnswer::malformed("a step is not an object"))?;
            steps.step(&step)
        })?;
    }
    named(events, "interaction.completed", |it| {
        it.object("interaction", |it| {
            interaction.write_to(it, &["status", "steps"].map(|name| (name, None)));
            it.raw("status", status);
        });
    })?;
    events.end(END_MARK.frame)
}

fn named(
    events: &mut Events<'_>,
    name: &str,
    write: impl FnOnce(&mut Object<'_>),
) -> Result<(), UnusableAnswer> {
    events.named("event_type", name, write)
}

struct Steps<'s, 'e> {
    events: &'s mut Events<'e>,
    /// The number of steps that have stopped, which is the index of the next one.
    count: u64,
}

impl Steps<'_, '_> {
    fn step(&mut self, step: &RawObject<'_>) -> Result<(), UnusableAnswer> {
        if step.is("type", "model_output")
            && let Some(content) = step.filled("content", Shape::Array)
        {
            self.output(step, content)
        } else if step.is("type", "thought") {
            self.thought(step)
        } else if step.is("type", "function_call")
            && let Some(arguments) = step.filled("arguments", Shape::Object)
        {
            self.start(step, &[("arguments", Some("{}"))])?;
            let mut json = Vec::new();
            write_string(&mut json, arguments.text());
            self.delta(|it| {
                it.text("type", "arguments_delta");
                it.value("arguments", |out| out.extend_from_slice(&json));
            })?;
            self.stop()
        } else {
            // Steps of server tools are complete in their start event.
            self.start(step, &[])?;
            self.stop()
        }
    }

    /// Writes an output step. Clients concatenate the texts of a step, but annotations count
    /// positions from the start of their own text. So each further text begins a step of its own.
    fn output(&mut self, step: &RawObject<'_>, content: Raw<'_>) -> Result<(), UnusableAnswer> {
        let cut = [("content", None)];
        self.start(step, &cut)?;
        let mut has_text = false;
        each_item(content, |_, part| {
            let part = RawObject::of(part);
            let part =
                part.ok_or_else(|| UnusableAnswer::malformed("a content is not an object"))?;
            let is_text = part.is("type", "text");
            if is_text && has_text {
                self.stop()?;
                self.start(step, &cut)?;
            }
            has_text |= is_text;
            if !is_text {
                return self.delta(|it| part.write_to(it, &[]));
            }
            self.delta(|it| part.write_to(it, &[("annotations", None)]))?;
            match part.filled("annotations", Shape::Array) {
                Some(annotations) => self.delta(|it| {
                    it.text("type", "text_annotation_delta");
                    it.raw("annotations", annotations.text());
                }),
                None => Ok(()),
            }
        })?;
        self.stop()
    }

    fn thought(&mut self, step: &RawObject<'_>) -> Result<(), UnusableAnswer> {
        let summary = step.filled("summary", Shape::Array);
        let signature = step.filled("signature", Shape::String);
        let mut cut = Vec::new();
        cut.extend(summary.map(|_| ("summary", None)));
        cut.extend(signature.map(|_| ("signature", None)));
        self.start(step, &cut)?;
        if let Some(summary) = summary {
            each_item(summary, |_, part| {
                self.delta(|it| {
                    it.text("type", "thought_summary")
                        .raw("content", part.text());
                })
            })?;
        }
        if let Some(signature) = signature {
            self.delta(|it| {
                it.text("type", "thought_signature");
                it.raw("signature", signature.text());
            })?;
        }
        self.stop()
    }

    fn start(
        &mut self,
        step: &RawObject<'_>,
        changes: &[(&str, Option<&str>)],
    ) -> Result<(), UnusableAnswer> {
        let index = self.count;
        named(self.events, "step.start", |it| {
            it.number("index", index);
            it.object("step", |it| step.write_to(it, changes));
        })
    }

    fn delta(&mut self, write: impl FnOnce(&mut Object<'_>)) -> Result<(), UnusableAnswer> {
        let index = self.count;
        named(self.events, "step.delta", |it| {
            it.number("index", index).object("delta", write);
        })
    }

    fn stop(&mut self) -> Result<(), UnusableAnswer> {
        let index = self.count;
        self.count += 1;
        named(self.events, "step.stop", |it| {
            it.number("index", index);
        })
    }
}
