use super::*;

fn read(text: &str) -> Result<Members<'_>, MembersError> {
    Members::read(text.as_bytes(), Spelling::One)
}

#[test]
fn members_know_their_spans() {
    let text = r#" { "mod\u0065l" : "a/b" , "n":null,"x":[1, 2]}"#;
    let members = read(text).unwrap();
    let model = members.get("model").unwrap().unwrap();
    assert_eq!(&text[model.span()], "\"a/b\"");
    let list = members.array("x").unwrap().unwrap();
    assert_eq!(&text[list.span()], "[1, 2]");
    assert!(members.get("n").unwrap().is_none());
    assert!(members.find("n").unwrap().is_some());
    assert!(members.find("y").unwrap().is_none());
    assert_eq!(&text[members.inside()..], &text[2..]);
}

#[test]
fn an_empty_object_takes_no_memory() {
    assert_eq!(read("{}").unwrap().list.capacity(), 0);
    assert!(read(r#"{"a":1}"#).unwrap().list.capacity() > 1);
}

#[test]
fn doubles_are_refused_however_they_are_written() {
    for text in [
        r#"{"model":"a","model":"a"}"#,
        r#"{"model":"a","mod\u0065l":"b"}"#,
        r#"{"Model":"a","model":"b"}"#,
        r#"{"MODEL":"a","x":1,"mOdel":"b"}"#,
        "{\"me\u{17f}sages\":[],\"messages\":[]}",
        "{\"\u{212a}ey\":1,\"key\":2}",
        r#"{"":1,"":2}"#,
    ] {
        for text in [text.to_owned(), lengthened(text)] {
            let error = read(&text).unwrap_err();
            assert!(matches!(error, MembersError::Duplicate(_)), "{text}");
        }
    }
}

/// The object with enough additional members that lookups use `order`.
fn lengthened(text: &str) -> String {
    let (members, _) = text.rsplit_once('}').unwrap();
    let more: Vec<String> = (0..SHORT).map(|n| format!(r#""more_{n}":{n}"#)).collect();
    format!("{members},{}}}", more.join(","))
}

#[test]
fn the_members_of_a_long_object_are_found() {
    let text = lengthened(r#"{"model":"a/b","Stream":true}"#);
    let members = read(&text).unwrap();
    assert_eq!(members.string("model").unwrap().as_deref(), Some("a/b"));
    for n in 0..SHORT {
        let name = format!("more_{n}");
        let value = members.find(&name).unwrap().unwrap();
        assert_eq!(value.text(), n.to_string());
    }
    assert!(members.boolean("stream").is_err());
    assert!(members.find("more_16").unwrap().is_none());
}

#[test]
fn two_spellings_are_doubles_only_where_both_are_read() {
    let text = r#"{"max_tokens":1,"maxTokens":2}"#;
    assert!(read(text).is_ok());
    let error = Members::read(text.as_bytes(), Spelling::SnakeOrCamel).unwrap_err();
    assert_eq!(error, MembersError::Duplicate("maxTokens".to_owned()));
    for text in [r#"{"max_tokens":1}"#, r#"{"maxTokens":1}"#] {
        let members = Members::read(text.as_bytes(), Spelling::SnakeOrCamel).unwrap();
        assert_eq!(
            members.integer("max_tokens").unwrap(),
            Some(Integer::Value(1))
        );
    }
}

#[test]
fn a_name_is_known_in_camel_case() {
    for name in ["contents", "system_instruction", "a_b_c", "x_1"] {
        assert!(is_camel(&camel(name), name), "{name}");
    }
    for found in [
        "system_instruction",
        "systeminstruction",
        "systemInstructions",
        "system",
    ] {
        assert!(!is_camel(found, "system_instruction"), "{found}");
    }
}

#[test]
fn a_name_in_another_case_is_refused_when_asked_for() {
    let members = read(r#"{"Stream":true}"#).unwrap();
    let failure = members.boolean("stream").unwrap_err();
    assert_eq!(failure.param.as_deref(), Some("stream"));
    assert!(members.boolean("store").unwrap().is_none());
}

#[test]
fn wrong_types_are_refused_by_name() {
    let text = r#"{"a":"1","b":1,"c":{"d":1,"e":{}},"f":"\ud800"}"#;
    let members = read(text).unwrap();
    let failures = [
        (members.integer("a").map(drop), "a"),
        (members.boolean("b").map(drop), "b"),
        (members.string("c").map(drop), "c"),
        (members.array("c").map(drop), "c"),
        (members.object("b").map(drop), "b"),
        (members.string("f").map(drop), "f"),
    ];
    for (result, param) in failures {
        assert_eq!(result.unwrap_err().param.as_deref(), Some(param));
    }
    let nested = members.object("c").unwrap().unwrap();
    let nested = Members::nested(nested, "c.", Spelling::One).unwrap();
    let failure = nested.boolean("d").unwrap_err();
    assert_eq!(failure.param.as_deref(), Some("c.d"));
    let inner = nested.object("e").unwrap().unwrap();
    assert_eq!(&text[inner.span()], "{}");
}

#[test]
fn values_that_are_not_objects_are_refused() {
    for text in ["[]", "null", "\"x\"", "1"] {
        assert_eq!(read(text).unwrap_err(), MembersError::NotObject);
    }
    for text in ["", "{", "{}x", "\u{feff}{}"] {
        assert!(matches!(read(text), Err(MembersError::Syntax(_))), "{text}");
    }
    assert!(Members::read(b"{\"a\":\"\xff\"}", Spelling::One).is_err());
    assert_eq!(read(r#"{"\ud800":1}"#).unwrap_err(), MembersError::Name);
}
