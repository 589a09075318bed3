//! Sends a request over one route.

use upstream::{CallOutcome, Sent, UpstreamRequest, UpstreamResponse};

use crate::call::attempt::Attempt;
use crate::call::progress::Progress;
use crate::call::route_failure::RouteFailure;
use crate::catalog::Route;

/// Sends a request over one route and returns the response if its status is a success.
pub(crate) async fn send(
    route: &Route,
    public_model: &str,
    call: &UpstreamRequest,
    progress: &Progress,
    attempt: &mut Attempt<'_>,
) -> Result<UpstreamResponse, RouteFailure> {
    // From here on the upstream may have received a part of the request. The mark is removed below if no byte was sent.
    let was_sent = progress.is_sent();
    progress.mark_sent();
    let sent = attempt.send(call).await;
    let response = match sent {
        Ok(response) => response,
        Err(error) => {
            if error.sent == Sent::No && !was_sent {
                progress.mark_unsent();
            }
            return Err(RouteFailure::lost(route, &error, attempt));
        }
    };
    // Later code decides whether the body is a usable answer.
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    let outcome = CallOutcome::of_status(response.status, response.retry_after);
    // The meaning of a 500 depends on its message, which may blame the request. Any other status is reported at once.
    if response.status != 500 {
        attempt.report(outcome);
    }
    // Boxed, because few calls get here.
    let refusal = RouteFailure::refused(
        route,
        public_model,
        call.endpoint,
        &call.body,
        response,
        attempt.request_id(),
    );
    let failed = Box::pin(refusal).await;
    attempt.report(if failed.may_try_next {
        outcome
    } else {
        CallOutcome::Served
    });
    Err(failed)
}
