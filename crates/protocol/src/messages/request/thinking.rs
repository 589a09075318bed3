//! Reads and writes thinking and effort.

use crate::canon::{Dropped, Effort, Reasoning, Request};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::write::Object;
use crate::json::{Cursor, Integer};
use crate::messages::fields::Fields;
use crate::profile::{self, Profile};

/// The output limit for models whose own limit is not known.
const OUTPUT_TOKENS: u64 = 4096;
/// The smallest budget that upstreams accept.
const BUDGET_TOKENS_MIN: u64 = 1024;
/// The efforts that this dialect has.
const EFFORTS: [Effort; 5] = [
    Effort::Low,
    Effort::Medium,
    Effort::High,
    Effort::XHigh,
    Effort::Max,
];

/// The thinking options in a client's request.
#[derive(Debug, Default)]
pub(super) struct ThinkingOptions {
    thinking: Option<Kind>,
    /// Whether the client chose to show or to hide thoughts.
    is_display_set: bool,
    effort: Option<Effort>,
}

#[derive(Debug)]
enum Kind {
    Off,
    Adaptive { show: bool },
    Budget { tokens: u64, show: bool },
}

impl ThinkingOptions {
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        unknown: &mut Vec<String>,
    ) -> Result<(), Failure> {
        const NAME: &str = "thinking";
        if typed::null(cursor)? {
            return Ok(());
        }
        let Some(mut fields) = Fields::read(cursor)? else {
            return Err(Failure::invalid("`thinking` must be an object.").param(NAME));
        };
        let kind = fields.text("type", "thinking.type")?;
        let display = fields.string("display");
        self.is_display_set = display.is_some();
        let show = display.is_none_or(|how| how != "omitted");
        let budget = fields
            .take("budget_tokens")
            .and_then(|value| value.integer());
        self.thinking = Some(match (kind.as_ref(), budget) {
            ("enabled", Some(tokens @ (Integer::Value(_) | Integer::Huge))) => Kind::Budget {
                tokens: tokens.saturating(),
                show,
            },
            ("enabled", _) => {
                let message = "`thinking.budget_tokens` must be an integer.";
                return Err(Failure::invalid(message).param("thinking.budget_tokens"));
            }
            ("adaptive", _) => Kind::Adaptive { show },
            // Notes between tool calls do not count as thinking.
            ("disabled" | "between_tools", _) => Kind::Off,
            _ => {
                let message = "`thinking.type` must be `enabled`, `adaptive` or `disabled`.";
                return Err(Failure::invalid(message).param("thinking.type"));
            }
        });
        fields.report_rest(&NAME, unknown);
        Ok(())
    }

    pub(super) fn read_effort(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        const NAME: &str = "output_config.effort";
        let Some(name) = typed::string(cursor, NAME)? else {
            return Ok(());
        };
        let effort = Effort::parse(&name).filter(|effort| EFFORTS.contains(effort));
        self.effort = Some(effort.ok_or_else(|| {
            let message = format!("`{NAME}` must be `low`, `medium`, `high`, `xhigh` or `max`.");
            Failure::invalid(message).param(NAME)
        })?);
        Ok(())
    }

    /// Thinking and effort in the common form.
    pub(super) fn reasoning(self, unknown: &mut Vec<String>) -> Option<Reasoning> {
        let effort = self.effort;
        let (effort, budget_tokens, show) = match self.thinking {
            None => (Some(effort?), None, false),
            Some(Kind::Adaptive { show }) => (effort, None, show),
            Some(Kind::Budget { tokens, show }) => (effort, Some(tokens), show),
            Some(Kind::Off) => {
                // In other dialects effort only applies to reasoning.
                if effort.is_some() {
                    unknown.push("output_config.effort".to_owned());
                }
                (Some(Effort::None), None, false)
            }
        };
        Some(Reasoning {
            effort,
            budget_tokens,
            show,
            show_is_default: show && !self.is_display_set,
        })
    }
}

/// The thinking options for an upstream, with the matching output limit.
#[derive(Debug)]
pub(super) struct ThinkingPlan {
    thinking: Option<Kind>,
    pub(super) effort: Option<Effort>,
    pub(super) max_tokens: u64,
}

/// Reasons against thinking in a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constraints {
    /// The model must call a tool.
    pub(super) forced: bool,
    /// A tool loop is open and its first thought is missing. Upstreams then refuse a budget.
    pub(super) resumed: bool,
}

impl ThinkingPlan {
    /// Chooses options that the model supports.
    pub(super) fn new(
        request: &Request,
        profile: &Profile,
        hindrance: Constraints,
        dropped: &mut Dropped,
    ) -> Self {
        let limit = request.output_tokens_max;
        let usual = profile.max_output_tokens.unwrap_or(OUTPUT_TOKENS);
        let unthinking = Self {
            thinking: None,
            effort: None,
            max_tokens: limit.unwrap_or(usual),
        };
        let Some(reasoning) = &request.reasoning else {
            return unthinking;
        };
        let plan = match style(profile) {
            profile::Thinking::None => None,
            profile::Thinking::Budget => Self::budgeted(reasoning, profile, limit, dropped)
                .filter(|plan| !(hindrance.resumed && plan.is_on())),
            profile::Thinking::Adaptive | profile::Thinking::Level => Some(Self {
                max_tokens: unthinking.max_tokens,
                ..Self::adaptive(reasoning, profile)
            }),
        };
        match plan {
            Some(plan) if !(hindrance.forced && plan.is_on()) => plan,
            None if effort(reasoning) == Some(Effort::None) => unthinking,
            None if effort(reasoning).is_none() && !reasoning.show => unthinking,
            _ => {
                dropped.reasoning(reasoning);
                unthinking
            }
        }
    }

    fn adaptive(reasoning: &Reasoning, profile: &Profile) -> Self {
        let show = reasoning.show;
        let (thinking, effort) = match effort(reasoning) {
            Some(Effort::None) => {
                let cannot = |known: &Vec<Effort>| !known.contains(&Effort::None);
                match &profile.efforts {
                    // A model that always thinks refuses requests that turn thinking off.
                    Some(known) if cannot(known) => (None, known.iter().min().copied()),
                    _ => (Some(Kind::Off), None),
                }
            }
            Some(asked) => {
                let nearest = profile.nearest_effort(asked, &EFFORTS);
                let nearest = EFFORTS.contains(&nearest).then_some(nearest);
                (Some(Kind::Adaptive { show }), nearest.or(Some(Effort::Low)))
            }
            None if show => (Some(Kind::Adaptive { show }), None),
            None => (None, None),
        };
        Self {
            thinking,
            effort,
            max_tokens: 0,
        }
    }

    fn budgeted(
        reasoning: &Reasoning,
        profile: &Profile,
        limit: Option<u64>,
        dropped: &mut Dropped,
    ) -> Option<Self> {
        let usual = profile.max_output_tokens;
        let asked = match (reasoning.budget_tokens, reasoning.effort) {
            (Some(tokens), _) => tokens,
            (None, Some(Effort::Max)) => usual.unwrap_or(Effort::Max.budget_tokens()),
            (None, Some(effort)) => effort.budget_tokens(),
            (None, None) => {
                // The client set no budget. Without a budget, no thoughts are shown.
                dropped.shown_reasoning(reasoning);
                return Some(Self {
                    thinking: None,
                    effort: None,
                    max_tokens: limit.or(usual).unwrap_or(OUTPUT_TOKENS),
                });
            }
        };
        let off = asked == 0;
        let tokens = asked.max(BUDGET_TOKENS_MIN);
        // Thinking counts as output, so the limit must leave room for it.
        let max_tokens = match limit.or(usual) {
            Some(limit) => limit,
            None if off => OUTPUT_TOKENS,
            None => OUTPUT_TOKENS.saturating_add(tokens),
        };
        let thinking = if off {
            Kind::Off
        } else if max_tokens <= BUDGET_TOKENS_MIN {
            return None;
        } else {
            Kind::Budget {
                tokens: tokens.min(max_tokens - 1),
                show: reasoning.show,
            }
        };
        Some(Self {
            thinking: Some(thinking),
            effort: None,
            max_tokens,
        })
    }

    pub(super) fn is_on(&self) -> bool {
        matches!(
            self.thinking,
            Some(Kind::Adaptive { .. } | Kind::Budget { .. })
        )
    }

    pub(super) fn write(&self, it: &mut Object<'_>) {
        let Some(thinking) = &self.thinking else {
            return;
        };
        it.object("thinking", |it| match thinking {
            Kind::Off => {
                it.text("type", "disabled");
            }
            Kind::Adaptive { show } => {
                it.text("type", "adaptive").text("display", display(*show));
            }
            Kind::Budget { tokens, show } => {
                it.text("type", "enabled")
                    .number("budget_tokens", *tokens)
                    .text("display", display(*show));
            }
        });
    }
}

/// How this model's thinking is configured. An unknown model is treated like the newest models.
fn style(profile: &Profile) -> profile::Thinking {
    match profile.thinking {
        Some(style) => style,
        None if profile.reasoning == Some(false) => profile::Thinking::None,
        None => profile::Thinking::Adaptive,
    }
}

/// The requested effort. Derived from the budget if the client set only a budget.
fn effort(reasoning: &Reasoning) -> Option<Effort> {
    let budget = reasoning.budget_tokens.map(Effort::of_budget);
    reasoning.effort.or(budget)
}

const fn display(show: bool) -> &'static str {
    if show { "summarized" } else { "omitted" }
}
