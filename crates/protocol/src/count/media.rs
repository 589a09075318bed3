//! Finds the media of a conversation and estimates the tokens of each.
//!
//! Counted as text, the base64 of an image would cost a hundred times as much as the image. But the same bytes
//! in a tool's schema or in the arguments of a call are text, and must cost as much as text. So a string counts
//! as a medium only where dialects have media: in a part of a message, in a media member, with a declared type.
//! Everything else is text. The result of a tool is text too, unless it is a list of content blocks.

use crate::json::Text;
use crate::json::text::unescape;

/// The estimated tokens of an image. Its size in bytes adds a few more.
pub const IMAGE_TOKENS: u64 = 1_600;
/// The maximum number of tokens that any vendor charges for one image.
pub(super) const IMAGE_TOKENS_MAX: u64 = 16_384;
/// One more token per this many bytes of an image.
const IMAGE_BYTES_PER_TOKEN: u64 = 512;
/// One token per this many bytes of audio: 32 tokens for a second of 16 kbit/s. Uncompressed audio,
/// which has twenty times the bytes, is detected by its first bytes.
const AUDIO_BYTES_PER_TOKEN: u64 = 64;
const WAVEFORM_BYTES_PER_TOKEN: u64 = 256;
/// How an uncompressed audio file (`RIFF`) starts in base64.
const WAVEFORM_START: &str = "UklGR";

/// Limits for the depth of containers and of parts inside parts. No dialect nests media deeper.
const LEVELS_MAX: usize = 12;
const PARTS_MAX: usize = 4;
/// The maximum number of media that are kept until the result of a tool ends. A result with more of them is text.
pub(super) const RESULT_MEDIA_MAX: usize = 1_000;

/// The estimated tokens of an image of this many bytes, or of one that a URL names.
pub(crate) fn image_tokens(bytes: u64) -> u64 {
    (IMAGE_TOKENS + bytes / IMAGE_BYTES_PER_TOKEN).min(IMAGE_TOKENS_MAX)
}

/// Follows a JSON value and finds the media in it.
#[derive(Debug, Default)]
pub(super) struct MediaFinder<'a> {
    has_media: bool,
    /// The number of open containers.
    depth: usize,
    /// The first `known` entries are the outermost open containers, up to the first one that cannot contain media.
    levels: [Level; LEVELS_MAX],
    known: usize,
    /// The parts among `levels`. The first `part_count` entries are in use.
    parts: [Part<'a>; PARTS_MAX],
    part_count: usize,
    name: Name,
    /// The media in the open result of a tool. They count as text if the result has anything but content
    /// blocks.
    result: ToolResult<'a>,
}

/// The list that a tool returned, as far as it was read.
#[derive(Debug, Default)]
struct ToolResult<'a> {
    media: Vec<Medium<'a>>,
    has_other_data: bool,
}

/// The media that are known when a container ends.
#[derive(Debug)]
pub(super) enum EndedMedia<'a> {
    Part(Medium<'a>),
    Result(Vec<Medium<'a>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Level {
    /// A list of messages or parts.
    #[default]
    List,
    /// A list that a tool returned: content blocks, or data in any form, which a model reads as text.
    Result,
    /// A message, or a part of one.
    Part,
    /// An object inside a part that describes it.
    Description,
}

impl<'a> MediaFinder<'a> {
    pub(super) fn begin(&mut self, has_media: bool) {
        // Entries of `levels` and `parts` are written when a container opens, and not read before.
        self.has_media = has_media;
        self.depth = 0;
        self.known = 0;
        self.part_count = 0;
        self.name = Name::default();
    }

    pub(super) fn opened(&mut self, is_object: bool) {
        let outside = self.level();
        let is_known = self.has_media && self.known == self.depth;
        self.depth += 1;
        if !is_known {
            return;
        }
        if !(is_object && outside == Some(Level::Result)) {
            self.note_untyped(outside);
        }
        let level = match (outside, is_object) {
            // The model does not see deeper values in a content block of a tool's result, or sees them as
            // text.
            (Some(Level::Part), _) if self.is_in_result() => return,
            (None | Some(Level::List | Level::Result), true) => Level::Part,
            (None, false) => Level::List,
            (Some(Level::Part), false) if self.name == Name::Result => {
                self.result = ToolResult::default();
                Level::Result
            }
            (Some(Level::Part | Level::Description), true) if self.name.is_description() => {
                Level::Description
            }
            (Some(Level::Part | Level::Description), false) if self.name.is_list() => Level::List,
            _ => return,
        };
        let Some(place) = self.levels.get_mut(self.known) else {
            return;
        };
        if level == Level::Part {
            let Some(part) = self.parts.get_mut(self.part_count) else {
                return;
            };
            *part = Part::default();
            self.part_count += 1;
        }
        *place = level;
        self.known += 1;
        let declared = self.name.declares();
        if level == Level::Description
            && let Some(part) = self.part()
        {
            part.declared |= declared;
        }
    }

    /// Ends the innermost container. Returns the media of a part or of a tool's result when it ends.
    pub(super) fn closed(&mut self) -> Option<EndedMedia<'a>> {
        let level = self.level();
        self.depth = self.depth.saturating_sub(1);
        let level = level?;
        self.known = self.known.saturating_sub(1);
        match level {
            Level::List | Level::Description => None,
            Level::Result => Some(EndedMedia::Result(std::mem::take(&mut self.result).media())),
            Level::Part => {
                self.part_count = self.part_count.saturating_sub(1);
                let part = self.parts.get(self.part_count)?;
                if self.level() == Some(Level::Result) {
                    return self.result.note(part).map(EndedMedia::Part);
                }
                part.medium().map(EndedMedia::Part)
            }
        }
    }

    /// Reads a number, a boolean or `null`.
    pub(super) fn scalar(&mut self) {
        let level = self.level();
        self.note_untyped(level);
    }

    /// Records a value that a content block cannot have here. It is an item that is not an object, or a type
    /// that is not a string.
    fn note_untyped(&mut self, level: Option<Level>) {
        match level {
            Some(Level::Result) => self.result.has_other_data = true,
            Some(Level::Part) if self.name == Name::Type => {
                if let Some(part) = self.part() {
                    part.declared |= OTHER;
                }
            }
            _ => {}
        }
    }

    /// Whether the innermost part is an item of a tool's result.
    fn is_in_result(&self) -> bool {
        let outside = self.known.checked_sub(2).and_then(|at| self.levels.get(at));
        outside == Some(&Level::Result)
    }

    pub(super) fn name(&mut self, name: Text<'_>) {
        if self.level().is_some() {
            self.name = Name::of(&name.decode_lossy());
        }
    }

    /// Whether a string is kept as a medium, to be counted when its part ends.
    pub(super) fn keeps(&mut self, text: Text<'a>) -> bool {
        let level = self.level();
        if level == Some(Level::Result) {
            self.result.has_other_data = true;
        }
        if !matches!(level, Some(Level::Part | Level::Description)) {
            return false;
        }
        let name = self.name;
        let Some(part) = self.part() else {
            return false;
        };
        match name {
            Name::Type => part.declared |= declared_by_type(&text.decode_lossy(), level),
            Name::MimeType => part.declared |= declared_by_mime_type(&text.decode_lossy()),
            Name::Data if level == Some(Level::Part) => return part.keep(text, InlinePlace::Part),
            Name::Data => return part.keep(text, InlinePlace::Description),
            Name::Result => return part.keep(text, InlinePlace::Result),
            Name::Text if level == Some(Level::Part) => part.declared |= HAS_TEXT,
            Name::FileId => part.has_reference = true,
            Name::Link(declared) => {
                part.declared |= declared;
                if let Some(mime_type) = text_start(text).strip_prefix("data:") {
                    part.declared |= declared_by_mime_type(mime_type);
                    return part.keep(text, InlinePlace::Url);
                }
                part.has_reference = true;
            }
            Name::Text
            | Name::Description(_)
            | Name::List
            | Name::ListOrDescription
            | Name::Other => {}
        }
        false
    }

    /// The innermost container, if its path can lead to media.
    fn level(&self) -> Option<Level> {
        let is_known = self.known == self.depth;
        let level = self.levels.get(self.known.checked_sub(1)?);
        level.copied().filter(|_| is_known)
    }

    fn part(&mut self) -> Option<&mut Part<'a>> {
        self.parts.get_mut(self.part_count.checked_sub(1)?)
    }
}

/// The set of types that a part declares, and other facts that decide how its base64 counts. A client may
/// declare several types.
type DeclaredTypes = u16;
const IMAGE: DeclaredTypes = 1;
const AUDIO: DeclaredTypes = 2;
/// A document, which counts as text if `TEXT` is declared too.
const DOCUMENT: DeclaredTypes = 4;
const TEXT: DeclaredTypes = 8;
/// A PDF, a video or an unknown type, whose tokens cannot be derived from its bytes.
const UNBOUNDED: DeclaredTypes = 16;
/// A file that the upstream reads itself. Its tokens have no upper bound, even if its declared type
/// is an image.
const STORED: DeclaredTypes = 32;
/// A call that generated an image.
const GENERATED: DeclaredTypes = 64;
const TOOL_RESULT: DeclaredTypes = 128;
/// Any other type, or a type that is not a string.
const OTHER: DeclaredTypes = 256;
/// A content block with one of the five types that a tool's result may have.
const CONTENT: DeclaredTypes = 512;
/// A part with a text, which is a content block even without a type.
const HAS_TEXT: DeclaredTypes = 1_024;
const MEDIA: DeclaredTypes = IMAGE | AUDIO | DOCUMENT | TEXT | UNBOUNDED | STORED;

/// The member names that matter in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Name {
    #[default]
    Other,
    Type,
    MimeType,
    Text,
    /// Base64.
    Data,
    /// An image that the model generated, or what a function returned: a text, an object or a list.
    Result,
    FileId,
    /// A link or a `data:` URL, or an object that contains one.
    Link(DeclaredTypes),
    /// An object that describes its part.
    Description(DeclaredTypes),
    /// An array of parts.
    List,
    ListOrDescription,
}

impl Name {
    fn of(name: &str) -> Self {
        match name {
            "type" => Self::Type,
            "media_type" | "mime_type" | "mimeType" => Self::MimeType,
            "text" => Self::Text,
            "data" => Self::Data,
            "result" => Self::Result,
            "file_id" | "fileId" => Self::FileId,
            "url" | "uri" | "file_uri" | "fileUri" => Self::Link(0),
            "image_url" | "image" => Self::Link(IMAGE),
            "video_url" => Self::Link(UNBOUNDED),
            "audio_url" => Self::Link(AUDIO),
            "file_url" => Self::Link(DOCUMENT),
            // Base64 of a file in two dialects, an object with a link in a third.
            "file_data" | "fileData" => Self::Link(STORED),
            "source" | "inline_data" | "inlineData" | "function_response" | "functionResponse" => {
                Self::Description(0)
            }
            "input_audio" => Self::Description(AUDIO),
            "file" => Self::Description(DOCUMENT),
            "parts" => Self::List,
            "content" | "output" => Self::ListOrDescription,
            _ => Self::Other,
        }
    }

    fn is_description(self) -> bool {
        matches!(
            self,
            Self::Description(_) | Self::Link(_) | Self::ListOrDescription
        )
    }

    fn is_list(self) -> bool {
        matches!(self, Self::List | Self::ListOrDescription)
    }

    fn declares(self) -> DeclaredTypes {
        match self {
            Self::Description(declared) | Self::Link(declared) => declared,
            _ => 0,
        }
    }
}

/// The type that a `type` member declares. In a description only texts and results of tools count, because
/// other values name the encoding of the medium.
fn declared_by_type(word: &str, level: Option<Level>) -> DeclaredTypes {
    match word {
        "text" => TEXT | CONTENT,
        // Not results of tools: a message of the model, and a page that the upstream fetched, which may be a
        // document.
        "model_output" | "web_fetch_tool_result" | "web_fetch_result" => OTHER,
        _ if word.ends_with("_result") || word.ends_with("_output") => OTHER | TOOL_RESULT,
        _ if level == Some(Level::Description) => 0,
        "image" => IMAGE | CONTENT,
        "input_image" | "image_url" | "computer_screenshot" => IMAGE,
        "image_generation_call" => IMAGE | GENERATED,
        "audio" => AUDIO | CONTENT,
        "input_audio" | "audio_url" => AUDIO,
        "video" => UNBOUNDED | CONTENT,
        "input_video" | "video_url" => UNBOUNDED,
        "document" => DOCUMENT | CONTENT,
        "file" | "input_file" => DOCUMENT,
        _ => OTHER,
    }
}

/// The first characters of a string, decoded: enough to recognize a `data:` URL and its type.
fn text_start(text: Text<'_>) -> String {
    const CHARS: usize = 24;
    let mut start = String::with_capacity(CHARS);
    let mut rest = text.raw();
    while let Some(c) = rest.chars().next() {
        if start.len() >= CHARS {
            break;
        }
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let (c, length) = match c {
            '\\' => unescape(after.as_bytes()),
            c => (Some(c), 0),
        };
        start.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = after.get(length..).unwrap_or_default();
    }
    start
}

fn declared_by_mime_type(word: &str) -> DeclaredTypes {
    if word.starts_with("image") {
        IMAGE
    } else if word.starts_with("audio") {
        AUDIO
    } else if word.starts_with("text") {
        TEXT
    } else {
        UNBOUNDED
    }
}

/// Where a part has the bytes of its medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InlinePlace {
    /// `data` beside the type of the part.
    Part,
    /// `data` in an object that describes the part.
    Description,
    /// `result`.
    Result,
    /// A `data:` URL.
    Url,
}

/// A message or a part of one, with the members read so far.
#[derive(Debug, Clone, Copy, Default)]
struct Part<'a> {
    declared: DeclaredTypes,
    inline: Option<(Text<'a>, InlinePlace)>,
    /// Whether it contains a link or the id of a file.
    has_reference: bool,
}

impl<'a> Part<'a> {
    /// Keeps the bytes of a medium. A second string in the same part counts as text.
    fn keep(&mut self, text: Text<'a>, place: InlinePlace) -> bool {
        let is_first = self.inline.is_none();
        self.inline.get_or_insert((text, place));
        is_first
    }

    fn medium(&self) -> Option<Medium<'a>> {
        let has_reference = self.has_reference && self.declares(MEDIA);
        if self.inline.is_none() && !has_reference {
            return None;
        }
        let inline = self.inline.map(|(text, place)| {
            let is_text = self.is_text(place);
            (
                text,
                if is_text {
                    Kind::Text
                } else {
                    self.inline_kind()
                },
            )
        });
        Some(Medium {
            inline,
            named: has_reference.then(|| self.named_kind()),
            is_stored: has_reference && self.declares(STORED),
        })
    }

    fn declares(&self, any_of: DeclaredTypes) -> bool {
        self.declared & any_of != 0
    }

    /// Whether a string in this place is text, whatever media type is declared beside it. Upstreams of other
    /// dialects get the string as text, for example as the result of a tool.
    fn is_text(&self, place: InlinePlace) -> bool {
        match place {
            InlinePlace::Part => self.declares(OTHER),
            InlinePlace::Description => self.declares(TOOL_RESULT),
            InlinePlace::Result => self.declares(OTHER) || !self.declares(GENERATED),
            InlinePlace::Url => false,
        }
    }

    /// Whether an item of a tool's result is a content block.
    fn is_content(&self) -> bool {
        self.declares(CONTENT | HAS_TEXT) && self.declared & (OTHER | GENERATED) == 0
    }

    fn inline_kind(&self) -> Kind {
        if self.declares(UNBOUNDED) {
            Kind::Unbounded
        } else if self.declares(TEXT) {
            Kind::Text
        } else if self.declares(DOCUMENT) {
            Kind::Unbounded
        } else if self.declares(AUDIO) {
            Kind::Audio
        } else if self.declares(IMAGE) {
            Kind::Image
        } else {
            Kind::Text
        }
    }

    fn named_kind(&self) -> Kind {
        match self.declared & MEDIA & !STORED {
            IMAGE => Kind::Image,
            _ => Kind::Unbounded,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Not a medium.
    Text,
    Image,
    Audio,
    Unbounded,
}

impl<'a> ToolResult<'a> {
    /// Records an item that is an object. Returns the item's medium if the medium is known to be text,
    /// because no budget covers the memory to keep it.
    fn note(&mut self, item: &Part<'a>) -> Option<Medium<'a>> {
        self.has_other_data |= !item.is_content();
        let mut medium = item.medium()?;
        self.has_other_data |= self.media.len() >= RESULT_MEDIA_MAX;
        if self.has_other_data {
            medium.become_text();
            return Some(medium);
        }
        self.media.push(medium);
        None
    }

    /// The media of the whole result.
    fn media(mut self) -> Vec<Medium<'a>> {
        if self.has_other_data {
            self.media.iter_mut().for_each(Medium::become_text);
        }
        self.media
    }
}

/// A medium of a conversation: inline, referenced, or both.
#[derive(Debug)]
pub(super) struct Medium<'a> {
    inline: Option<(Text<'a>, Kind)>,
    named: Option<Kind>,
    is_stored: bool,
}

impl<'a> Medium<'a> {
    /// The estimated tokens. A medium that may fill the context counts as an image here.
    pub(super) fn tokens(&self) -> u64 {
        let inline = self.inline.map_or(0, |(text, kind)| {
            let bytes = decoded_bytes(text);
            match kind {
                Kind::Text => 0,
                Kind::Image => image_tokens(bytes),
                Kind::Audio if text.raw().starts_with(WAVEFORM_START) => {
                    bytes.div_ceil(WAVEFORM_BYTES_PER_TOKEN)
                }
                Kind::Audio => bytes.div_ceil(AUDIO_BYTES_PER_TOKEN),
                Kind::Unbounded => IMAGE_TOKENS,
            }
        });
        let named = self.named.map_or(0, |_| IMAGE_TOKENS);
        inline.saturating_add(named)
    }

    /// The upper bound for the tokens. `None` if only the context limits them.
    pub(super) fn tokens_max(&self) -> Option<u64> {
        let inline = match self.inline {
            None | Some((_, Kind::Text)) => 0,
            Some((_, Kind::Image)) => IMAGE_TOKENS_MAX,
            Some((text, Kind::Audio)) => text.raw().len() as u64,
            Some((_, Kind::Unbounded)) => return None,
        };
        let named = match self.named {
            None => 0,
            Some(Kind::Image) if !self.is_stored => IMAGE_TOKENS_MAX,
            Some(_) => return None,
        };
        Some(inline.saturating_add(named))
    }

    pub(super) fn fills_context(&self) -> bool {
        let kinds = [self.inline.map(|(_, kind)| kind), self.named];
        kinds.contains(&Some(Kind::Unbounded))
    }

    fn become_text(&mut self) {
        self.inline = self.inline.map(|(text, _)| (text, Kind::Text));
    }

    /// The inline string, if it turned out to be text.
    pub(super) fn text(&self) -> Option<Text<'a>> {
        let (text, kind) = self.inline?;
        (kind == Kind::Text).then_some(text)
    }

    /// Bytes of the request that are not text.
    pub(super) fn bytes(&self) -> u64 {
        match self.inline {
            None | Some((_, Kind::Text)) => 0,
            Some((text, _)) => text.raw().len() as u64,
        }
    }
}

fn decoded_bytes(base64: Text<'_>) -> u64 {
    (base64.raw().len() as u64).saturating_mul(3) / 4
}
