//! Tests the storage with a small object that no caller sees.

use bytes::Bytes;
use object_store::ObjectStoreExt as _;
use std::future::poll_fn;
use tokio::time::timeout;

use super::error::MediaError;
use super::name::{MediaId, MediaName, MediaType};
use super::storage::{ANSWER_MAX, Media, path_of};

const CONTENT: &[u8] = b"tollgate tries its storage";

impl Media {
    /// Writes, reads and deletes a small object. The error names the step that failed. The object is deleted even if it
    /// could not be read.
    pub async fn self_test(&self) -> Result<(), (&'static str, MediaError)> {
        let name = MediaName {
            id: MediaId::random(),
            kind: MediaType::Png,
        };
        self.write_test_object(name)
            .await
            .map_err(|error| ("written", error))?;
        let read = self.read_test_object(name).await;
        let deleted = timeout(ANSWER_MAX, self.objects.delete(&path_of(name))).await;
        read.map_err(|error| ("read", error))?;
        match deleted {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(("deleted", error.into())),
            Err(_) => Err(("deleted", MediaError::Timeout)),
        }
    }

    async fn write_test_object(&self, name: MediaName) -> Result<(), MediaError> {
        let mut spool = self.spool(CONTENT.len() as u64).await?;
        spool.write(CONTENT).await?;
        self.keep(spool.finish().await?, name).await
    }

    async fn read_test_object(&self, name: MediaName) -> Result<(), MediaError> {
        let found = self.read(name, ledger::UnixMs::new(0)).await?;
        let (_, mut body) = found.ok_or(MediaError::Short)?;
        let mut content = Vec::new();
        while let Some(piece) = poll_fn(|cx| body.poll_piece(cx)).await {
            let piece: Bytes = piece?;
            content.extend_from_slice(&piece);
        }
        if content == CONTENT {
            Ok(())
        } else {
            Err(MediaError::Short)
        }
    }
}
