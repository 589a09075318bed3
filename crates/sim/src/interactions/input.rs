//! Reads `input`, which is one turn or a history of steps, and checks the order of calls, thoughts and results.

use super::content::{self, Contents, is_content};
use crate::google::{Field, Refusal, SignatureError, Signer, Spelling};
use crate::model::{PastCall, Turn};
use serde_json::Value;

const USER_INPUT: &[&str] = &["content", "type"];
const MODEL_OUTPUT: &[&str] = &["content", "error", "type"];
const THOUGHT: &[&str] = &["signature", "summary", "type"];
const FUNCTION_CALL: &[&str] = &["arguments", "id", "name", "type"];
const FUNCTION_RESULT: &[&str] = &["call_id", "is_error", "name", "result", "type"];
/// The suffixes of the step types of server tools.
const SERVER_STEPS: [&str; 2] = ["_call", "_result"];

pub(super) fn read(body: &Field<'_>, signer: Signer<'_>) -> Result<Vec<Turn>, Refusal> {
    let input = body.required("input")?;
    let single = std::slice::from_ref(input);
    let list = match input {
        Value::String(text) if !text.is_empty() => {
            return Ok(vec![Turn::User {
                text: text.clone(),
                media: Vec::new(),
            }]);
        }
        Value::Array(list) if !list.is_empty() => list.as_slice(),
        Value::Object(_) => single,
        _ => return Err(Refusal::invalid("'input' must not be empty.")),
    };
    // Thoughts are required only for calls after the user's last message.
    let current = list
        .iter()
        .rposition(|item| is_content(item) || kind_of(item) == "user_input")
        .unwrap_or_default();
    let mut reader = Reader {
        signer,
        turns: Vec::new(),
        loose_contents: Contents::default(),
        thought: None,
        calls_made: false,
        open: Vec::new(),
        model: None,
    };
    for (index, item) in list.iter().enumerate() {
        reader.item(item, &format!("input[{index}]"), index >= current)?;
    }
    reader.end_of_model_turn()?;
    reader.end_of_loose_contents();
    reader.check_all_answered()?;
    Ok(reader.turns)
}

fn kind_of(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

struct Reader<'a> {
    signer: Signer<'a>,
    turns: Vec<Turn>,
    /// The content items in the list that do not belong to a step.
    loose_contents: Contents,
    /// The signature of the last thought in the model's turn. The next call takes this signature.
    thought: Option<String>,
    /// Whether the model's turn already has a call.
    calls_made: bool,
    /// The ids and names of the calls that have no result yet.
    open: Vec<(String, String)>,
    /// The model's turn that is being read.
    model: Option<ModelTurn>,
}

#[derive(Default)]
struct ModelTurn {
    text: String,
    calls: Vec<PastCall>,
}

impl Reader<'_> {
    fn item(&mut self, item: &Value, path: &str, current: bool) -> Result<(), Refusal> {
        if is_content(item) {
            self.begin_of_user_turn()?;
            return self.loose_contents.add(item, path);
        }
        self.end_of_loose_contents();
        match kind_of(item) {
            "user_input" => {
                self.begin_of_user_turn()?;
                let step = Field::object(item, path, Spelling::Snake, USER_INPUT)?;
                let list = step.list("content")?.unwrap_or_default();
                self.loose_contents = content::read(list, &step.path("content"))?;
                self.end_of_loose_contents();
                Ok(())
            }
            "model_output" => {
                let step = Field::object(item, path, Spelling::Snake, MODEL_OUTPUT)?;
                let list = step.list("content")?.unwrap_or_default();
                let text = content::read(list, &step.path("content"))?.texts.concat();
                self.model.get_or_insert_default().text.push_str(&text);
                Ok(())
            }
            "thought" => self.thought(&Field::object(item, path, Spelling::Snake, THOUGHT)?),
            "function_call" => {
                let step = Field::object(item, path, Spelling::Snake, FUNCTION_CALL)?;
                self.call(&step, current)
            }
            "function_result" => {
                self.end_of_model_turn()?;
                self.result(&Field::object(
                    item,
                    path,
                    Spelling::Snake,
                    FUNCTION_RESULT,
                )?)
            }
            kind if SERVER_STEPS.iter().any(|end| kind.ends_with(end)) => Ok(()),
            kind => Err(Refusal::invalid(format!(
                "Invalid value for '{path}.type': '{kind}'."
            ))),
        }
    }

    fn thought(&mut self, step: &Field<'_>) -> Result<(), Refusal> {
        self.model.get_or_insert_default();
        // If a turn has two thoughts in a row, the earlier one does not belong to a call.
        self.check_thought_without_call()?;
        let signature = step.text("signature")?;
        self.thought = signature.map(str::to_owned);
        Ok(())
    }

    fn call(&mut self, step: &Field<'_>, current: bool) -> Result<(), Refusal> {
        let id = step.required_text("id")?.to_owned();
        let name = step.required_text("name")?.to_owned();
        let arguments = step.required("arguments")?;
        if !arguments.is_object() {
            let path = step.path("arguments");
            return Err(Refusal::invalid(format!("'{path}' must be an object.")));
        }
        let signature = self.thought.take();
        match self.signer.check_call(&name, signature.as_deref()) {
            // Consecutive calls share a thought, and calls of earlier turns do not need one.
            Err(SignatureError::Missing) if !current || self.calls_made => {}
            checked => checked.map_err(signature_refusal)?,
        }
        self.calls_made = true;
        self.open.push((id.clone(), name.clone()));
        self.model.get_or_insert_default().calls.push(PastCall {
            id,
            name,
            arguments: arguments.to_string(),
        });
        Ok(())
    }

    fn result(&mut self, step: &Field<'_>) -> Result<(), Refusal> {
        let call_id = step.required_text("call_id")?;
        let place = self.open.iter().position(|(id, _)| id == call_id);
        let Some(place) = place else {
            return Err(Refusal::invalid(format!(
                "'{}' does not match any open function call: {call_id}.",
                step.path("call_id")
            )));
        };
        let (id, name) = self.open.remove(place);
        if let Some(given) = step.text("name")?.filter(|given| *given != name) {
            return Err(Refusal::invalid(format!(
                "'{}' is '{given}', but the call is one of '{name}'.",
                step.path("name")
            )));
        }
        let (text, media) = match step.required("result")? {
            Value::String(text) => (text.clone(), Vec::new()),
            Value::Array(list) if list.iter().all(is_content) => {
                let contents = content::read(list, &step.path("result"))?;
                (contents.text(), contents.media)
            }
            other => (other.to_string(), Vec::new()),
        };
        self.turns.push(Turn::Result {
            call_id: id,
            text,
            media,
            failed: step.flag("is_error")?.unwrap_or(false),
        });
        Ok(())
    }

    fn begin_of_user_turn(&mut self) -> Result<(), Refusal> {
        self.end_of_model_turn()?;
        self.check_all_answered()
    }

    fn end_of_model_turn(&mut self) -> Result<(), Refusal> {
        self.check_thought_without_call()?;
        self.calls_made = false;
        if let Some(ModelTurn { text, calls }) = self.model.take() {
            self.turns.push(Turn::Assistant { text, calls });
        }
        Ok(())
    }

    /// Checks that a thought without a call after it has the signature of a text.
    fn check_thought_without_call(&mut self) -> Result<(), Refusal> {
        match self.thought.take().filter(|text| !text.is_empty()) {
            Some(signature) => self
                .signer
                .check_text(&signature)
                .map_err(signature_refusal),
            None => Ok(()),
        }
    }

    fn end_of_loose_contents(&mut self) {
        let contents = std::mem::take(&mut self.loose_contents);
        if !contents.texts.is_empty() || !contents.media.is_empty() {
            self.turns.push(Turn::User {
                text: contents.text(),
                media: contents.media,
            });
        }
    }

    fn check_all_answered(&self) -> Result<(), Refusal> {
        match self.open.first() {
            None => Ok(()),
            Some((id, _)) => Err(Refusal::invalid(format!(
                "The function call '{id}' has no function_result."
            ))
            .late()),
        }
    }
}

/// The refusal of a signature. Like the vendor's, its message does not name the step.
fn signature_refusal(error: SignatureError) -> Refusal {
    Refusal::invalid(match error {
        SignatureError::Missing => "Request contains an invalid argument.",
        SignatureError::Corrupted => "Corrupted thought signature.",
    })
    .late()
}
