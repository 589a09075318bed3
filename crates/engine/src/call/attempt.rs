//! One attempt on a channel, whose breaker must learn how it went.

use std::time::Instant;

use upstream::{CallOutcome, Channel};

/// An attempt that has not ended. Dropped without a report, it reports that nothing was learnt, so that a probe
/// whose caller left makes room for the next one.
#[derive(Debug)]
pub(crate) struct Attempt<'c> {
    channel: &'c Channel,
    is_reported: bool,
}

impl<'c> Attempt<'c> {
    pub(crate) fn on(channel: &'c Channel) -> Self {
        Self {
            channel,
            is_reported: false,
        }
    }

    /// Reports to the channel how the attempt went. Only the first report counts.
    pub(crate) fn report(&mut self, outcome: CallOutcome) {
        if !std::mem::replace(&mut self.is_reported, true) {
            self.channel.report(outcome, Instant::now());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.report(CallOutcome::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::Dialect;
    use tokio::net::TcpListener;
    use upstream::{BreakerState, ChannelSpec, Endpoint, Preset, Timeouts, UpstreamRequest};

    use super::*;

    #[tokio::test]
    async fn a_try_that_is_given_up_makes_room_for_the_next() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let spec = ChannelSpec {
            name: "silent".to_owned(),
            preset: Preset::Sim,
            base_url: Some(format!("http://{}/v1", silent.local_addr().unwrap())),
            credential: None,
            protocols: None,
            private_network: false,
            keeps_output_limit: None,
            client_gone_drain: None,
            counts_tokens: None,
        };
        let channel = Channel::new(spec, Timeouts::default()).unwrap();
        let now = Instant::now();
        let past = now.checked_sub(Duration::from_secs(30)).unwrap();
        let retry_after = Some(Duration::from_secs(1));
        channel.report(CallOutcome::Overloaded { retry_after }, past);
        assert_eq!(channel.state(|| now), BreakerState::Probe);

        let attempt = Attempt::on(&channel);
        let dialect = Dialect::Chat;
        let stream = false;
        let call = UpstreamRequest::json(Endpoint::Text { dialect, stream }, "any", Vec::new());
        // The caller leaves, since nobody ever answers here.
        let left = tokio::time::timeout(Duration::ZERO, channel.send(&call)).await;
        assert!(left.is_err());
        assert_ne!(
            channel.state(|| now),
            BreakerState::Probe,
            "the probe is under way"
        );
        drop(attempt);
        assert_eq!(channel.state(|| now), BreakerState::Probe);
    }
}
