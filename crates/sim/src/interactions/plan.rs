//! Plans an interaction: converts the model's output to steps.

use super::request::Request;
use super::shape::{Annotation, Content, Failure, Interaction, OutputError, Step};
use super::usage::Usage;
use crate::call_context::CallContext;
use crate::date::iso_8601;
use crate::google::{Refusal, Signer, TokenCounts, arguments, continue_or_stop, outputs};
use crate::model::{ChunkedText, Finish};
use crate::seed::Seed;
use crate::true_usage::HostedTools;
use serde_json::Value;

const STOPPED: OutputError = OutputError {
    code: 400,
    message: "The response was stopped by safety settings.",
};
const BLOCKED: &str = "The prompt was blocked by safety settings of sim-upstream.example.";

/// The members of an interaction that do not depend on its steps.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) id: String,
    model: String,
    created: String,
    updated: String,
}

#[derive(Debug)]
pub(super) struct Ending {
    pub(super) status: String,
    continuation_token: Option<String>,
    /// The reason for blocking the prompt, if it was blocked.
    blocked: Option<String>,
}

#[derive(Debug)]
pub(super) enum PlannedStep {
    Thought {
        summary: ChunkedText,
        signature: Option<String>,
    },
    Output {
        text: ChunkedText,
        annotation: Option<Annotation>,
        picture: Option<Content>,
        error: Option<OutputError>,
    },
    Call {
        id: String,
        name: String,
        /// The arguments as text, for the deltas of a stream. `value` has them as JSON, for a whole step.
        arguments: ChunkedText,
        value: Value,
    },
}

#[derive(Debug)]
pub(super) struct InteractionPlan {
    pub(super) identity: Identity,
    pub(super) steps: Vec<PlannedStep>,
    pub(super) ending: Ending,
    pub(super) counts: TokenCounts,
}

pub(super) fn plan(
    request: &Request,
    context: &CallContext<'_>,
) -> Result<InteractionPlan, Refusal> {
    let mut seed = context.seed.clone();
    let identity = Identity::of(request, context, &mut seed);
    let mut outputs = outputs(&request.prompt, context.script, 1, 1)?;
    let token = outputs
        .first_mut()
        .and_then(|output| continue_or_stop(output, request.continued, context));
    let picture_tokens = request.picture.map_or(0, |picture| picture.tokens);
    let counts = TokenCounts::of(&request.prompt, &outputs, picture_tokens, context.script);
    // Of the server tools, this protocol reports only searches.
    let counts = TokenCounts {
        hosted: HostedTools {
            fetches: 0,
            ..counts.hosted
        },
        ..counts
    };
    context.true_usage.set(Some(counts.true_usage()));
    let Some(output) = outputs.pop() else {
        return Err(Refusal::invalid("There is nothing to say."));
    };
    if let Some(reason) = &context.script.text.blocked {
        return Ok(InteractionPlan {
            identity,
            steps: Vec::new(),
            ending: Ending {
                status: "failed".to_owned(),
                continuation_token: None,
                blocked: Some(reason.to_ascii_lowercase()),
            },
            counts: counts.unanswered(),
        });
    }

    let mut steps = Vec::new();
    let first = output.calls.first().map(|call| call.name.as_str());
    let signature = Signer::of(context).sign(first, &mut seed);
    let summary = if request.summaries {
        output.reasoning.clone()
    } else {
        ChunkedText::default()
    };
    if signature.is_some() || !summary.is_empty() {
        steps.push(PlannedStep::Thought { summary, signature });
    }
    let (question, _) = request.prompt.question();
    let picture = request
        .picture
        .filter(|_| output.calls.is_empty())
        .map(|picture| Content::Image {
            data: picture.painted(question),
            mime_type: "image/png",
        });
    let error = (output.finish == Finish::Filter).then_some(STOPPED);
    if !output.text.is_empty() || picture.is_some() || error.is_some() {
        steps.push(PlannedStep::Output {
            text: output.text.clone(),
            annotation: output
                .citation
                .as_ref()
                .filter(|_| !output.text.is_empty())
                .map(|citation| Annotation::of(citation, output.text.as_str())),
            picture,
            error,
        });
    }
    for call in &output.calls {
        steps.push(PlannedStep::Call {
            id: format!("call_Sim{}", seed.letters(12)),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            value: arguments(call),
        });
    }
    let status = match (&context.script.finish, &token, output.finish) {
        (Some(word), _, _) => word.as_str(),
        (None, Some(_), _) => "requires_continuation",
        (None, None, Finish::Stop) => "completed",
        (None, None, Finish::Calls) => "requires_action",
        (None, None, Finish::Length | Finish::Filter) => "incomplete",
    };
    let ending = Ending {
        status: status.to_owned(),
        continuation_token: token,
        blocked: None,
    };
    Ok(InteractionPlan {
        identity,
        steps,
        ending,
        counts,
    })
}

impl Identity {
    fn of(request: &Request, context: &CallContext<'_>, seed: &mut Seed) -> Self {
        let now = iso_8601(context.created);
        Self {
            // An interaction that is not stored has an empty id.
            id: if request.stored {
                format!("v1_Sim{}", seed.letters(40))
            } else {
                String::new()
            },
            model: context.reported_model(),
            created: now.clone(),
            updated: now,
        }
    }

    /// The interaction before its first step.
    pub(super) fn begun(&self) -> Interaction<'_> {
        Interaction {
            id: &self.id,
            object: "interaction",
            model: &self.model,
            status: "in_progress",
            created: None,
            updated: None,
            service_tier: None,
            steps: None,
            errors: None,
            continuation_token: None,
            usage: None,
        }
    }

    /// The finished interaction without its steps.
    pub(super) fn ended<'a>(&'a self, ending: &'a Ending, usage: Option<Usage>) -> Interaction<'a> {
        Interaction {
            status: &ending.status,
            created: Some(&self.created),
            updated: Some(&self.updated),
            service_tier: Some("standard"),
            errors: ending.blocked.as_ref().map(|code| {
                [Failure {
                    code,
                    message: BLOCKED,
                }]
            }),
            continuation_token: ending.continuation_token.as_deref(),
            usage,
            ..self.begun()
        }
    }
}

impl PlannedStep {
    /// The complete step, for a whole answer.
    pub(super) fn whole(self) -> Step {
        match self {
            Self::Thought { summary, signature } => {
                let summary = Some(summary.as_str()).filter(|text| !text.is_empty());
                Step::Thought {
                    signature,
                    summary: summary.map(Content::text).into_iter().collect(),
                }
            }
            Self::Output {
                text,
                annotation,
                picture,
                error,
            } => {
                let text = Some(text.as_str()).filter(|text| !text.is_empty());
                let text = text.map(|text| Content::Text {
                    text: text.to_owned(),
                    annotations: annotation.map(|annotation| [annotation]),
                });
                Step::ModelOutput {
                    content: text.into_iter().chain(picture).collect(),
                    error,
                }
            }
            Self::Call {
                id, name, value, ..
            } => Step::FunctionCall {
                id,
                name,
                arguments: value,
            },
        }
    }
}
