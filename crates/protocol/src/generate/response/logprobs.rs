//! Reads and writes log probabilities in this dialect: the chosen tokens, and a parallel list of
//! the alternatives.

use crate::canon::{Likelihood, Token};
use crate::json::Cursor;
use crate::json::typed::{self, ValueError};
use crate::json::write::{Array, Object};

pub(in crate::generate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Token>, ValueError> {
    let mut chosen = Vec::new();
    let mut tops = Vec::new();
    typed::object::<ValueError>(cursor, "logprobsResult", |cursor, name| match name {
        "chosenCandidates" => {
            chosen = candidates(cursor)?;
            Ok(())
        }
        "topCandidates" => typed::array(cursor, name, |cursor, _| {
            let mut top = Vec::new();
            typed::object::<ValueError>(cursor, "topCandidates", |cursor, name| {
                match name {
                    "candidates" => top = candidates(cursor)?,
                    _ => drop(cursor.value()?),
                }
                Ok(())
            })?;
            tops.push(top);
            Ok(())
        }),
        _ => cursor.value().map(drop).map_err(ValueError::from),
    })?;
    let mut tops = tops.into_iter();
    let tokens = chosen.into_iter().map(|chosen| Token {
        chosen,
        top: tops.next().unwrap_or_default(),
    });
    Ok(tokens.collect())
}

fn candidates(cursor: &mut Cursor<'_>) -> Result<Vec<Likelihood>, ValueError> {
    let mut all = Vec::new();
    typed::array::<ValueError>(cursor, "candidates", |cursor, _| {
        let (mut token, mut logprob) = (String::new(), None);
        typed::object::<ValueError>(cursor, "candidate", |cursor, name| {
            match name {
                "token" => {
                    token = typed::string(cursor, name)?
                        .unwrap_or_default()
                        .into_owned();
                }
                "logProbability" => logprob = typed::number(cursor, name)?,
                _ => drop(cursor.value()?),
            }
            Ok(())
        })?;
        all.extend(logprob.map(|logprob| Likelihood {
            token,
            bytes: None,
            logprob,
        }));
        Ok(())
    })?;
    Ok(all)
}

/// Writes a `logprobsResult`, unless there are no tokens.
pub(in crate::generate) fn write(candidate: &mut Object<'_>, tokens: &[Token]) {
    if tokens.is_empty() {
        return;
    }
    candidate.object("logprobsResult", |it| {
        it.array("chosenCandidates", |list| {
            for token in tokens {
                write_likelihood(list, &token.chosen);
            }
        });
        it.array("topCandidates", |list| {
            for token in tokens {
                list.object(|it| {
                    it.array("candidates", |list| {
                        for other in &token.top {
                            write_likelihood(list, other);
                        }
                    });
                });
            }
        });
    });
}

fn write_likelihood(list: &mut Array<'_>, likelihood: &Likelihood) {
    list.object(|it| {
        it.text("token", &likelihood.token)
            .number("logProbability", &likelihood.logprob);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::object;

    #[test]
    fn written_values_read_back() {
        let text = r#"{"logprobsResult":{"chosenCandidates":[{"token":"Hi","logProbability":-0.5},{"token":"!","logProbability":-1}],"topCandidates":[{"candidates":[{"token":"Hi","logProbability":-0.5},{"token":"Yo","logProbability":-2.5}]},{"candidates":[]}]}}"#;
        let mut cursor = Cursor::new(&text[18..]);
        let tokens = read(&mut cursor).unwrap();
        let mut out = Vec::new();
        object(&mut out, |it| write(it, &tokens));
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
