//! Handles the creation of video tasks, and reads the query of their list.

use std::borrow::Cow;

use engine::{Caller, FailedCall, ListQuery, VideoCall, VideoEndpoint};
use http::Uri;
use http::request::Parts;
use hyper::body::Incoming;
use protocol::Failure;

use super::output::Output;
use crate::context::RequestContext;
use crate::request::{Query, body, headers};

pub(super) async fn create(
    context: &RequestContext,
    caller: &Caller,
    ask: VideoEndpoint,
    head: &Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    headers::check_json_call(&head.headers)?;
    let limits = context.limits().body(context.limits().body_video_bytes);
    let account = context.memory_account(caller);
    let body = body::read(body, limits, account).await?;
    let call = VideoCall {
        arrival: context.arrival(caller),
        ask,
        body,
    };
    context
        .engine()
        .create_video(call)
        .await
        .map(Output::Answer)
}

/// Reads the query of a task list in the form that official clients of the content-task protocol send. Unknown filters
/// are ignored, such as the service tier, which clients cannot choose here.
pub(super) fn list_query(uri: &Uri) -> Result<ListQuery, Failure> {
    let query = Query::read(uri)?;
    let one = |name| {
        let value = query.get(name)?.map(Cow::into_owned);
        Ok::<_, Failure>(value.filter(|value| !value.is_empty()))
    };
    let ids = query.all("filter.task_ids")?;
    Ok(ListQuery {
        page: one("page_num")?,
        page_size: one("page_size")?,
        status: one("filter.status")?,
        model: one("filter.model")?,
        ids: ids.into_iter().map(Cow::into_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> ListQuery {
        let uri = format!("/v1/contents/generations/tasks?{query}");
        list_query(&uri.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_query_of_the_official_client_is_read() {
        let text = |text: &str| Some(text.to_owned());
        let query = "page_num=1&page_size=10&filter.status=succeeded&filter.model=bytedance%2Fx&filter.task_ids=a&filter.task_ids=b&filter.service_tier=default";
        assert_eq!(
            read(query),
            ListQuery {
                page: text("1"),
                page_size: text("10"),
                status: text("succeeded"),
                model: text("bytedance/x"),
                ids: vec!["a".to_owned(), "b".to_owned()],
            }
        );
        for query in ["", "page_num=&x=1&filter.status"] {
            assert_eq!(read(query), ListQuery::default(), "{query}");
        }
    }
}
