//! Reads and writes log probabilities, in the form that chat and Responses share.

use crate::canon::{Likelihood, Token};
use crate::json::typed::{self, ValueError};
use crate::json::write::{Array, Object};
use crate::json::{Cursor, Integer};

pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Token>, ValueError> {
    let mut tokens = Vec::new();
    typed::array(cursor, "logprobs", |cursor, _| {
        let mut top = Vec::new();
        if let Some(chosen) = likelihood(cursor, Some(&mut top))? {
            tokens.push(Token { chosen, top });
        }
        Ok::<(), ValueError>(())
    })?;
    Ok(tokens)
}

/// Reads one token. `None` if it has no log probability.
fn likelihood(
    cursor: &mut Cursor<'_>,
    mut top: Option<&mut Vec<Likelihood>>,
) -> Result<Option<Likelihood>, ValueError> {
    let (mut token, mut bytes, mut logprob) = (String::new(), None, None);
    typed::object(cursor, "logprobs[]", |cursor, name| {
        match (name, &mut top) {
            ("token", _) => {
                token = typed::string(cursor, name)?
                    .unwrap_or_default()
                    .into_owned();
            }
            ("logprob", _) => logprob = typed::number(cursor, name)?,
            ("bytes", _) if !typed::null(cursor)? => bytes = Some(read_bytes(cursor)?),
            ("top_logprobs", Some(top)) => typed::array(cursor, name, |cursor, _| {
                top.extend(likelihood(cursor, None)?);
                Ok::<(), ValueError>(())
            })?,
            ("bytes", _) => {}
            _ => drop(cursor.value()?),
        }
        Ok::<(), ValueError>(())
    })?;
    Ok(logprob.map(|logprob| Likelihood {
        token,
        bytes,
        logprob,
    }))
}

fn read_bytes(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ValueError> {
    let mut bytes = Vec::new();
    typed::array(cursor, "bytes", |cursor, _| {
        let byte = typed::integer(cursor, "bytes")?.map_or(0, Integer::saturating);
        bytes.push(u8::try_from(byte).unwrap_or(u8::MAX));
        Ok::<(), ValueError>(())
    })?;
    Ok(bytes)
}

pub(crate) fn write(list: &mut Array<'_>, tokens: &[Token]) {
    for token in tokens {
        list.object(|it| {
            write_likelihood(it, &token.chosen);
            it.array("top_logprobs", |list| {
                for other in &token.top {
                    list.object(|it| write_likelihood(it, other));
                }
            });
        });
    }
}

fn write_likelihood(it: &mut Object<'_>, likelihood: &Likelihood) {
    it.text("token", &likelihood.token)
        .number("logprob", &likelihood.logprob);
    let bytes = likelihood.bytes.as_deref();
    it.array("bytes", |list| {
        for byte in bytes.unwrap_or(likelihood.token.as_bytes()) {
            list.raw(&byte.to_string());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::array;

    #[test]
    fn written_values_read_back() {
        let text = r#"[{"token":"Hi","logprob":-0.25,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-0.25,"bytes":[72,105]},{"token":"\\xe2","logprob":-9.5,"bytes":[226]}]}]"#;
        let tokens = read(&mut Cursor::new(text)).unwrap();
        let mut out = Vec::new();
        array(&mut out, |list| write(list, &tokens));
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn tokens_without_a_number_are_left_out() {
        let text = r#"[{"token":"a","bytes":null},{"token":"b","logprob":-1,"top_logprobs":null}]"#;
        let tokens = read(&mut Cursor::new(text)).unwrap();
        assert_eq!(tokens.len(), 1);
        assert!(read(&mut Cursor::new("null")).unwrap().is_empty());
        assert!(read(&mut Cursor::new("[{\"logprob\":\"x\"}]")).is_err());
    }
}
