//! Creates and checks thought signatures. The first call of an answer has a signature or, without a call, its text or
//! picture. Clients must send the signatures of calls back.
//!
//! The signature of a call is bound to the model and to the name of the call. So the simulator notices if a client
//! sends the signature back with another call or to another model.

use crate::call_context::CallContext;
use crate::seal;
use crate::seed::Seed;

const KIND: &str = "thought signature";
/// Real signatures are long, because they contain the thoughts.
const NOISE_LETTERS: usize = 120;
/// Takes the place of the call's name in the signature of a text.
const TEXT: &str = "";
/// The literals that the vendor accepts instead of a signature, for histories that another model has written.
const BYPASSES: [&str; 2] = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
];

/// Why a signature in the history is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureError {
    Missing,
    Corrupted,
}

/// Creates and checks the signatures of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer<'a> {
    model: &'a str,
    /// False for older models, which neither create nor check signatures.
    signs: bool,
    /// Whether the literals in `BYPASSES` are accepted.
    bypassed: bool,
}

impl<'a> Signer<'a> {
    pub(crate) fn of(context: &CallContext<'a>) -> Self {
        Self {
            model: context.name,
            signs: !context.script.google.unsigned,
            bypassed: !context.script.reasoning.demanded,
        }
    }

    /// Signs one step: its first call or, without a call, its text or picture.
    pub(crate) fn sign(self, first_call: Option<&str>, seed: &mut Seed) -> Option<String> {
        let first = first_call.unwrap_or(TEXT);
        let text = format!("{first}\n{}", seed.letters(NOISE_LETTERS));
        self.signs.then(|| seal::seal(KIND, self.model, &text))
    }

    /// Checks the signature of a call in the history.
    pub(crate) fn check_call(
        self,
        name: &str,
        signature: Option<&str>,
    ) -> Result<(), SignatureError> {
        match signature.filter(|text| !text.is_empty()) {
            Some(signature) => self.check(signature, |signed| signed == name),
            None if self.signs => Err(SignatureError::Missing),
            None => Ok(()),
        }
    }

    /// Checks the signature of a text in the history.
    pub(crate) fn check_text(self, signature: &str) -> Result<(), SignatureError> {
        self.check(signature, |signed| signed == TEXT)
    }

    fn check(self, signature: &str, fits: impl FnOnce(&str) -> bool) -> Result<(), SignatureError> {
        if !self.signs {
            return Ok(());
        }
        // Clients that treat signatures as bytes may add base64 padding to the literal.
        if self.bypassed && BYPASSES.contains(&signature.trim_end_matches('=')) {
            return Ok(());
        }
        let opened = seal::open(KIND, self.model, signature).ok_or(SignatureError::Corrupted)?;
        let signed = opened.split('\n').next().unwrap_or_default();
        if fits(signed) {
            Ok(())
        } else {
            Err(SignatureError::Corrupted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;

    fn signer<'a>(model: &'a str, script: &'a Script) -> Signer<'a> {
        Signer::of(&CallContext {
            name: model,
            script,
            seed: Seed::new(1),
            created: 0,
            true_usage: Box::leak(Box::new(std::cell::Cell::new(None))),
        })
    }

    #[test]
    fn a_signature_fits_its_call_and_model_only() {
        let script = Script::default();
        let chat = signer("sim-chat", &script);
        let signature = chat.sign(Some("f"), &mut Seed::new(1)).unwrap();
        let url_safe = signature.replace('+', "-").replace('/', "_");
        assert_eq!(chat.check_call("f", Some(&signature)), Ok(()));
        assert_eq!(chat.check_call("f", Some(&url_safe)), Ok(()));
        let mini = signer("sim-mini", &script);
        for (error, checked) in [
            (
                SignatureError::Corrupted,
                chat.check_call("g", Some(&signature)),
            ),
            (
                SignatureError::Corrupted,
                mini.check_call("f", Some(&signature)),
            ),
            (
                SignatureError::Corrupted,
                chat.check_call("f", Some("AAAA")),
            ),
            (SignatureError::Corrupted, chat.check_text(&signature)),
            (SignatureError::Missing, chat.check_call("f", Some(""))),
            (SignatureError::Missing, chat.check_call("f", None)),
        ] {
            assert_eq!(checked, Err(error));
        }
        let text = chat.sign(None, &mut Seed::new(2)).unwrap();
        assert_eq!(chat.check_text(&text), Ok(()));
    }

    #[test]
    fn the_literals_pass() {
        let script = Script::default();
        let signer = signer("sim-chat", &script);
        for literal in BYPASSES {
            assert_eq!(signer.check_call("f", Some(literal)), Ok(()));
            assert_eq!(signer.check_text(literal), Ok(()));
        }
    }

    #[test]
    fn the_literals_do_not_pass_where_reasoning_is_demanded() {
        let mut script = Script::default();
        script.apply("demand-reasoning").unwrap();
        let signer = signer("sim-chat", &script);
        for literal in BYPASSES {
            assert_eq!(
                signer.check_call("f", Some(literal)),
                Err(SignatureError::Corrupted)
            );
        }
    }

    #[test]
    fn an_older_model_looks_at_no_signature() {
        let mut script = Script::default();
        script.apply("unsigned").unwrap();
        let signer = signer("sim-chat", &script);
        assert_eq!(signer.sign(Some("f"), &mut Seed::new(1)), None);
        for signature in [None, Some("AAAA"), Some("")] {
            assert_eq!(signer.check_call("f", signature), Ok(()));
        }
    }
}
