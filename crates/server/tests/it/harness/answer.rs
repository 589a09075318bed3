//! Answers of a server: head, body, and checks of error envelopes.

use serde_json::Value;

use super::connection::BodyEnd;

#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// In wire order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// Reads a head without its closing empty line.
    pub(crate) fn read(text: &str) -> Self {
        let mut lines = text.split("\r\n");
        let status = lines.next().unwrap_or_default();
        assert!(status.starts_with("HTTP/1.1 "), "no status line: {text}");
        let status = status[9..12].parse().unwrap();
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_ascii_lowercase(), value.trim().to_owned())
            })
            .collect();
        Self { status, headers }
    }

    /// The value of a header. Panics if the header occurs twice.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} came twice");
        value
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) ended: BodyEnd,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{error} in {}", String::from_utf8_lossy(&self.body)),
        }
    }

    /// Asserts status 200 and returns the answer.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(
            self.status(),
            200,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        self
    }

    /// Status and code of an error. Panics if the answer is not a valid `OpenAI` envelope.
    #[track_caller]
    pub(crate) fn failure(&self) -> (u16, String) {
        let error = self.openai_error();
        (self.status(), error["code"].as_str().unwrap().to_owned())
    }

    /// The error object of an answer. Panics if the answer is not a valid `OpenAI` envelope.
    #[track_caller]
    pub(crate) fn openai_error(&self) -> Value {
        let whole = self.json();
        assert_eq!(self.header("content-type"), Some("application/json"));
        assert!(
            self.header("x-request-id")
                .is_some_and(|id| id.starts_with("req_")),
            "{:?}",
            self.head
        );
        let members: Vec<_> = whole.as_object().unwrap().keys().collect();
        assert_eq!(members, ["error"], "{whole}");
        let error = whole["error"].clone();
        assert_openai_error(&error);
        error
    }
}

/// Checks the members that clients of the `OpenAI` envelope read.
#[track_caller]
pub(crate) fn assert_openai_error(error: &Value) {
    let mut members: Vec<_> = error.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["code", "message", "param", "type"], "{error}");
    for name in ["code", "message", "type"] {
        let text = error[name].as_str().unwrap_or_default();
        assert!(!text.is_empty(), "{name} in {error}");
    }
    assert!(
        error["param"].is_null() || error["param"].is_string(),
        "{error}"
    );
}
