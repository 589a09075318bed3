//! Parses the parameters of a header: `form-data; name="image"; filename="cat.png"`.

/// The value of a parameter without quotes. Names match in any case.
pub(super) fn parameter(header: &str, wanted: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (name, after) = rest.trim_start().split_once('=')?;
        let (value, after) = value(after)?;
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

/// A token or a quoted string, and the text after it.
fn value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        let (token, after) = text.split_at(end);
        return Some((token.trim_end().to_owned(), after));
    };
    let mut value = String::new();
    let mut signs = quoted.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some((value, quoted.get(at + 1..)?)),
            // Some clients send Windows paths unescaped, so only `\"` and `\\` count as escapes.
            '\\' => match signs.clone().next() {
                Some((_, next @ ('"' | '\\'))) => {
                    value.push(next);
                    signs.next();
                }
                _ => value.push('\\'),
            },
            sign => value.push(sign),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_however_they_are_written() {
        for (header, name, value) in [
            (r#"form-data; name="image""#, "name", Some("image")),
            ("form-data; name=image", "name", Some("image")),
            (
                r#"form-data; NAME = "a" ; filename="c;d.png""#,
                "filename",
                Some("c;d.png"),
            ),
            (r#"form-data; name="a\"b\\c""#, "name", Some(r#"a"b\c"#)),
            (
                r#"form-data; name="x"; filename="C:\dir\a.png""#,
                "filename",
                Some(r"C:\dir\a.png"),
            ),
            ("multipart/form-data; boundary=xyz", "boundary", Some("xyz")),
            ("form-data", "name", None),
            (r#"form-data; name="open"#, "name", None),
        ] {
            assert_eq!(parameter(header, name).as_deref(), value, "{header}");
        }
    }
}
