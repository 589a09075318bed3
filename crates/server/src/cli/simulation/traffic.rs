//! Makes real calls of the demo's customers through the simulator, so that the console shows live traffic.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fetch;

/// The delay between two calls.
pub(super) const PAUSE: Duration = Duration::from_secs(3);
/// The traffic ends after this many calls.
pub(super) const CALLS_MAX: usize = 2_000;

/// The requests that the customers send in turn: path and body.
const REQUESTS: [(&str, &str); 9] = [
    (
        "/v1/chat/completions",
        r#"{"model":"sim/chat","stream":true,"messages":[{"role":"user","content":"Which size fits a person of 1.80 m?"}]}"#,
    ),
    (
        "/v1/messages",
        r#"{"model":"sim/chat","max_tokens":300,"system":"You answer customers of a bicycle shop.","messages":[{"role":"user","content":"My order has not arrived. What can I do?"}]}"#,
    ),
    (
        "/v1/embeddings",
        r#"{"model":"sim/embed","input":["red city bike","blue road bike","helmet"]}"#,
    ),
    (
        "/v1/chat/completions",
        r#"{"model":"sim/mini","messages":[{"role":"user","content":"Classify as praise or complaint: the brakes squeak."}]}"#,
    ),
    (
        "/v1/responses",
        r#"{"model":"sim/reason","stream":true,"input":"How many tiles of 30 by 30 cm cover 12 square metres?"}"#,
    ),
    (
        "/v1beta/models/sim/mini:generateContent",
        r#"{"contents":[{"role":"user","parts":[{"text":"Translate to German: good morning."}]}]}"#,
    ),
    (
        "/v1/messages",
        r#"{"model":"sim/chat","stream":true,"max_tokens":500,"top_k":40,"messages":[{"role":"user","content":"Summarise the last three tickets."}]}"#,
    ),
    (
        "/v1/tts",
        r#"{"model":"sim/voice","text":"Your order is on its way.","language":"en","output_format":{"codec":"wav"}}"#,
    ),
    (
        "/v1/chat/completions",
        r#"{"model":"sim/chat","stream":true,"seed":7,"messages":[{"role":"user","content":"Write two sentences about rain."}]}"#,
    ),
];

/// One of this many calls names a model that does not exist, which is a common mistake.
const MISTAKE_EVERY: usize = 40;
const MISTAKE: (&str, &str) = (
    "/v1/chat/completions",
    r#"{"model":"sim/large","messages":[{"role":"user","content":"Hello"}]}"#,
);

/// Creates one video, so that the page of tasks has a result to play. The gateway stores the videos of this protocol.
const FILM: (&str, &str) = (
    "/v1beta/interactions",
    r#"{"model":"sim/omni","background":true,"input":"A paper boat on a pond"}"#,
);

/// The running traffic. [`Traffic::stop`] ends it.
#[derive(Debug)]
pub(super) struct Traffic {
    calls: JoinHandle<Option<()>>,
    stop: CancellationToken,
}

impl Traffic {
    /// Starts to call the gateway at this address, with these keys in turn.
    pub(super) fn start(gateway: SocketAddr, secrets: Vec<String>) -> Self {
        let stop = CancellationToken::new();
        let calls = tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            for number in 0..CALLS_MAX {
                let Some(secret) = secrets.get(number % secrets.len().max(1)) else {
                    return;
                };
                let (path, body) = request(number);
                // Errors are ignored: a refused call is a journal row like any other.
                let _ = fetch::send(gateway, Method::POST, path, secret, body).await;
                tokio::time::sleep(PAUSE).await;
            }
        }));
        Self { calls, stop }
    }

    /// Ends the traffic and aborts a running call.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        let _ = self.calls.await;
    }
}

fn request(number: usize) -> (&'static str, &'static str) {
    match number {
        0 => FILM,
        _ if number % MISTAKE_EVERY == MISTAKE_EVERY / 2 => MISTAKE,
        _ => REQUESTS[number % REQUESTS.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the error rate is low enough for the console to show no notice while the demo runs.
    #[test]
    fn few_calls_are_mistakes() {
        let mistakes = (0..CALLS_MAX).filter(|number| request(*number) == MISTAKE);
        let mistakes = mistakes.count();
        assert!(mistakes > 0 && mistakes * 100 < CALLS_MAX * 4, "{mistakes}");
    }
}
