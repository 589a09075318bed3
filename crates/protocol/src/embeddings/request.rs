//! An embedding request in the form of the client.

use std::collections::HashSet;

use bytes::Bytes;

use crate::convert;
use crate::count::InputCount;
use crate::failure::Failure;
use crate::request_head;

/// The form of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A list of inputs: `/v1/embeddings`.
    List,
    /// One content item: `:embedContent`.
    Content,
    /// Several content items: `:batchEmbedContents`.
    Contents,
    /// A list of instances: `:predict`. Only upstreams have it.
    Instances,
    /// One content item, with its settings in a separate object: `:embedContent` of a cloud vendor.
    HostedContent,
}

/// How a vector is encoded in the list form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Numbers.
    #[default]
    Float,
    /// Little-endian float32, in base64.
    Base64,
}

/// A request that was read and accepted.
#[derive(Debug)]
pub struct Request {
    /// The form that the client used.
    pub form: Form,
    /// The public model id.
    pub model: String,
    /// The counted input tokens.
    pub input: InputCount,
    pub(super) encoding: Encoding,
    pub(super) body: Bytes,
    /// The positions of the values that name the model.
    pub(super) model_spans: Vec<std::ops::Range<usize>>,
}

impl Request {
    /// The URLs that an upstream may fetch for this request, at most one more than `accepted`.
    pub fn fetchable_urls(&self, accepted: usize) -> Result<HashSet<String>, Failure> {
        request_head::fetchable_media_urls(&self.body, accepted)
    }

    /// The memory that the inputs take while the request is written in another form. Fails if there are too many.
    pub fn conversion_memory(&self) -> Result<usize, Failure> {
        convert::estimate_memory(&self.body)
    }
}

/// A request to be sent to an upstream.
#[derive(Debug)]
pub struct EncodedRequest {
    /// The form of the upstream.
    pub form: Form,
    /// The bytes of the request.
    pub pieces: Vec<Bytes>,
    /// The value of `x-dropped-params`.
    pub dropped: Option<String>,
}

/// The part of a request that every form can express.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) texts: Vec<String>,
    pub(super) dimensions: Option<u64>,
}
