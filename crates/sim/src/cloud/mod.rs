//! Clouds that host the vendors' models: Azure, and Vertex AI.
//!
//! A cloud stands before the protocols. It checks the cloud's own credentials (keys in its own headers, and tokens
//! that its token endpoints have issued), converts the request to the vendor's protocol, and changes the answer as the
//! cloud does.
//!
//! | path | what |
//! |---|---|
//! | `/openai/v1/…` | Azure, v1 |
//! | `/openai/deployments/{deployment}/…?api-version=` | Azure, dated |
//! | `/anthropic/v1/messages` | Anthropic models in Azure Foundry |
//! | `/{tenant}/oauth2/v2.0/token` | tokens of Azure, for a client's id and secret |
//! | `/v1/projects/{project}/locations/{location}/publishers/{publisher}/models/…` | Vertex AI, by token |
//! | `…/models/{model}:predictLongRunning`, `…:fetchPredictOperation` | videos of Vertex AI |
//! | `/v1/publishers/google/models/…` | Vertex AI, by API key |
//! | `/token`, `/token/life-N` | tokens of Google, for the assertion of [`service_account`] |
//!
//! A token lives for an hour, or for N seconds if the tenant or the last segment of the path is `life-N`. Calls of
//! token endpoints are logged as calls of the model `token`, and take the faults that are queued for it, except for those
//! that need a stream. A model whose name begins with `sim-misplaced` is refused as an invalid resource, with its full
//! name (Vertex AI).

mod azure;
mod azure_answer;
mod convert;
mod google_account;
mod issued_tokens;
mod rsa;
mod vertex;
mod vertex_video;

pub(crate) use convert::{Outcome, receive};
pub use google_account::service_account;
pub(crate) use issued_tokens::{IssuedTokens, TOKEN_MODEL};
