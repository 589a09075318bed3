//! A part of a request body that is stored in a file because it is too large for memory.

use std::fs::File;
use std::future::Future as _;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};

const CHUNK_BYTES: u64 = 64 << 10;

/// A file that is sent from its beginning. A second attempt reads it again.
#[derive(Debug, Clone)]
pub struct SpoolFile {
    file: Arc<Mutex<File>>,
    bytes: u64,
}

impl SpoolFile {
    /// `bytes` is the number of bytes that were written to the file.
    pub fn new(file: File, bytes: u64) -> Self {
        Self {
            file: Arc::new(Mutex::new(file)),
            bytes,
        }
    }
}

/// A file and its position in a body: it is sent before the piece with index `at`.
#[derive(Debug, Clone)]
pub struct SpooledPart {
    pub at: usize,
    pub spool: SpoolFile,
}

impl SpooledPart {
    pub(crate) fn length(&self) -> u64 {
        self.spool.bytes
    }
}

/// Reads a spool file while it is sent.
#[derive(Debug)]
pub(crate) struct SpoolReader {
    /// The number of pieces of the body that are sent before the file.
    pub(crate) at: usize,
    spool: SpoolFile,
    read: u64,
    chunk: Bytes,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl SpoolReader {
    pub(crate) fn new(spooled: SpooledPart) -> Self {
        Self {
            at: spooled.at,
            spool: spooled.spool,
            read: 0,
            chunk: Bytes::new(),
            reading: None,
        }
    }

    /// The next bytes, or `None` at the end. [`Self::sent`] consumes them.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<&[u8]>>> {
        while self.chunk.is_empty() {
            if self.read >= self.spool.bytes {
                return Poll::Ready(Ok(None));
            }
            let (at, spool) = (self.read, &self.spool);
            let reading = self.reading.get_or_insert_with(|| {
                let bytes = CHUNK_BYTES.min(spool.bytes - at);
                let file = Arc::clone(&spool.file);
                spawn_blocking(move || read_at(&file, at, bytes))
            });
            let chunk = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            self.chunk = chunk.map_err(io::Error::other)??;
            self.read += u64::try_from(self.chunk.len()).unwrap_or(u64::MAX);
        }
        Poll::Ready(Ok(Some(&self.chunk)))
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        let _ = self.chunk.split_to(bytes.min(self.chunk.len()));
    }
}

/// Reads exactly this many bytes. The length was sent in the head, so the body must not be shorter.
fn read_at(file: &Mutex<File>, at: u64, bytes: u64) -> io::Result<Bytes> {
    let mut file = file.lock();
    file.seek(SeekFrom::Start(at))?;
    let mut chunk = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read_exact(&mut chunk)?;
    Ok(chunk.into())
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write as _;

    use super::*;

    fn spooled(written: &[u8], bytes: u64) -> SpooledPart {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(written).unwrap();
        let spool = SpoolFile::new(file, bytes);
        SpooledPart { at: 0, spool }
    }

    async fn all(spooled: SpooledPart) -> io::Result<Vec<u8>> {
        let mut feed = SpoolReader::new(spooled);
        let mut all = Vec::new();
        loop {
            let more = poll_fn(|cx| {
                let chunk = ready!(feed.poll_chunk(cx))?;
                Poll::Ready(io::Result::Ok(chunk.map(|chunk| {
                    // Takes only a part of the chunk, as a socket would.
                    chunk
                        .get(..1000.min(chunk.len()))
                        .unwrap_or_default()
                        .to_vec()
                })))
            })
            .await?;
            let Some(more) = more else {
                return Ok(all);
            };
            feed.sent(more.len());
            all.extend(more);
        }
    }

    #[tokio::test]
    async fn a_file_is_read_whole_and_again() {
        let written: Vec<u8> = (0..200_001_u32).map(|n| n.to_le_bytes()[0]).collect();
        let spooled = spooled(&written, 200_001);
        for _ in 0..2 {
            assert!(all(spooled.clone()).await.unwrap() == written);
        }
    }

    #[tokio::test]
    async fn a_file_that_is_too_short_is_an_error() {
        assert!(all(spooled(b"short", 6)).await.is_err());
    }
}
