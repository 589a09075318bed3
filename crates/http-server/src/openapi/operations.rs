//! The table of operations of the public API.

use protocol::Family;
use protocol::Family::{Google, Interactions, Messages, OpenAi};

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    /// Decides the error envelope and the accepted credentials.
    pub(super) family: Family,
    pub(super) kind: Kind,
    pub(super) body: Body,
    pub(super) answer: Answer,
}

/// Whether an operation needs a key and calls a model, which decides its possible errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Needs no key.
    Open,
    /// Reads data of the gateway, or deletes a task. Needs a key, but calls no model.
    Read,
    /// Calls a model.
    Call,
}

/// The body of a request, by the name of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    None,
    Json(&'static str),
    Form(&'static str),
    JsonOrForm(&'static str, &'static str),
}

/// The content of a successful answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Json(&'static str),
    /// JSON, or events if the request asks for a stream.
    JsonOrEvents(&'static str),
    Events,
    /// Audio, or JSON if the model answers with JSON.
    Audio,
    /// A video or a picture, whole or a range of it.
    Media,
    /// The connection becomes a WebSocket.
    WebSocket,
    /// HTML for browsers, JSON for others.
    Page,
}

/// All operations. The document sorts them by path.
pub(super) const OPERATIONS: &[Operation] = &[
    read(
        "/v1/models",
        "catalog",
        "List the models that can be called",
        OpenAi,
        "ModelList",
    ),
    read(
        "/v1/models/{model}",
        "catalog",
        "Show a model",
        OpenAi,
        "Model",
    ),
    read(
        "/v1beta/models",
        "catalog",
        "List the models for clients of Generate Content",
        Google,
        "GoogleModelList",
    ),
    read(
        "/v1beta/models/{model}",
        "catalog",
        "Show a model for clients of Generate Content",
        Google,
        "GoogleModel",
    ),
    read(
        "/v1/balance",
        "catalog",
        "Show the balance of the key and its wallet",
        OpenAi,
        "Balance",
    ),
    text(
        "/v1/chat/completions",
        "Chat completions",
        OpenAi,
        "ChatRequest",
        "ChatCompletion",
    ),
    text(
        "/v1/responses",
        "Responses",
        OpenAi,
        "ResponsesRequest",
        "Response",
    ),
    text(
        "/v1/messages",
        "Messages",
        Messages,
        "MessagesRequest",
        "Message",
    ),
    text(
        "/v1beta/interactions",
        "Interactions, and Omni video tasks",
        Interactions,
        "InteractionRequest",
        "Interaction",
    ),
    text(
        "/v1/interactions",
        "Interactions, as current SDKs call it",
        Interactions,
        "InteractionRequest",
        "Interaction",
    ),
    call(
        "/v1/models/{model}:generateContent",
        "text",
        "Generate Content",
        Google,
        "GenerateRequest",
        "GenerateResponse",
    ),
    call(
        "/v1beta/models/{model}:generateContent",
        "text",
        "Generate Content",
        Google,
        "GenerateRequest",
        "GenerateResponse",
    ),
    events(
        "/v1/models/{model}:streamGenerateContent",
        "Generate Content, streamed",
    ),
    events(
        "/v1beta/models/{model}:streamGenerateContent",
        "Generate Content, streamed",
    ),
    call(
        "/v1/responses/input_tokens",
        "text",
        "Count the tokens of a Responses request",
        OpenAi,
        "ResponsesRequest",
        "OpenObject",
    ),
    call(
        "/v1/messages/count_tokens",
        "text",
        "Count the tokens of a Messages request",
        Messages,
        "OpenObject",
        "OpenObject",
    ),
    call(
        "/v1beta/models/{model}:countTokens",
        "text",
        "Count the tokens of contents",
        Google,
        "OpenObject",
        "OpenObject",
    ),
    call(
        "/v1/embeddings",
        "embeddings",
        "Make embeddings",
        OpenAi,
        "EmbeddingsRequest",
        "EmbeddingList",
    ),
    call(
        "/v1beta/models/{model}:embedContent",
        "embeddings",
        "Make an embedding of a content",
        Google,
        "OpenObject",
        "OpenObject",
    ),
    call(
        "/v1beta/models/{model}:batchEmbedContents",
        "embeddings",
        "Make embeddings of contents",
        Google,
        "OpenObject",
        "OpenObject",
    ),
    Operation {
        answer: Answer::JsonOrEvents("ImageResult"),
        ..call(
            "/v1/images/generations",
            "images",
            "Make pictures",
            OpenAi,
            "ImageRequest",
            "ImageResult",
        )
    },
    Operation {
        body: Body::JsonOrForm("ImageRequest", "ImageForm"),
        answer: Answer::JsonOrEvents("ImageResult"),
        ..call(
            "/v1/images/edits",
            "images",
            "Change pictures",
            OpenAi,
            "ImageRequest",
            "ImageResult",
        )
    },
    call(
        "/v1/videos/generations",
        "videos",
        "Create a video",
        OpenAi,
        "VideoRequest",
        "CreatedVideo",
    ),
    call(
        "/v1/videos/edits",
        "videos",
        "Create a changed video",
        OpenAi,
        "VideoRequest",
        "CreatedVideo",
    ),
    call(
        "/v1/videos/extensions",
        "videos",
        "Create a longer video",
        OpenAi,
        "VideoRequest",
        "CreatedVideo",
    ),
    call(
        "/v1/models/{model}:predictLongRunning",
        "videos",
        "Create a video by long-running predict",
        Google,
        "PredictRequest",
        "CreatedOperation",
    ),
    call(
        "/v1beta/models/{model}:predictLongRunning",
        "videos",
        "Create a video by long-running predict",
        Google,
        "PredictRequest",
        "CreatedOperation",
    ),
    call(
        "/v1/contents/generations/tasks",
        "videos",
        "Create a content task",
        OpenAi,
        "ContentTaskRequest",
        "CreatedContentTask",
    ),
    read(
        "/v1/contents/generations/tasks",
        "videos",
        "List the content tasks of the wallet",
        OpenAi,
        "ContentTaskList",
    ),
    read(
        "/v1/contents/generations/tasks/{id}",
        "videos",
        "Show a content task",
        OpenAi,
        "OpenObject",
    ),
    Operation {
        method: "delete",
        ..read(
            "/v1/contents/generations/tasks/{id}",
            "videos",
            "Cancel a content task or remove it",
            OpenAi,
            "OpenObject",
        )
    },
    read(
        "/v1/tasks/{id}",
        "videos",
        "Show a video task in the form of its protocol",
        OpenAi,
        "OpenObject",
    ),
    read(
        "/v1/videos/{id}",
        "videos",
        "Show a video",
        OpenAi,
        "OpenObject",
    ),
    read(
        "/v1beta/interactions/{id}",
        "videos",
        "Show an Omni video task",
        Interactions,
        "OpenObject",
    ),
    Operation {
        answer: Answer::Audio,
        ..call(
            "/v1/tts",
            "voice",
            "Speak a text",
            OpenAi,
            "SpeechRequest",
            "",
        )
    },
    Operation {
        answer: Answer::Audio,
        ..call(
            "/v1/audio/speech",
            "voice",
            "Speak a text, as common SDKs call it",
            OpenAi,
            "SpeechRequest",
            "",
        )
    },
    Operation {
        body: Body::Form("TranscriptForm"),
        ..call(
            "/v1/stt",
            "voice",
            "Transcribe speech",
            OpenAi,
            "",
            "OpenObject",
        )
    },
    Operation {
        body: Body::Form("TranscriptForm"),
        ..call(
            "/v1/audio/transcriptions",
            "voice",
            "Transcribe speech, as common SDKs call it",
            OpenAi,
            "",
            "OpenObject",
        )
    },
    voices("/v1/tts/voices", "List the voices of a model"),
    voices("/v1/tts/voices/{voice_id}", "Show a voice of a model"),
    session("/v1/realtime", "Talk with a model"),
    session("/v1/tts", "Speak a text as it is written"),
    session("/v1/stt", "Transcribe speech as it is spoken"),
    open(
        "/media/{id}",
        "media",
        "Fetch a video or a picture that a task made",
        Answer::Media,
    ),
    Operation {
        family: Google,
        ..open(
            "/v1beta/files/{id}:download",
            "media",
            "Download a video that a task made",
            Answer::Media,
        )
    },
    open(
        "/",
        "about",
        "What this gateway is, as a page or as JSON",
        Answer::Page,
    ),
    open(
        "/openapi.json",
        "about",
        "This description",
        Answer::Json("OpenObject"),
    ),
];

const fn read(
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    family: Family,
    answer: &'static str,
) -> Operation {
    Operation {
        method: "get",
        path,
        tag,
        summary,
        family,
        kind: Kind::Read,
        body: Body::None,
        answer: Answer::Json(answer),
    }
}

const fn open(
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    answer: Answer,
) -> Operation {
    Operation {
        kind: Kind::Open,
        answer,
        ..read(path, tag, summary, OpenAi, "")
    }
}

const fn call(
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    family: Family,
    body: &'static str,
    answer: &'static str,
) -> Operation {
    Operation {
        method: "post",
        kind: Kind::Call,
        body: Body::Json(body),
        ..read(path, tag, summary, family, answer)
    }
}

const fn text(
    path: &'static str,
    summary: &'static str,
    family: Family,
    body: &'static str,
    answer: &'static str,
) -> Operation {
    Operation {
        answer: Answer::JsonOrEvents(answer),
        ..call(path, "text", summary, family, body, answer)
    }
}

const fn events(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        answer: Answer::Events,
        ..call(path, "text", summary, Google, "GenerateRequest", "")
    }
}

const fn voices(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        kind: Kind::Call,
        ..read(path, "voice", summary, OpenAi, "OpenObject")
    }
}

const fn session(path: &'static str, summary: &'static str) -> Operation {
    Operation {
        kind: Kind::Call,
        answer: Answer::WebSocket,
        ..read(path, "voice", summary, OpenAi, "")
    }
}
