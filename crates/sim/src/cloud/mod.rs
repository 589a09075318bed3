//! Clouds that host the vendors' models: Azure and Vertex AI.
//!
//! Requests to a cloud pass through this module before they reach the protocols. It checks the cloud's own credentials
//! (keys in its own headers, and tokens that its token endpoints have issued), converts the request to the vendor's
//! protocol, and changes the answer as the cloud does.
//!
//! | path | endpoint |
//! |---|---|
//! | `/openai/v1/…` | Azure, v1 |
//! | `/openai/deployments/{deployment}/…?api-version=`, `/openai/…?api-version=` | Azure, dated |
//! | `/anthropic/v1/messages` | Anthropic models in Azure Foundry |
//! | `/{tenant}/oauth2/v2.0/token` | issues Azure tokens for a client's id and secret |
//! | `/v1/projects/{project}/locations/{location}/publishers/{publisher}/models/…` | Vertex AI, by token |
//! | `…/models/{model}:predictLongRunning`, `…:fetchPredictOperation` | videos of Vertex AI |
//! | `/v1/publishers/google/models/…` | Vertex AI, by API key |
//! | `/token`, `/token/life-N` | issues Google tokens for an assertion of [`service_account`] |
//!
//! A token is valid for an hour, or for N seconds if the tenant or the last segment of the path is `life-N`. Calls of
//! token endpoints are logged as calls of the model `token`. The faults that are queued for this model apply to them,
//! except those that need a stream. Vertex AI refuses a model whose name begins with `sim-misplaced` as an invalid
//! resource, and the error contains the full name of the resource.

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
