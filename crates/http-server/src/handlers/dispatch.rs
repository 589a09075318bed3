//! Identifies the caller of a request and runs the handler of its endpoint.

use engine::{Caller, Engine, FailedCall};
use http::request::Parts;
use hyper::body::Incoming;
use ledger::Balance;
use protocol::{Dialect, Failure};

use super::output::Output;
use super::{catalog, embeddings, images, media, page, tasks, text, voice, websocket};
use crate::context::RequestContext;
use crate::endpoint::{Endpoint, Target};
use crate::request::{credentials, headers};

/// Checks the head, finds the caller by its key, and runs the handler.
///
/// This future is as large as the largest handler's, and hyper copies it for every request. So all handlers are boxed,
/// except those that are called most.
pub(crate) async fn dispatch(
    context: &RequestContext,
    target: Target,
    head: &mut Parts,
    body: Incoming,
) -> Result<Output, FailedCall> {
    let (engine, limits) = (context.engine(), context.limits());
    headers::check_head(&head.headers, &head.uri, limits)?;
    if websocket::is_misplaced(&target.endpoint, head, limits.sdk_aliases) {
        return Err(Failure::websocket_not_supported().into());
    }
    if target.endpoint == Endpoint::Unknown {
        return Err(not_served().into());
    }
    if let Endpoint::Media(path, name) = target.endpoint {
        let address = limits.limited_address(context.connection.slot.address());
        let reply = Box::pin(media::serve(engine, address, name, path, head)).await?;
        return Ok(Output::Media(reply));
    }
    if let Endpoint::Page | Endpoint::PageFile(_) | Endpoint::OpenApi = &target.endpoint {
        let file = page::find(context, &target.endpoint, &head.headers);
        return Ok(Output::File(file.ok_or_else(not_served)?));
    }
    let connection = &context.connection;
    let caller = match connection.known_key {
        None => {
            let secret = credentials::find(target.family, &head.headers, &head.uri)
                .map_err(|_| Failure::invalid_api_key())?;
            engine.recognise(secret, &connection.last_key).await?
        }
        Some(key) => Box::pin(engine.recognise_key(key)).await?,
    };
    let caller = context.caller.get_or_init(|| caller);
    match target.endpoint {
        listing @ (Endpoint::Models
        | Endpoint::Model(_)
        | Endpoint::GoogleModels
        | Endpoint::GoogleModel(_)) => {
            let shown =
                catalog::show(&engine.catalog(), &caller.key, &listing, limits.sdk_aliases)?;
            Ok(Output::Document(shown))
        }
        Endpoint::Balance => Ok(Box::pin(balance(engine, caller)).await?),
        Endpoint::Text(Dialect::Interactions) => {
            Box::pin(text::interactions(context, caller, head, body)).await
        }
        Endpoint::Text(dialect) => text::text(context, caller, dialect, None, head, body).await,
        Endpoint::Named(named) => {
            text::text(context, caller, Dialect::Generate, Some(named), head, body).await
        }
        Endpoint::TokenCount(dialect) => {
            Box::pin(text::token_count(
                context, caller, dialect, None, head, body,
            ))
            .await
        }
        Endpoint::NamedTokenCount(model) => {
            let dialect = Dialect::Generate;
            Box::pin(text::token_count(
                context,
                caller,
                dialect,
                Some(model),
                head,
                body,
            ))
            .await
        }
        Endpoint::Embeddings => embeddings::embeddings(context, caller, None, head, body).await,
        Endpoint::Contents(named) => {
            embeddings::embeddings(context, caller, Some(named), head, body).await
        }
        Endpoint::Images(operation) => {
            Box::pin(images::images(context, caller, operation, head, body)).await
        }
        Endpoint::Speech(form) => Box::pin(voice::speech(context, caller, form, head, body)).await,
        Endpoint::Transcript(form) => {
            Box::pin(voice::transcript(context, caller, form, head, body)).await
        }
        Endpoint::Voices(name) => Box::pin(voice::voices(context, caller, name, head)).await,
        Endpoint::WebSocket(path) => {
            let upgrade = Box::pin(websocket::open(context, caller, path, head)).await?;
            Ok(Output::WebSocket(Box::new(upgrade)))
        }
        Endpoint::Video(ask) => Box::pin(tasks::create(context, caller, ask, head, body)).await,
        Endpoint::Task(id) => Ok(Output::Document(
            Box::pin(engine.task(&caller.key, &id)).await?.into(),
        )),
        Endpoint::ContentTasks => {
            let query = tasks::list_query(&head.uri)?;
            let list = Box::pin(engine.content_tasks(&caller.key, query)).await?;
            Ok(Output::Document(list))
        }
        Endpoint::TaskDeletion(id) => {
            Box::pin(engine.delete_task(&caller.key, &id)).await?;
            Ok(Output::Document(b"{}".to_vec()))
        }
        Endpoint::Media(..)
        | Endpoint::Page
        | Endpoint::PageFile(_)
        | Endpoint::OpenApi
        | Endpoint::Unknown => Err(not_served().into()),
    }
}

fn not_served() -> Failure {
    Failure::not_found("There is no such endpoint.")
}

async fn balance(engine: &Engine, caller: &Caller) -> Result<Output, Failure> {
    let (wallet, key) = engine.balance(&caller.key).await?;
    let document =
        serde_json::to_vec(&Balance::view(&wallet, &key)).map_err(|_| Failure::internal())?;
    Ok(Output::Document(document))
}
