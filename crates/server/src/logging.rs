//! Sets up the log on standard error: a line for each noteworthy event, none for a successful request.

use std::io::{self, IsTerminal as _};

use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;

/// Starts the log. It shows `level` and above, unless `TOLLGATE_LOG` names other levels, such as `debug` or
/// `info,upstream=debug`. Without a format, lines are text on a terminal and JSON everywhere else.
pub(crate) fn start(level: LevelFilter, format: Option<LogFormat>) {
    let setting = std::env::var("TOLLGATE_LOG").ok();
    let targets = setting.and_then(|text| text.parse::<Targets>().ok());
    let targets = targets.unwrap_or_else(|| Targets::new().with_default(level));
    let is_terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if is_terminal {
        LogFormat::Text
    } else {
        LogFormat::Json
    });
    let lines = lines(format, is_terminal, std::io::stderr);
    // Tests start the log several times in one process, and only the first start has an effect.
    let _ = tracing_subscriber::registry()
        .with(targets)
        .with(lines)
        .try_init();
}

/// Creates the layer that writes lines in a format. Only a terminal gets colours.
fn lines<S, W>(format: LogFormat, is_terminal: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_target(false);
    match format {
        LogFormat::Text if is_terminal => lines.with_ansi(true).boxed(),
        LogFormat::Text => lines.with_ansi(false).map_writer(OneLineEach).boxed(),
        LogFormat::Json => lines.with_ansi(false).json().flatten_event(true).boxed(),
    }
}

/// Makes writers that write each event on one line.
struct OneLineEach<M>(M);

impl<'w, M: MakeWriter<'w>> MakeWriter<'w> for OneLineEach<M> {
    type Writer = OneLine<M::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        OneLine(self.0.make_writer())
    }
}

/// Escapes control characters, so that a text of an upstream cannot imitate a log line of ours.
struct OneLine<W>(W);

impl<W: io::Write> io::Write for OneLine<W> {
    /// Writes one event, whose text includes its line break.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = event.strip_suffix(b"\n").unwrap_or(event);
        if line.iter().any(u8::is_ascii_control) {
            let mut spelt = Vec::with_capacity(event.len() + 16);
            for byte in line {
                if byte.is_ascii_control() {
                    spelt.extend(byte.escape_ascii());
                } else {
                    spelt.push(*byte);
                }
            }
            spelt.push(b'\n');
            self.0.write_all(&spelt)?;
        } else {
            self.0.write_all(event)?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;

    /// A writer whose text a test reads.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat) -> String {
        let text = Written::default();
        let writer = text.clone();
        let lines = lines(format, false, move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            let error = io::Error::other("it said \"no\"\nand\u{1b}[31m left");
            tracing::warn!(request_id = "req_1", status = 502, %error, "a call failed");
        });
        let text = text.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_of_json_is_one_object_with_the_fields_of_the_text() {
        let text = written(LogFormat::Json);
        let line: Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(line["timestamp"].is_string(), "{line}");
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "a call failed");
        assert_eq!(line["request_id"], "req_1");
        assert_eq!(line["status"], 502);
        assert_eq!(line["error"], "it said \"no\"\nand\u{1b}[31m left");
    }

    #[test]
    fn a_line_of_text_has_the_same_fields_and_no_escapes() {
        let text = written(LogFormat::Text);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.ends_with("it said \"no\"\\nand\\x1b[31m left\n"),
            "{text}"
        );
        for part in [
            "WARN",
            "a call failed",
            "request_id=\"req_1\"",
            "status=502",
            "it said",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(serde_json::from_str::<Value>(&text).is_err());
    }
}
