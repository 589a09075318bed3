//! Handles URLs that callers name: fetches pictures that an upstream needs inline, and checks URLs that an upstream
//! will fetch from inside a private network.
//!
//! Pictures for the first route are fetched before money moves. They are fetched concurrently through the guarded
//! client, within limits of number, size and time. The node's memory is charged from the first byte.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::canon::base64::Encoder;
use protocol::canon::{ImageSource, Request, mime};
use protocol::native::{self, Head};
use protocol::{Dialect, Failure};
use store::{KeyHead, WalletId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use upstream::{CallErrorKind, FetchError, FetchLimits, Guarded, LOOKUPS_OF_CALLER_MAX, Timeouts};

use crate::callers::weak_value_map::WeakValueMap;
use crate::engine::Engine;
use crate::memory_budget::{LimitOwner, MemoryBudget, MemoryShare};

/// The limits of the pictures that are fetched for one request. `count_max` and `within` also apply to URLs that are
/// only checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageFetchLimits {
    pub count_max: usize,
    /// The size limit of one picture.
    pub bytes_max: u64,
    /// The size limit of all pictures of a request together.
    pub total_bytes_max: u64,
    /// The time limit of one fetch, from the DNS lookup to the last byte.
    pub within: Duration,
}

impl Default for ImageFetchLimits {
    fn default() -> Self {
        Self {
            count_max: 20,
            bytes_max: 20 << 20,
            total_bytes_max: 32 << 20,
            within: Duration::from_secs(30),
        }
    }
}

impl ImageFetchLimits {
    /// Only the total time is limited; the individual stages are not.
    fn times(self) -> Timeouts {
        Timeouts {
            connect: self.within,
            first_byte: self.within,
            idle: self.within,
            total: self.within,
        }
    }
}

/// What is known about the credits of a call for which URLs are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Funds {
    /// Nothing is held yet, so the wallet is checked first.
    Unknown,
    /// The call holds its credits. They may be all that the wallet had.
    Held,
}

#[derive(Debug)]
pub(crate) struct CallerUrls {
    guarded: Guarded,
    /// The DNS lookups that the keys of a wallet may run together. A lookup keeps the semaphore alive, because it can
    /// outlive its request.
    lookups: Mutex<WeakValueMap<WalletId, Semaphore>>,
    bounds: ImageFetchLimits,
}

/// A request in the caller's dialect with its pictures inside. The memory shares must live as long as the body.
#[derive(Debug)]
pub(crate) struct InlinedBody {
    pub(crate) body: Bytes,
    pub(crate) head: Head,
    pub(crate) shares: Vec<MemoryShare>,
}

struct Picture {
    mime: &'static str,
    /// Standard base64.
    data: String,
    share: MemoryShare,
}

#[derive(Debug)]
enum FetchFailure {
    Fetch(FetchError),
    NotAPicture,
    TotalTooLarge(u64),
    NoMemory(LimitOwner),
}

impl Engine {
    /// The maximum number of different URLs in a request. To collect more of them is useless.
    pub(crate) fn caller_urls_max(&self) -> usize {
        self.caller_urls.bounds.count_max
    }

    /// Fetches every picture for whose URL `must_be_inline` is true, and puts it into the request. The memory shares
    /// must live as long as the request. Nothing is fetched for a caller without credits, and the pictures take memory
    /// from the share of the key.
    pub(crate) async fn inline_pictures(
        &self,
        key: &KeyHead,
        funds: Funds,
        request: &mut Request,
        must_be_inline: impl Fn(&str) -> bool,
    ) -> Result<Vec<MemoryShare>, Failure> {
        let places = places_of(request, must_be_inline);
        if places.is_empty() {
            return Ok(Vec::new());
        }
        // Boxed, because few requests name pictures.
        let mut pictures = Box::pin(self.fetch_pictures(key, funds, places)).await?;
        for (_, image) in request.images_mut() {
            if let ImageSource::Url(url) = &image.source
                && let Some(picture) = pictures.get(url)
            {
                image.source = ImageSource::Inline {
                    mime: picture.mime.to_owned(),
                    data: picture.data.clone(),
                };
            }
        }
        Ok(pictures.drain().map(|(_, picture)| picture.share).collect())
    }

    /// Like `inline_pictures`, for a request that is sent in the caller's dialect: only the places of the URLs change.
    /// `None` if there is nothing to fetch.
    pub(crate) async fn inline_pictures_of_body(
        &self,
        key: &KeyHead,
        funds: Funds,
        dialect: Dialect,
        body: &Bytes,
        head: &Head,
        must_be_inline: impl Fn(&str) -> bool,
    ) -> Result<Option<InlinedBody>, Failure> {
        let named = native::named_pictures(dialect, body, must_be_inline, self.caller_urls_max())?;
        if named.is_empty() {
            return Ok(None);
        }
        let places = named.iter().map(|(url, named)| {
            let (first, count) = (named.path.clone(), named.count());
            (url.clone(), Places { first, count })
        });
        let places = places.collect();
        let pictures = Box::pin(self.fetch_pictures(key, funds, places)).await?;
        let fetched = named.iter().filter_map(|(url, named)| {
            let picture = pictures.get(url)?;
            Some((named, picture.mime, picture.data.as_str()))
        });
        let (body, head) = native::with_pictures(dialect, body, head, fetched)?;
        let shares = pictures.into_values().map(|picture| picture.share);
        Ok(Some(InlinedBody {
            body,
            head,
            shares: shares.collect(),
        }))
    }

    /// Fetches pictures, by URL. A failure names the place of the picture in the request.
    async fn fetch_pictures(
        &self,
        key: &KeyHead,
        funds: Funds,
        places: HashMap<String, Places>,
    ) -> Result<HashMap<String, Picture>, Failure> {
        if places.is_empty() {
            return Ok(HashMap::new());
        }
        self.caller_urls.check_count(&places)?;
        let share = self.callers().share_of(key);
        if funds == Funds::Unknown {
            self.check_funds_of(key, &share).await?;
        }
        self.caller_urls
            .fetch_all(key.wallet, places, share.large_bodies())
            .await
    }

    /// Checks URLs that an upstream in a private network will fetch itself, because callers must not reach that network
    /// through it. Nothing is looked up for a caller without credits.
    pub(crate) async fn check_caller_urls(
        &self,
        key: &KeyHead,
        funds: Funds,
        urls: HashSet<String>,
    ) -> Result<(), Failure> {
        if urls.is_empty() {
            return Ok(());
        }
        if funds == Funds::Unknown {
            let share = self.callers().share_of(key);
            self.check_funds_of(key, &share).await?;
        }
        self.caller_urls.check(key.wallet, urls).await
    }
}

/// Where a request has a picture.
struct Places {
    /// The path of the first place.
    first: String,
    /// The number of places. Each gets a copy of the picture.
    count: usize,
}

/// Collects the pictures to fetch by URL, with their places in the request.
fn places_of(
    request: &mut Request,
    must_be_inline: impl Fn(&str) -> bool,
) -> HashMap<String, Places> {
    let mut places: HashMap<String, Places> = HashMap::new();
    for (path, image) in request.images_mut() {
        if let ImageSource::Url(url) = &image.source
            && must_be_inline(url)
        {
            if let Some(known) = places.get_mut(url) {
                known.count += 1;
            } else {
                let first = path.to_string();
                places.insert(url.clone(), Places { first, count: 1 });
            }
        }
    }
    places
}

impl CallerUrls {
    /// Uses a separate limit for DNS lookups, so that unresponsive name servers of a caller delay no callback and no
    /// media copy.
    pub(crate) fn new(guarded: &Guarded, bounds: ImageFetchLimits) -> Self {
        Self {
            guarded: guarded.with_own_lookups(),
            lookups: Mutex::default(),
            bounds,
        }
    }

    /// The client for requests of one wallet, so that unresponsive name servers of one caller do not delay others.
    fn guarded_for(&self, wallet: WalletId) -> Arc<Guarded> {
        let share = self
            .lookups
            .lock()
            .get_or_insert(wallet, || Semaphore::new(LOOKUPS_OF_CALLER_MAX));
        Arc::new(self.guarded.for_caller(share))
    }

    /// Refuses a request with too many pictures to fetch.
    fn check_count(&self, places: &HashMap<String, Places>) -> Result<(), Failure> {
        if places.len() > self.bounds.count_max {
            return Err(Failure::invalid(format!(
                "At most {} images can be fetched by URL for this model; send the others inline.",
                self.bounds.count_max
            )));
        }
        Ok(())
    }

    async fn check(&self, wallet: WalletId, urls: HashSet<String>) -> Result<(), Failure> {
        if urls.len() > self.bounds.count_max {
            return Err(Failure::invalid(format!(
                "At most {} URLs can be given to this model.",
                self.bounds.count_max
            )));
        }
        let times = self.bounds.times();
        let guarded = self.guarded_for(wallet);
        let mut checks = JoinSet::new();
        for url in urls {
            let guarded = Arc::clone(&guarded);
            checks.spawn(async move { guarded.check(&url, times).await });
        }
        while let Some(checked) = checks.join_next().await {
            let checked = checked.map_err(|_| Failure::internal())?;
            checked.map_err(|error| {
                Failure::invalid(format!("A URL of the request is not accepted: {error}."))
            })?;
        }
        Ok(())
    }

    /// Fetches all pictures concurrently. The first failure cancels the others.
    async fn fetch_all(
        &self,
        wallet: WalletId,
        places: HashMap<String, Places>,
        memory: &MemoryBudget,
    ) -> Result<HashMap<String, Picture>, Failure> {
        let left = Arc::new(AtomicU64::new(self.bounds.total_bytes_max));
        let guarded = self.guarded_for(wallet);
        let mut fetches = JoinSet::new();
        for (url, Places { first, count }) in places {
            let fetch = Fetch {
                copies: count,
                guarded: Arc::clone(&guarded),
                memory: memory.clone(),
                bounds: self.bounds,
                left: Arc::clone(&left),
            };
            fetches.spawn(async move {
                let picture = fetch.run(&url).await;
                (url, first, picture)
            });
        }
        let mut pictures = HashMap::new();
        while let Some(fetched) = fetches.join_next().await {
            let (url, path, picture) = fetched.map_err(|_| Failure::internal())?;
            pictures.insert(url, picture.map_err(|why| why.failure(path))?);
        }
        Ok(pictures)
    }
}

struct Fetch {
    guarded: Arc<Guarded>,
    memory: MemoryBudget,
    bounds: ImageFetchLimits,
    /// The number of places that get the picture. Each copy counts and takes memory.
    copies: usize,
    /// The number of bytes that the pictures of the request may still take.
    left: Arc<AtomicU64>,
}

impl Fetch {
    async fn run(&self, url: &str) -> Result<Picture, FetchFailure> {
        let bounds = FetchLimits {
            times: self.bounds.times(),
            bytes_max: self.bounds.bytes_max,
        };
        let mut body = self.guarded.get(url, None, bounds).await?.body;
        let mut share = self.memory.share();
        let mut encoder = Encoder::default();
        let mut head = Vec::with_capacity(mime::DETECTION_BYTES);
        let mut bytes = 0;
        while let Some(piece) = body.next().await {
            let piece = piece?;
            self.take(piece.len())?;
            bytes += piece.len();
            let memory = memory_of(bytes).saturating_mul(self.copies);
            share
                .try_grow(memory.saturating_sub(share.bytes()))
                .map_err(FetchFailure::NoMemory)?;
            let missing = mime::DETECTION_BYTES - head.len();
            head.extend(piece.iter().take(missing));
            // The bytes show that this is not a picture but, for example, an error page. The rest is not read.
            if head.len() == mime::DETECTION_BYTES && mime::of_bytes(&head).is_none() {
                return Err(FetchFailure::NotAPicture);
            }
            encoder.push(&piece);
        }
        let mime = mime::of_bytes(&head).ok_or(FetchFailure::NotAPicture)?;
        Ok(Picture {
            mime,
            data: encoder.finish(),
            share,
        })
    }

    fn take(&self, bytes: usize) -> Result<(), FetchFailure> {
        let bytes = bytes.saturating_mul(self.copies);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        let total = self.bounds.total_bytes_max;
        taken
            .map(drop)
            .map_err(|_| FetchFailure::TotalTooLarge(total))
    }
}

/// The memory that a picture takes: its base64 text in the common form, and another copy in the encoded request.
fn memory_of(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(8)
}

impl From<FetchError> for FetchFailure {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

impl FetchFailure {
    /// The failure for the client. It may name the URL, because the caller chose it.
    fn failure(&self, path: String) -> Failure {
        let why = match self {
            Self::NoMemory(owner) => return owner.failure_for("images"),
            Self::NotAPicture => "it is not a PNG, JPEG, GIF, WebP or HEIC file".to_owned(),
            Self::TotalTooLarge(bytes) => {
                format!("all images of the request together are larger than {bytes} bytes")
            }
            Self::Fetch(FetchError::TooLarge(bytes)) => {
                format!("it is larger than {bytes} bytes")
            }
            Self::Fetch(FetchError::Call(error)) => match error.kind {
                CallErrorKind::Timeout(_) => "it did not come in time".to_owned(),
                CallErrorKind::Connect
                | CallErrorKind::Credential
                | CallErrorKind::Broken
                | CallErrorKind::TooLarge
                | CallErrorKind::Unsignable => "its server gave no whole answer".to_owned(),
            },
            Self::Fetch(error) => error.to_string(),
        };
        Failure::invalid(format!("The image could not be fetched: {why}.")).param(path)
    }
}
