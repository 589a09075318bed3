//! Tests of a channel's settings, health and debug output.

use std::time::{Duration, Instant};

use protocol::Dialect;
use upstream::{
    BreakerState, CallOutcome, Channel, ChannelError, ChannelSpec, Protocol, Secret, Timeouts,
};

use crate::upstream_script::{HELLO, Peer, SECRET, both, call, upstream};

fn spec(preset: &str) -> ChannelSpec {
    ChannelSpec {
        name: "main".to_owned(),
        preset: preset.parse().unwrap(),
        base_url: None,
        credential: Some(Secret::new(SECRET)),
        account: upstream::Account::default(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    }
}

fn channel(spec: ChannelSpec) -> Channel {
    Channel::new(spec, Timeouts::default()).unwrap()
}

#[test]
fn settings_that_cannot_work_are_refused() {
    for (spec, error) in [
        (spec("openai-compatible"), ChannelError::NoBaseUrl),
        (spec("sim"), ChannelError::NoBaseUrl),
        (
            ChannelSpec {
                credential: Some(Secret::new("  ")),
                ..spec("openai")
            },
            ChannelError::EmptyCredential,
        ),
        (
            ChannelSpec {
                credential: Some(Secret::new("a\u{7f}b")),
                ..spec("openai")
            },
            ChannelError::Credential,
        ),
        (
            ChannelSpec {
                protocols: Some(vec![]),
                ..spec("openai")
            },
            ChannelError::NoProtocols,
        ),
    ] {
        assert_eq!(Channel::new(spec, Timeouts::default()).unwrap_err(), error);
    }
}

#[test]
fn a_call_goes_out_in_the_pinned_dialect_or_its_own_or_the_channels_first() {
    let openai = channel(spec("openai"));
    let anthropic = channel(spec("anthropic"));
    let gemini = channel(spec("gemini"));
    let media = channel(ChannelSpec {
        protocols: Some(vec![Protocol::Images]),
        ..spec("openai")
    });
    for (channel, client, pinned, found) in [
        (&openai, Dialect::Chat, None, Some(Dialect::Chat)),
        (&openai, Dialect::Responses, None, Some(Dialect::Responses)),
        (&openai, Dialect::Messages, None, Some(Dialect::Chat)),
        (
            &openai,
            Dialect::Chat,
            Some(Dialect::Responses),
            Some(Dialect::Responses),
        ),
        (&openai, Dialect::Chat, Some(Dialect::Generate), None),
        (&anthropic, Dialect::Chat, None, Some(Dialect::Messages)),
        (&gemini, Dialect::Chat, None, Some(Dialect::Generate)),
        (
            &gemini,
            Dialect::Interactions,
            None,
            Some(Dialect::Interactions),
        ),
        (&media, Dialect::Chat, None, None),
    ] {
        assert_eq!(
            channel.text_dialect_for(client, pinned),
            found,
            "{client} {pinned:?}"
        );
    }
}

#[test]
fn nothing_of_a_channel_shows_its_credential() {
    let channel = channel(spec("anthropic"));
    for shown in [
        format!("{channel:?}"),
        format!("{channel:#?}"),
        format!("{:?}", channel.spec()),
    ] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[tokio::test]
async fn no_error_and_no_answer_shows_the_credential() {
    for answer in ["garbage", HELLO] {
        let (listener, channel) = upstream().await;
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            peer.request().await;
            peer.say(answer).await;
        };
        let shown = match both(server, channel.send(&call("{}"))).await {
            Ok(incoming) => format!("{incoming:?} {:#?}", incoming.body),
            Err(error) => format!("{error} {error:?} {error:#?}"),
        };
        assert!(
            !shown.contains("secret") && !shown.contains("Bearer"),
            "{shown}"
        );
    }
}

#[test]
fn a_channel_without_the_credential_it_needs_is_not_live() {
    let now = Instant::now();
    for (preset, live) in [("openai", false), ("openai-compatible", true)] {
        let bare = ChannelSpec {
            credential: None,
            account: upstream::Account::default(),
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            ..spec(preset)
        };
        assert_eq!(channel(bare).is_live(|| now), live, "{preset}");
    }
}

#[test]
fn a_refused_credential_unlists_a_channel_until_it_is_time_to_try_again() {
    let channel = channel(spec("openai"));
    let now = Instant::now();
    let later = now + Duration::from_secs(60);
    assert!(channel.is_live(|| now));
    assert_eq!(channel.credential_retry_in(now), None);
    channel.report(CallOutcome::CredentialRefused, now);
    assert!(!channel.is_live(|| now));
    assert_eq!(
        channel.credential_retry_in(now),
        Some(Duration::from_secs(60))
    );
    assert!(channel.is_live(|| later));
    assert_eq!(channel.credential_retry_in(later), None);
    channel.report(CallOutcome::CredentialRefused, later);
    assert!(!channel.is_live(|| later));
    channel.report(CallOutcome::Served, later);
    assert!(channel.is_live(|| later));
}

#[test]
fn trouble_of_other_kinds_does_not_unlist_a_channel() {
    let channel = channel(spec("openai"));
    let now = Instant::now();
    let wait = Duration::from_secs(9);
    channel.report(
        CallOutcome::Overloaded {
            retry_after: Some(wait),
        },
        now,
    );
    assert_eq!(channel.state(|| now), BreakerState::Open { since: now });
    assert!(channel.is_live(|| now));
    assert_eq!(channel.credential_retry_in(now), None);
}

#[tokio::test]
async fn sending_on_a_rested_channel_is_the_probe_and_its_report_ends_the_trouble() {
    let (listener, channel) = upstream().await;
    let past = Instant::now().checked_sub(Duration::from_secs(30)).unwrap();
    let wait = Some(Duration::from_secs(10));
    channel.report(CallOutcome::Overloaded { retry_after: wait }, past);
    assert_eq!(channel.state(Instant::now), BreakerState::Probe);
    let server = async {
        let mut peer = Peer::accept(&listener).await;
        peer.request().await;
        peer.say(HELLO).await;
    };
    let incoming = both(server, channel.send(&call("{}"))).await.unwrap();
    assert_eq!(
        channel.state(Instant::now),
        BreakerState::Open { since: past }
    );
    let outcome = CallOutcome::of_status(incoming.status, incoming.retry_after);
    channel.report(outcome, Instant::now());
    assert_eq!(channel.state(Instant::now), BreakerState::Closed);
}
