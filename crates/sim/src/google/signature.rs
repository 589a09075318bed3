//! Thought signatures: given with calls and texts, demanded back with calls.
//!
//! A signature of a call is bound to the model and to the name of the call it stands at, so that one
//! which comes back at another call, or with another model, is seen.

use crate::seal;
use crate::seed::Seed;

const KIND: &str = "thought signature";
/// Real signatures are long: they hold the thoughts.
const NOISE_LETTERS: usize = 120;
/// A text's signature names no call.
const TEXT: &str = "";
/// What the vendor takes in place of a signature for history that it did not write itself.
const BYPASSES: [&str; 2] = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
];

/// What is wrong with a signature that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    Missing,
    Corrupted,
}

/// Makes and checks the signatures of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer<'a> {
    model: &'a str,
}

impl<'a> Signer<'a> {
    pub(crate) fn new(model: &'a str) -> Self {
        Self { model }
    }

    /// For the calls of one step, of which the first is named.
    pub(crate) fn sign_call(self, first: &str, seed: &mut Seed) -> String {
        let text = format!("{first}\n{}", seed.letters(NOISE_LETTERS));
        seal::seal(KIND, self.model, &text)
    }

    /// For a text or a picture.
    pub(crate) fn sign_text(self, seed: &mut Seed) -> String {
        self.sign_call(TEXT, seed)
    }

    /// Checks what came back with a call.
    pub(crate) fn check_call(self, name: &str, signature: Option<&str>) -> Result<(), Doubt> {
        let signature = signature
            .filter(|text| !text.is_empty())
            .ok_or(Doubt::Missing)?;
        self.check(signature, |signed| signed == name)
    }

    /// Checks what came back with a text. A step that thought before a call may hold a text too.
    pub(crate) fn check_text(self, signature: &str) -> Result<(), Doubt> {
        self.check(signature, |signed| signed == TEXT)
    }

    fn check(self, signature: &str, fits: impl FnOnce(&str) -> bool) -> Result<(), Doubt> {
        // A client that takes signatures for bytes may have padded the literal.
        if BYPASSES.contains(&signature.trim_end_matches('=')) {
            return Ok(());
        }
        let opened = seal::open(KIND, self.model, signature).ok_or(Doubt::Corrupted)?;
        let signed = opened.split('\n').next().unwrap_or_default();
        if fits(signed) {
            Ok(())
        } else {
            Err(Doubt::Corrupted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_fits_its_call_and_model_only() {
        let signer = Signer::new("sim-chat");
        let signature = signer.sign_call("f", &mut Seed::new(1));
        let url_safe = signature.replace('+', "-").replace('/', "_");
        assert_eq!(signer.check_call("f", Some(&signature)), Ok(()));
        assert_eq!(signer.check_call("f", Some(&url_safe)), Ok(()));
        for (doubt, checked) in [
            (Doubt::Corrupted, signer.check_call("g", Some(&signature))),
            (
                Doubt::Corrupted,
                Signer::new("sim-mini").check_call("f", Some(&signature)),
            ),
            (Doubt::Corrupted, signer.check_call("f", Some("AAAA"))),
            (Doubt::Corrupted, signer.check_text(&signature)),
            (Doubt::Missing, signer.check_call("f", Some(""))),
            (Doubt::Missing, signer.check_call("f", None)),
        ] {
            assert_eq!(checked, Err(doubt));
        }
        let text = signer.sign_text(&mut Seed::new(2));
        assert_eq!(signer.check_text(&text), Ok(()));
    }

    #[test]
    fn the_literals_pass() {
        let signer = Signer::new("sim-chat");
        for literal in BYPASSES {
            assert_eq!(signer.check_call("f", Some(literal)), Ok(()));
            assert_eq!(signer.check_text(literal), Ok(()));
        }
    }
}
