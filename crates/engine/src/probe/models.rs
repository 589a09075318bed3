//! Asks an upstream which models its account can call.

use std::time::Duration;

use protocol::{ModelList, read_model_list};
use upstream::{
    AddressPolicy, Channel, ChannelError, ChannelSpec, Endpoint, Timeouts, UpstreamRequest,
};

use super::ask::{ANSWERED_WITHIN, AskError, ask};
use crate::engine::Engine;

/// The maximum size of a list. The longest known lists have half a megabyte.
const LIST_BYTES_MAX: usize = 8 << 20;

/// The upstream's answer to a request for its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelsAnswer {
    /// The list, if the upstream returned one.
    pub list: Option<ModelList>,
    /// The status of the upstream's answer, if there was one.
    pub status: Option<u16>,
    /// A sentence for the operator. It may quote the upstream.
    pub message: String,
    pub total: Duration,
}

impl Engine {
    /// Creates a channel that is not configured yet. It may call public addresses, those of `outbound.allow`, and the
    /// origins of configured channels, which the operator has approved. It must not call this gateway, because its
    /// calls would then call the gateway again.
    pub fn proposed_channel(&self, spec: ChannelSpec) -> Result<Channel, ChannelError> {
        let timeouts = Timeouts {
            first_byte: ANSWERED_WITHIN,
            idle: ANSWERED_WITHIN,
            total: ANSWERED_WITHIN,
            ..Timeouts::default()
        };
        let policy = AddressPolicy {
            listeners: self.guarded().listeners().to_vec(),
            ..self.guarded().policy().clone()
        };
        let channel = Channel::guarded(spec, timeouts, policy)?;
        if channel.leads_to(self.public_url()) {
            let url = self.public_url().to_owned();
            return Err(ChannelError::BaseUrl(url, "is the address of this gateway"));
        }
        let catalog = self.catalog();
        let is_known = |known: &Channel| known.shares_origin_with(&channel);
        if catalog.channels().any(is_known) {
            return Channel::new(channel.spec().clone(), timeouts);
        }
        Ok(channel)
    }
}

/// Asks a channel for its models.
pub async fn ask_for_models(channel: &Channel) -> ModelsAnswer {
    let call = UpstreamRequest::json(Endpoint::Models, "", Vec::new());
    let answered = ask(channel, &call, LIST_BYTES_MAX).await;
    let total = answered.total;
    match answered.outcome {
        Ok((status, body)) => match read_model_list(&body) {
            Some(list) => ModelsAnswer {
                message: "The upstream answered.".to_owned(),
                list: Some(list),
                status: Some(status),
                total,
            },
            None => ModelsAnswer {
                list: None,
                status: Some(status),
                message: "The upstream answered, but not with a list of models. Check the address."
                    .to_owned(),
                total,
            },
        },
        Err(AskError { status, message }) => ModelsAnswer {
            list: None,
            status,
            message,
            total,
        },
    }
}
