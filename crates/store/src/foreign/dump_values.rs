//! Parses the words, names and values in a statement of a dump.

/// A row of a table. `None` is null.
pub(super) type Row = Vec<Option<String>>;

#[derive(Debug)]
pub(super) struct Scanner<'s> {
    bytes: &'s [u8],
    at: usize,
}

#[derive(Debug)]
enum DumpedValue {
    Null,
    Text(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(bytes: &'s [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next byte that is not white space. It is not consumed.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Consumes the next byte that is not white space if it equals `byte`. Returns whether it does.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The next word without quotes.
    pub(super) fn word(&mut self) -> Option<&'s str> {
        self.peek()?;
        let rest = self.bytes.get(self.at..)?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let word = std::str::from_utf8(rest.get(..length)?).ok()?;
        self.at += length;
        (length > 0).then_some(word)
    }

    /// The next name, which may be in backquotes or double quotes.
    pub(super) fn name(&mut self) -> Option<Name> {
        let quote = self.peek()?;
        if !matches!(quote, b'`' | b'"') {
            let text = self.word()?.to_owned();
            let is_quoted = false;
            return Some(Name { text, is_quoted });
        }
        self.at += 1;
        let text = self.quoted(quote)?;
        let is_quoted = true;
        Some(Name { text, is_quoted })
    }

    /// The text up to the closing quote, which is consumed too.
    fn quoted(&mut self, quote: u8) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if byte == b'\\' && quote != b'`' {
                let escaped = *self.bytes.get(self.at)?;
                self.at += 1;
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'0' => 0,
                    b'Z' => 26,
                    other => other,
                });
            } else if byte == quote {
                if self.bytes.get(self.at) != Some(&quote) {
                    return Some(String::from_utf8_lossy(&text).into_owned());
                }
                self.at += 1;
                text.push(quote);
            } else {
                text.push(byte);
            }
        }
    }

    fn value(&mut self) -> Option<DumpedValue> {
        let word = loop {
            let first = self.peek()?;
            if first == b'\'' {
                self.at += 1;
                return self.quoted(first).map(DumpedValue::Text);
            }
            let rest = self.bytes.get(self.at..)?;
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
            let length = rest.iter().take_while(|byte| is_part(byte)).count();
            let word = std::str::from_utf8(rest.get(..length)?).ok()?;
            self.at += length;
            // A character set may precede a text: _binary 'x'.
            if !word.starts_with('_') {
                break word;
            }
        };
        if word.eq_ignore_ascii_case("null") {
            return Some(DumpedValue::Null);
        }
        if let Some(digits) = word.strip_prefix("0x") {
            return Some(DumpedValue::Text(from_hex(digits)?));
        }
        let is_number = word
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.'));
        is_number.then(|| DumpedValue::Text(word.to_owned()))
    }
}

fn from_hex(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = pairs.map(byte).collect::<Option<_>>()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the columns of a CREATE TABLE statement, after the table's name.
pub(super) fn columns_of(scanner: &mut Scanner<'_>) -> Result<Vec<String>, String> {
    let unreadable = || "a CREATE TABLE cannot be read".to_owned();
    if !scanner.takes(b'(') {
        return Err(unreadable());
    }
    let mut columns = Vec::new();
    loop {
        let name = scanner.name().ok_or_else(unreadable)?;
        let word = name.text.to_ascii_uppercase();
        let is_index = !name.is_quoted
            && matches!(
                &*word,
                "PRIMARY"
                    | "UNIQUE"
                    | "KEY"
                    | "INDEX"
                    | "CONSTRAINT"
                    | "FULLTEXT"
                    | "SPATIAL"
                    | "FOREIGN"
                    | "CHECK"
            );
        if !is_index {
            columns.push(name.text);
        }
        if !skip_to_next(scanner).ok_or_else(unreadable)? {
            return Ok(columns);
        }
    }
}

/// Skips the rest of a column or index. Returns whether another one follows.
fn skip_to_next(scanner: &mut Scanner<'_>) -> Option<bool> {
    let mut depth = 0_u32;
    loop {
        let byte = scanner.peek()?;
        match byte {
            b'\'' | b'"' | b'`' => {
                scanner.at += 1;
                scanner.quoted(byte)?;
                continue;
            }
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(false),
            b')' => depth -= 1,
            b',' if depth == 0 => {
                scanner.at += 1;
                return Some(true);
            }
            _ => {}
        }
        scanner.at += 1;
    }
}

/// Reads the columns that an INSERT statement names, if any, and its rows, after the table's name.
pub(super) fn rows_of(
    scanner: &mut Scanner<'_>,
) -> Result<(Option<Vec<String>>, Vec<Row>), String> {
    let mut named = None;
    if scanner.takes(b'(') {
        let columns = named.get_or_insert(Vec::new());
        loop {
            let name = scanner.name().ok_or("the columns cannot be read")?;
            columns.push(name.text);
            if scanner.takes(b')') {
                break;
            }
            if !scanner.takes(b',') {
                return Err("the columns cannot be read".to_owned());
            }
        }
    }
    let word = scanner.word().unwrap_or_default();
    if !word.eq_ignore_ascii_case("VALUES") && !word.eq_ignore_ascii_case("VALUE") {
        return Err("an INSERT without VALUES cannot be read".to_owned());
    }
    let mut rows = Vec::new();
    loop {
        rows.push(row(scanner).ok_or_else(|| format!("row {} cannot be read", rows.len() + 1))?);
        if !scanner.takes(b',') {
            break;
        }
    }
    match scanner.peek() {
        None => Ok((named, rows)),
        Some(_) => Err(format!("row {} cannot be read", rows.len() + 1)),
    }
}

fn row(scanner: &mut Scanner<'_>) -> Option<Row> {
    if !scanner.takes(b'(') {
        return None;
    }
    let mut row = Vec::new();
    loop {
        row.push(match scanner.value()? {
            DumpedValue::Null => None,
            DumpedValue::Text(text) => Some(text),
        });
        if scanner.takes(b')') {
            return Some(row);
        }
        if !scanner.takes(b',') {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_character_sets_is_read() {
        let statement = format!("VALUES ({}'x', _binary 'y')", "_a ".repeat(1_000_000));
        let (_, rows) = rows_of(&mut Scanner::new(statement.as_bytes())).unwrap();
        assert_eq!(rows, [[Some("x".to_owned()), Some("y".to_owned())]]);
    }
}
