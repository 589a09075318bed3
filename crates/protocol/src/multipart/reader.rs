//! Reads a form from the pieces of a body.

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

use super::disposition::parameter;
use super::form::{Form, Part, list_name};
use crate::failure::Failure;

/// Smaller pieces of a body are joined before they are read. Each piece of a form costs a handle, keeps the whole buffer
/// that it is a part of, and is scanned for the start of a delimiter: far more than the few bytes for which a caller is
/// charged.
const JOINED_FROM_BYTES: usize = 4 << 10;
const BOUNDARY_BYTES_MAX: usize = 70;
const PARTS_MAX: usize = 64;
const HEADERS_BYTES_MAX: usize = 8 << 10;
const FILE_NAME_BYTES_MAX: usize = 255;
const FIELD_BYTES_MAX: usize = 64 << 10;
const PROMPT_BYTES_MAX: usize = 1 << 20;
/// Fields that may hold a picture as a data URI, alone or in a list. Only the limit of the whole body applies to them.
const PICTURES: [&str; 3] = ["image", "images", "mask"];

/// An error in the body of a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The content type has no boundary, or an invalid one.
    #[error("the boundary is missing or longer than 70 bytes")]
    Boundary,
    /// The body ended before the form did.
    #[error("the form breaks off")]
    Unfinished,
    /// A boundary is followed by neither a line end nor `--`.
    #[error("a boundary is followed by something else than a part")]
    Delimiter,
    /// More than 64 parts.
    #[error("the form has more than 64 parts")]
    Parts,
    /// The headers of a part exceed 8 KiB or are not text.
    #[error("the headers of a part are too long or no text")]
    Headers,
    /// A part without a name, or with a name or a file name above 255 bytes.
    #[error("a part has no name, or a file name above 255 bytes")]
    Name,
    /// A field above its limit.
    #[error("the field `{0}` is too long")]
    Field(String),
}

impl From<FormError> for Failure {
    fn from(error: FormError) -> Self {
        let failure = Self::invalid(format!("The body is not a form we can read: {error}."));
        match error {
            FormError::Field(name) => failure.param(name),
            _ => failure,
        }
    }
}

fn field_bytes_max(name: &str) -> usize {
    match name {
        "prompt" => PROMPT_BYTES_MAX,
        _ if PICTURES.contains(&list_name(name)) => usize::MAX,
        _ => FIELD_BYTES_MAX,
    }
}

/// The boundary in a content type.
pub fn boundary_of(content_type: &str) -> Result<String, FormError> {
    parameter(content_type, "boundary")
        .filter(|boundary| (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()))
        .ok_or(FormError::Boundary)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first boundary.
    Preamble,
    /// After a boundary.
    Delimiter,
    Headers,
    Data,
    /// After the last boundary.
    Epilogue,
}

/// Reads one form.
#[derive(Debug)]
pub struct Reader {
    at: State,
    /// A line end, two hyphens and the boundary.
    delimiter: Finder<'static>,
    /// Bytes that cannot be interpreted before more arrive (at most headers or a delimiter), and then the small pieces
    /// that have not been read.
    held: BytesMut,
    /// The number of bytes of small pieces in `held`.
    unread_bytes: usize,
    part: Part,
    form: Form,
}

impl Reader {
    /// A reader for this boundary.
    pub fn new(boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}");
        Self {
            at: State::Preamble,
            delimiter: Finder::new(delimiter.as_bytes()).into_owned(),
            // The delimiter starts with a line end, which a boundary at the start of the body lacks.
            held: BytesMut::from(&b"\r\n"[..]),
            unread_bytes: 0,
            part: Part::default(),
            form: Form::default(),
        }
    }

    /// Takes the next piece. An error in a small piece may be reported with a later one.
    pub fn push(&mut self, piece: Bytes) -> Result<(), FormError> {
        if piece.len() < JOINED_FROM_BYTES {
            self.held.extend_from_slice(&piece);
            self.unread_bytes += piece.len();
            return match self.unread_bytes {
                0..JOINED_FROM_BYTES => Ok(()),
                _ => self.read_small_pieces(),
            };
        }
        self.read_small_pieces()?;
        if self.held.is_empty() {
            return self.read(piece);
        }
        self.held.extend_from_slice(&piece);
        let joined = std::mem::take(&mut self.held);
        self.read(joined.freeze())
    }

    fn read_small_pieces(&mut self) -> Result<(), FormError> {
        if self.unread_bytes == 0 {
            return Ok(());
        }
        self.unread_bytes = 0;
        let joined = std::mem::take(&mut self.held);
        self.read(joined.freeze())
    }

    /// Reads as much as can be interpreted, and holds the rest.
    fn read(&mut self, mut rest: Bytes) -> Result<(), FormError> {
        loop {
            let went_on = match self.at {
                State::Preamble => self.skip_preamble(&mut rest),
                State::Delimiter => self.read_delimiter(&mut rest)?,
                State::Headers => self.read_headers(&mut rest)?,
                State::Data => self.read_data(&mut rest)?,
                State::Epilogue => return Ok(()),
            };
            if !went_on {
                self.held.extend_from_slice(&rest);
                return Ok(());
            }
        }
    }

    /// The number of bytes that are in memory for the file with this name, without small pieces that have just arrived.
    pub fn file_bytes(&mut self, name: &str) -> usize {
        self.files(name).map(|file| file.data.bytes()).sum()
    }

    /// Takes the bytes of the file with this name that have arrived, to move them elsewhere.
    pub fn drain(&mut self, name: &str) -> Result<Vec<Bytes>, FormError> {
        self.read_small_pieces()?;
        Ok(self.files(name).flat_map(Part::drain).collect())
    }

    fn files(&mut self, name: &str) -> impl Iterator<Item = &mut Part> {
        self.form.files(name).chain(
            [&mut self.part]
                .into_iter()
                .filter(move |part| part.is_file(name)),
        )
    }

    /// The form, when the body has ended.
    pub fn finish(mut self) -> Result<Form, FormError> {
        self.read_small_pieces()?;
        match self.at {
            State::Epilogue => Ok(self.form),
            // Two hyphens are the end. Some clients leave out the line end after them.
            State::Delimiter if self.held.starts_with(b"--") => Ok(self.form),
            _ => Err(FormError::Unfinished),
        }
    }

    /// Skips the preamble. Returns whether the first boundary has arrived. Keeps bytes that could start the
    /// boundary.
    fn skip_preamble(&mut self, rest: &mut Bytes) -> bool {
        if let Some(found) = self.delimiter.find(rest) {
            let _ = rest.split_to(found + self.delimiter.needle().len());
            self.at = State::Delimiter;
            return true;
        }
        let keep = self.partial_delimiter_length(rest);
        let _ = rest.split_to(rest.len() - keep);
        false
    }

    fn read_delimiter(&mut self, rest: &mut Bytes) -> Result<bool, FormError> {
        if rest.starts_with(b"--") {
            self.at = State::Epilogue;
            return Ok(true);
        }
        // Spaces may precede the line end.
        let padding = rest.iter().take_while(|byte| **byte == b' ').count();
        match rest.get(padding..).unwrap_or_default() {
            [b'\r', b'\n', ..] => {
                if self.form.parts.len() >= PARTS_MAX {
                    return Err(FormError::Parts);
                }
                // The line end is kept, so that a part without headers also starts with an empty line.
                let _ = rest.split_to(padding);
                self.at = State::Headers;
                Ok(true)
            }
            [] | [b'\r' | b'-'] if padding < BOUNDARY_BYTES_MAX => Ok(false),
            _ => Err(FormError::Delimiter),
        }
    }

    fn read_headers(&mut self, rest: &mut Bytes) -> Result<bool, FormError> {
        let Some(end) = memchr::memmem::find(rest, b"\r\n\r\n") else {
            if rest.len() > HEADERS_BYTES_MAX {
                return Err(FormError::Headers);
            }
            return Ok(false);
        };
        if end > HEADERS_BYTES_MAX {
            return Err(FormError::Headers);
        }
        let head = rest.split_to(end + 4);
        let head = std::str::from_utf8(&head).map_err(|_| FormError::Headers)?;
        self.part = part_of(head)?;
        self.at = State::Data;
        Ok(true)
    }

    fn read_data(&mut self, rest: &mut Bytes) -> Result<bool, FormError> {
        if let Some(found) = self.delimiter.find(rest) {
            let data = rest.split_to(found);
            self.take(data)?;
            let _ = rest.split_to(self.delimiter.needle().len());
            self.form.parts.push(std::mem::take(&mut self.part));
            self.at = State::Delimiter;
            return Ok(true);
        }
        let keep = self.partial_delimiter_length(rest);
        let data = rest.split_to(rest.len() - keep);
        self.take(data)?;
        Ok(false)
    }

    fn take(&mut self, data: Bytes) -> Result<(), FormError> {
        if data.is_empty() {
            return Ok(());
        }
        self.part.data.push(data);
        let Part { name, data, .. } = &self.part;
        if self.part.file_name.is_none() && data.bytes() > field_bytes_max(name) {
            return Err(FormError::Field(name.clone()));
        }
        Ok(())
    }

    /// The number of trailing bytes that could start a delimiter.
    fn partial_delimiter_length(&self, rest: &[u8]) -> usize {
        let needle = self.delimiter.needle();
        let longest = rest.len().min(needle.len() - 1);
        (1..=longest)
            .rev()
            .find(|length| {
                let tail = rest.get(rest.len() - length..);
                tail == needle.get(..*length)
            })
            .unwrap_or(0)
    }
}

/// A part with these headers, which start and end with a line end.
fn part_of(head: &str) -> Result<Part, FormError> {
    let header = |wanted: &str| {
        head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let found = name.trim().eq_ignore_ascii_case(wanted);
            found.then(|| value.trim())
        })
    };
    let disposition = header("content-disposition").ok_or(FormError::Name)?;
    let name = parameter(disposition, "name").filter(|name| !name.is_empty());
    let file_name = parameter(disposition, "filename");
    let too_long = |name: &String| name.len() > FILE_NAME_BYTES_MAX;
    if file_name.as_ref().is_some_and(too_long) || name.as_ref().is_some_and(too_long) {
        return Err(FormError::Name);
    }
    Ok(Part {
        name: name.ok_or(FormError::Name)?,
        file_name,
        content_type: header("content-type").map(str::to_owned),
        ..Part::default()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::multipart::Pieces;

    fn read(body: &[u8], piece_bytes: usize) -> Result<Form, FormError> {
        let mut reader = Reader::new("xyz");
        for piece in body.chunks(piece_bytes.max(1)) {
            reader.push(Bytes::copy_from_slice(piece))?;
        }
        reader.finish()
    }

    const BODY: &[u8] = b"--xyz\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na \
        cat\r\n--xyz  \r\ncontent-disposition: form-data; name=\"image[]\"; filename=\"a.png\"\r\n\
        Content-Type: image/png\r\n\r\n\x89PNG\r\n--xy\r\n-\r\n--xyz\r\nContent-Disposition: \
        form-data; name=\"image[]\"; filename=\"b\"\r\n\r\n\r\n--xyz--\r\nepilogue";

    #[test]
    fn parts_are_found_with_their_names_and_bytes() {
        let form = read(BODY, usize::MAX).unwrap();
        let names: Vec<_> = form.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["prompt", "image[]", "image[]"]);
        assert_eq!(form.parts[0].text(), "a cat");
        let file = &form.parts[1];
        assert_eq!(file.file_name.as_deref(), Some("a.png"));
        assert_eq!(file.content_type.as_deref(), Some("image/png"));
        assert_eq!(file.data.concat(), b"\x89PNG\r\n--xy\r\n-");
        assert!(form.parts[2].is_empty());
    }

    #[test]
    fn large_pieces_are_not_copied() {
        let mut reader = Reader::new("xyz");
        reader
            .push(Bytes::from_static(
                b"--xyz\r\ncontent-disposition: form-data; name=f; filename=f\r\n\r\n",
            ))
            .unwrap();
        let piece = Bytes::from(vec![7; 100_000]);
        reader.push(piece.clone()).unwrap();
        reader.push(Bytes::from_static(b"\r\n--xyz--")).unwrap();
        let form = reader.finish().unwrap();
        assert_eq!(form.parts[0].data[0].as_ptr(), piece.as_ptr());
    }

    #[test]
    fn bodies_that_are_not_forms_are_refused() {
        let field = |bytes: usize| {
            let mut body = b"--xyz\r\ncontent-disposition: form-data; name=f\r\n\r\n".to_vec();
            body.extend(std::iter::repeat_n(b'a', bytes));
            body.extend_from_slice(b"\r\n--xyz--");
            body
        };
        let many = b"--xyz\r\ncontent-disposition: form-data; name=f\r\n\r\n\r\n".repeat(65);
        let cases: [(Vec<u8>, FormError); 8] = [
            (b"".to_vec(), FormError::Unfinished),
            (b"no form".to_vec(), FormError::Unfinished),
            (BODY[..BODY.len() - 20].to_vec(), FormError::Unfinished),
            (b"--xyzabc".to_vec(), FormError::Delimiter),
            (b"--xyz\r\nx: y\r\n\r\n".to_vec(), FormError::Name),
            (field(FIELD_BYTES_MAX + 1), FormError::Field("f".to_owned())),
            (many, FormError::Parts),
            (
                [&b"--xyz\r\nx: "[..], &vec![b'a'; HEADERS_BYTES_MAX]].concat(),
                FormError::Headers,
            ),
        ];
        for (body, error) in cases {
            assert_eq!(read(&body, 1000), Err(error));
        }
        assert!(read(&field(FIELD_BYTES_MAX), 1000).is_ok());
        let picture = field(3 * PROMPT_BYTES_MAX);
        let picture = [
            &b"--xyz\r\ncontent-disposition: form-data; name=image"[..],
            &picture[45..],
        ]
        .concat();
        let form = read(&picture, 1000).unwrap();
        assert_eq!(
            (&*form.parts[0].name, form.parts[0].len()),
            ("image", 3 * PROMPT_BYTES_MAX)
        );
        for content_type in ["multipart/form-data", "multipart/form-data; boundary=\"\""] {
            assert_eq!(boundary_of(content_type), Err(FormError::Boundary));
        }
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_form(piece_bytes in 1_usize..80) {
            let whole = |form: Form| -> Vec<_> {
                form.parts.into_iter().map(|part| (part.name.clone(), part.data.concat())).collect()
            };
            let expected = whole(read(BODY, usize::MAX).unwrap());
            prop_assert_eq!(whole(read(BODY, piece_bytes).unwrap()), expected);
        }

        #[test]
        fn a_written_form_reads_back(
            parts in prop::collection::vec(
                (r#"[a-z"\\\[\]]{1,8}"#, prop::option::of(r"[a-z. \\]{1,8}"), prop::collection::vec(any::<u8>(), 0..300)),
                1..5,
            ),
            piece_bytes in 1_usize..200,
        ) {
            let form = Form {
                parts: parts.into_iter().map(|(name, file_name, data)| Part {
                    name,
                    file_name,
                    content_type: None,
                    data: Pieces::from(Bytes::from(data)),
                    drained_bytes: 0,
                }).collect(),
            };
            let body: Vec<u8> = form.write("a-boundary-of-ours").concat();
            let mut reader = Reader::new("a-boundary-of-ours");
            for piece in body.chunks(piece_bytes) {
                reader.push(Bytes::copy_from_slice(piece)).unwrap();
            }
            let back = reader.finish().unwrap();
            prop_assert_eq!(form.parts.len(), back.parts.len());
            for (one, other) in form.parts.iter().zip(&back.parts) {
                let escaped = |name: &str| name.replace('"', "%22").replace('\\', "%5C");
                prop_assert_eq!(escaped(&one.name), other.name.clone());
                let file_name = one.file_name.as_deref().map(escaped);
                prop_assert_eq!(file_name, other.file_name.clone());
                prop_assert_eq!(one.data.concat(), other.data.concat());
            }
        }

        #[test]
        fn hostile_bytes_are_refused_or_read(body in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(b'-'), Just(b'\r'), Just(b'\n'), Just(b'x'), Just(b'y'), Just(b'z')
        ], 0..400), piece_bytes in 1_usize..50) {
            let _ = read(&body, piece_bytes);
        }
    }

    /// If each byte kept a piece of its own, or were counted again at every later one, this test would take hours.
    #[test]
    fn a_file_in_pieces_of_one_byte_is_joined_and_counted_once() {
        let head =
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\nx-padding: ";
        let padding = "x".repeat(HEADERS_BYTES_MAX - 200);
        let file = vec![7; 1 << 20];
        let body = [
            head.as_bytes(),
            padding.as_bytes(),
            b"\r\n\r\n",
            &file,
            b"\r\n--b--",
        ]
        .concat();
        let body = Bytes::from(body);
        let mut reader = Reader::new("b");
        for at in 0..body.len() {
            reader.push(body.slice(at..=at)).unwrap();
            let unread = (at + 1).saturating_sub(reader.file_bytes("file"));
            assert!(unread < 2 * HEADERS_BYTES_MAX, "at {at}");
        }
        let mut form = reader.finish().unwrap();
        assert_eq!(form.parts[0].len(), file.len());
        let pieces = form.drain("file");
        assert!(pieces.len() < 1_000, "{} pieces", pieces.len());
        assert_eq!(pieces.concat(), file);
        assert_eq!(form.parts[0].len(), file.len());
    }

    #[test]
    fn a_file_can_be_moved_elsewhere_as_it_arrives() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n0123456789\r\n\
                    --b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\ny\r\n--b--\r\n";
        let mut reader = Reader::new("b");
        let mut elsewhere = Vec::new();
        for piece in body.as_bytes().chunks(7) {
            reader.push(Bytes::copy_from_slice(piece)).unwrap();
            elsewhere.extend(reader.drain("file").unwrap().concat());
            assert_eq!(reader.file_bytes("file"), 0);
        }
        assert_eq!(elsewhere, b"0123456789");
        let form = reader.finish().unwrap();
        assert_eq!(form.parts[0].len(), 10);
        let (before, after) = form.write_around("b");
        let written = [before.concat(), elsewhere, after.concat()].concat();
        assert_eq!(String::from_utf8(written).unwrap(), body);
    }
}
