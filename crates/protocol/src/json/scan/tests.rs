use proptest::prelude::*;

use super::*;

fn check(text: &str) -> Result<(), SyntaxError> {
    let mut cursor = Cursor::new(text);
    cursor.value()?;
    cursor.end()
}

/// Enters every container instead of skipping it, so that both ways are compared.
fn walk(cursor: &mut Cursor<'_>) -> Result<(), SyntaxError> {
    match cursor.shape()? {
        Shape::Object => cursor.object(|cursor, _| walk(cursor)),
        Shape::Array => cursor.array(walk),
        _ => cursor.value().map(drop),
    }
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    for (text, kind, at) in [
        ("", SyntaxErrorKind::Value, 0),
        ("\u{feff}{}", SyntaxErrorKind::Value, 0),
        ("{", SyntaxErrorKind::Key, 1),
        ("{\"a\"}", SyntaxErrorKind::Colon, 4),
        ("{\"a\":}", SyntaxErrorKind::Value, 5),
        ("{\"a\":1,}", SyntaxErrorKind::Key, 7),
        ("{\"a\":1", SyntaxErrorKind::ObjectEnd, 6),
        ("[1,]", SyntaxErrorKind::Value, 3),
        ("[1", SyntaxErrorKind::ArrayEnd, 2),
        ("[1}", SyntaxErrorKind::ArrayEnd, 2),
        ("{\"a\":1]", SyntaxErrorKind::ObjectEnd, 6),
        ("\"a", SyntaxErrorKind::StringEnd, 0),
        ("\"a\nb\"", SyntaxErrorKind::Control, 2),
        ("\"a\\x\"", SyntaxErrorKind::Escape, 2),
        ("\"\\u12g4\"", SyntaxErrorKind::Escape, 1),
        ("\"\\u12", SyntaxErrorKind::Escape, 1),
        ("01", SyntaxErrorKind::Number, 0),
        ("-", SyntaxErrorKind::Number, 0),
        ("1.", SyntaxErrorKind::Number, 0),
        ("1e", SyntaxErrorKind::Number, 0),
        (".5", SyntaxErrorKind::Value, 0),
        ("+1", SyntaxErrorKind::Value, 0),
        ("tru", SyntaxErrorKind::Value, 0),
        ("nul1", SyntaxErrorKind::Value, 0),
        ("NaN", SyntaxErrorKind::Value, 0),
        ("{} x", SyntaxErrorKind::Trailing, 3),
        ("{}{}", SyntaxErrorKind::Trailing, 2),
    ] {
        assert_eq!(check(text), Err(SyntaxError { kind, at }), "{text}");
    }
}

#[test]
fn all_of_json_is_accepted() {
    for text in [
        " null ",
        "0",
        "-0.0e+7",
        "1e99999999999",
        "123456789012345678901234567890",
        "\"\\ud800\"",
        "[]",
        "{}",
        " { \"a\" : [ 1 , true , { } , [ ] ] , \"b\" : \"\" } ",
    ] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
}

#[test]
fn depth_is_bounded_whichever_way_it_is_walked() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| {
            let middle = if open == "[" { "" } else { "1" };
            format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
        };
        let deep = nested(DEPTH_MAX);
        let bomb = nested(DEPTH_MAX + 1);
        assert_eq!(check(&deep), Ok(()));
        assert_eq!(walk(&mut Cursor::new(&deep)), Ok(()));
        assert_eq!(check(&bomb).unwrap_err().kind, SyntaxErrorKind::Depth);
        let walked = walk(&mut Cursor::new(&bomb));
        assert_eq!(walked.unwrap_err().kind, SyntaxErrorKind::Depth);
        // The outermost object is entered, and its values are skipped.
        let half = Cursor::new(&bomb).object(|cursor, _| cursor.value().map(drop));
        if open != "[" {
            assert_eq!(half.unwrap_err().kind, SyntaxErrorKind::Depth);
        }
    }
    assert_eq!(
        check(&"[".repeat(1_000_000)).unwrap_err().kind,
        SyntaxErrorKind::Depth
    );
}

#[test]
fn keys_are_bounded_whichever_way_they_are_walked() {
    let object = |keys: usize| {
        let members: Vec<String> = (0..keys).map(|key| format!("\"k{key}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let full = object(KEYS_MAX);
    let over = object(KEYS_MAX + 1);
    assert_eq!(check(&full), Ok(()));
    assert_eq!(walk(&mut Cursor::new(&full)), Ok(()));
    assert_eq!(check(&over).unwrap_err().kind, SyntaxErrorKind::Keys);
    let walked = walk(&mut Cursor::new(&over));
    assert_eq!(walked.unwrap_err().kind, SyntaxErrorKind::Keys);
}

#[test]
fn control_characters_are_found_at_every_distance() {
    for length in 0..200 {
        let text = format!("\"{}\u{1}{}\"", "é".repeat(length), "x".repeat(length));
        let error = check(&text).unwrap_err();
        assert_eq!(error.kind, SyntaxErrorKind::Control);
        assert_eq!(error.at, 1 + 2 * length);
    }
}

proptest! {
    #[test]
    fn strings_end_where_they_end(inside in "[ -!#-\\[\\]-~é界😀]{0,200}") {
        let text = format!("\"{inside}\",");
        let mut cursor = Cursor::new(&text);
        prop_assert_eq!(cursor.string().unwrap().raw(), inside.as_str());
        prop_assert_eq!(cursor.position(), text.len() - 1);
    }

    #[test]
    fn we_accept_what_serde_json_accepts(text in "[\\[\\]{}:,\"\\\\ \\n01eE.+\\-atrufalsn\u{1}]{0,24}") {
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(check(&text).is_ok(), theirs);
        let mut cursor = Cursor::new(&text);
        let walked = walk(&mut cursor).and_then(|()| cursor.end());
        prop_assert_eq!(walked.is_ok(), theirs);
    }
}
