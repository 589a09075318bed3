//! Copies one media file: fetches or decodes it into a file, checks its headers, and then stores it.
//!
//! The calling code chooses the id of the file, so a repeated copy replaces the first.

use std::time::Duration;

use protocol::canon::base64::Decoder;
use protocol::media::{Container, Invalid, check_png, check_video};
use protocol::video::{HostedMedium, MediaKind, Medium, Source};
use store::{MediaId, MediaName, MediaType, Spool, Spooled};
use tokio::time::timeout;
use upstream::Channel;

use super::copy_error::CopyError;
use crate::engine::Engine;

/// The number of bytes of base64 text that are decoded between two writes.
const DECODED_TEXT_BYTES: usize = 256 << 10;
/// The time that a copy may take for writing the file, in addition to the time limit of the fetch.
const WRITING_MAX: Duration = Duration::from_secs(60);

/// The properties of a file that has been checked.
struct Checked {
    kind: MediaKind,
    seconds: Option<u64>,
}

impl Engine {
    /// Copies a media file to our storage under `id`. A URL on the origin of `home` is fetched with that channel's
    /// credential.
    pub(crate) async fn copy_medium(
        &self,
        medium: &Medium,
        home: Option<&Channel>,
        id: MediaId,
    ) -> Result<HostedMedium, CopyError> {
        let counts = &self.metrics().media;
        let copied = match self.copies.try_acquire() {
            // A stopping node gives up, because a copy takes minutes and another node can repeat it.
            Ok(_permit) => self
                .stopping
                .run_until_cancelled(Box::pin(self.copy_in_permit(medium, home, id)))
                .await
                .unwrap_or_else(|| Err(CopyError::Retryable("the node stops".to_owned()))),
            Err(_) => Err(CopyError::Retryable(
                "as many media are copied as may be".to_owned(),
            )),
        };
        counts.copied(copied.as_ref().map_or_else(CopyError::label, |_| "kept"));
        copied
    }

    async fn copy_in_permit(
        &self,
        medium: &Medium,
        home: Option<&Channel>,
        id: MediaId,
    ) -> Result<HostedMedium, CopyError> {
        let bounds = self.settings.media;
        let spooling = async {
            let mut spool = self.media.spool(bounds.bytes_max(medium.kind)).await?;
            match &medium.source {
                Source::Url(url) => {
                    let bounds = bounds.of_fetch(medium.kind);
                    let mut body = self.guarded.get(url, home, bounds).await?.body;
                    while let Some(piece) = body.next().await {
                        spool.write(&piece?).await?;
                    }
                }
                Source::Base64(text) => decode(text, &mut spool).await?,
            }
            Ok::<_, CopyError>(spool.finish().await?)
        };
        let spooled = timeout(bounds.within.saturating_add(WRITING_MAX), spooling)
            .await
            .map_err(|_| CopyError::Retryable("the copy took too long".to_owned()))??;
        let bytes = spooled.bytes();
        if bytes == 0 && matches!(medium.source, Source::Url(_)) {
            // Some servers return an empty file until the real one is ready.
            return Err(CopyError::StaleUrl("the file is empty".to_owned()));
        }
        let (spooled, checked) = check(spooled, medium.kind).await?;
        let name = MediaName {
            id,
            kind: stored(checked.kind),
        };
        self.media.keep(spooled, name).await?;
        self.metrics().media.copied_bytes.inc_by(bytes);
        Ok(HostedMedium {
            id: id.to_string(),
            kind: checked.kind,
            seconds: checked.seconds,
        })
    }
}

async fn decode(text: &[u8], spool: &mut Spool) -> Result<(), CopyError> {
    let unfit = || CopyError::Invalid("the answer holds no base64".to_owned());
    let mut decoder = Decoder::default();
    let mut bytes = Vec::new();
    for piece in text.chunks(DECODED_TEXT_BYTES) {
        bytes.clear();
        decoder.push(piece, &mut bytes).ok_or_else(unfit)?;
        spool.write(&bytes).await?;
    }
    bytes.clear();
    decoder.finish(&mut bytes).ok_or_else(unfit)?;
    Ok(spool.write(&bytes).await?)
}

/// Checks the file's headers, on a thread that may block.
async fn check(spooled: Spooled, wanted: MediaKind) -> Result<(Spooled, Checked), CopyError> {
    let checking = tokio::task::spawn_blocking(move || {
        let mut file = spooled
            .open()
            .map_err(|error| CopyError::Retryable(error.to_string()))?;
        let checked = match wanted {
            MediaKind::Png => {
                check_png(&mut file)?;
                Checked {
                    kind: wanted,
                    seconds: None,
                }
            }
            MediaKind::Mp4 | MediaKind::Mov => {
                let video = check_video(&mut file)?;
                let kind = match (wanted, video.container) {
                    // Clients that did not ask for MOV may be unable to play it.
                    (MediaKind::Mp4, Container::Mov) => return Err(Invalid::Brand.into()),
                    (_, Container::Mov) => MediaKind::Mov,
                    (_, Container::Mp4) => MediaKind::Mp4,
                };
                Checked {
                    kind,
                    seconds: video.duration_ms.map(seconds),
                }
            }
        };
        Ok((spooled, checked))
    });
    match checking.await {
        Ok(checked) => checked,
        Err(error) => Err(CopyError::Retryable(error.to_string())),
    }
}

/// Converts a duration to seconds. It is rounded to the nearest second, because encoders add a frame or two to the
/// requested length.
fn seconds(duration_ms: u64) -> u64 {
    duration_ms.saturating_add(500) / 1000
}

fn stored(kind: MediaKind) -> MediaType {
    match kind {
        MediaKind::Mp4 => MediaType::Mp4,
        MediaKind::Mov => MediaType::Mov,
        MediaKind::Png => MediaType::Png,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_more_is_no_second_more() {
        for (duration_ms, expected) in [
            (0, 0),
            (499, 0),
            (500, 1),
            (8_000, 8),
            (8_042, 8),
            (7_958, 8),
        ] {
            assert_eq!(seconds(duration_ms), expected, "{duration_ms}");
        }
        assert_eq!(seconds(u64::MAX), u64::MAX / 1000);
    }
}
