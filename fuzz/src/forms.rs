//! Properties of form parsing.

use bytes::Bytes;
use protocol::multipart::{Form, FormError, Part, Reader};

use crate::pieces::sizes;

const BOUNDARY: &str = "b0";
/// It does not occur in a mutated seed.
const OTHER_BOUNDARY: &str = "----tollgate-fuzz-5b1f0d3c9a7e42";

/// A form does not depend on how its bytes were split or whether its file was spooled. It is never
/// larger than the input, and writing and reading it gives the same form.
pub fn multipart(data: &[u8]) {
    let whole = read(BOUNDARY, data, data.len().max(1));
    for size in sizes(data) {
        assert_eq!(read(BOUNDARY, data, size), whole, "in pieces of {size}");
        assert_eq!(read_drained(data, size), whole, "drained by {size}");
    }
    let Ok(form) = whole else {
        return;
    };
    let bytes: usize = form.parts.iter().map(Part::len).sum();
    assert!(bytes <= data.len(), "{bytes} of {}", data.len());
    let written = form.write(OTHER_BOUNDARY).concat();
    let again = read(OTHER_BOUNDARY, &written, written.len());
    let shown = written.escape_ascii();
    assert_eq!(again, Ok(escaped(form)), "written as {shown}");
}

/// Names as browsers write them and readers keep them: characters that would end the string are
/// percent-encoded, a percent sign is not.
fn escaped(mut form: Form) -> Form {
    let escape = |name: &str| {
        let name = name.replace('"', "%22").replace('\\', "%5C");
        name.replace('\r', "%0D").replace('\n', "%0A")
    };
    for part in &mut form.parts {
        part.name = escape(&part.name);
        part.file_name = part.file_name.as_deref().map(escape);
    }
    form
}

fn read(boundary: &str, data: &[u8], size: usize) -> Result<Form, FormError> {
    let mut reader = Reader::new(boundary);
    for piece in data.chunks(size) {
        reader.push(Bytes::copy_from_slice(piece))?;
    }
    Ok(joined(reader.finish()?))
}

/// The same, with the file spooled as in an upload.
fn read_drained(data: &[u8], size: usize) -> Result<Form, FormError> {
    let mut reader = Reader::new(BOUNDARY);
    let mut elsewhere = Vec::new();
    for piece in data.chunks(size) {
        reader.push(Bytes::copy_from_slice(piece))?;
        elsewhere.extend(reader.drain("file")?.concat());
    }
    let mut form = reader.finish()?;
    let files = form.parts.iter_mut().filter(|part| part.drained_bytes > 0);
    let mut elsewhere = Bytes::from(elsewhere);
    for file in files {
        assert!(file.drained_bytes <= elsewhere.len());
        let drained = elsewhere.split_to(file.drained_bytes);
        file.data = Bytes::from([&drained[..], &file.data.concat()].concat()).into();
        file.drained_bytes = 0;
    }
    assert!(elsewhere.is_empty(), "bytes of no file");
    Ok(joined(form))
}

/// Each part in one piece.
fn joined(mut form: Form) -> Form {
    for part in &mut form.parts {
        part.data = Bytes::from(part.data.concat()).into();
    }
    form
}
