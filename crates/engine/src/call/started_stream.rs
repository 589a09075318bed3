//! A stream before its first content. Until then another route may be tried.

use http::HeaderValue;
use protocol::{ByteQueue, Failure};

use crate::call::attempt::Attempt;
use crate::call::route_failure::RouteFailure;
use crate::call::stream_source::StreamSource;
use crate::catalog::Route;
use crate::failures::no_memory_for;

/// A stream whose response head has arrived.
pub(super) struct StartedStream {
    pub(super) content_type: HeaderValue,
    pub(super) source: StreamSource,
    pub(super) out: ByteQueue,
    /// The failure of the stream, if it broke in the same read that contained its first content.
    pub(super) broken: Option<Failure>,
}

impl StartedStream {
    /// Reads until the stream has delivered content or has ended.
    pub(super) async fn read_until_content(
        &mut self,
        route: &Route,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), RouteFailure> {
        loop {
            match self.source.upstream.next().await {
                Some(Ok(chunk)) => {
                    if let Err(broken) = self.source.translator.push(chunk, &mut self.out) {
                        return self.broke(RouteFailure::broken(route, &broken, attempt));
                    }
                    if !self.source.charge(&self.out) {
                        let failed = RouteFailure::stop(no_memory_for("this answer"));
                        return self.broke(RouteFailure {
                            may_have_run: true,
                            ..failed
                        });
                    }
                }
                Some(Err(error)) => return Err(RouteFailure::lost(route, &error, attempt)),
                None => {
                    let ended = self.source.translator.end(&mut self.out);
                    return ended.map_err(|broken| RouteFailure::broken(route, &broken, attempt));
                }
            }
            let summary = self.source.translator.summary();
            if summary.content || summary.ended {
                return Ok(());
            }
        }
    }

    /// Handles a break of the stream. Content that came before the break is delivered, followed by the error. Whether
    /// another route is tried must not depend on how the bytes were split into reads (S3).
    fn broke(&mut self, failed: RouteFailure) -> Result<(), RouteFailure> {
        if !self.source.translator.summary().content {
            return Err(failed);
        }
        self.broken = Some(failed.failure);
        Ok(())
    }
}
