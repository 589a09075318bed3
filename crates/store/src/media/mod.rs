//! Generated media: files under unguessable names, in a folder or in a bucket.
//!
//! There is no table of media. A file is its own record: its name says what it is, and the storage says how
//! large it is and when it was written, from which follows when it expires (docs/decisions/016). So any node
//! serves and sweeps what any other node has stored.
//!
//! Start with [`Media`].

mod body;
mod bucket;
mod error;
mod head;
mod name;
mod settings;
mod spool;
mod storage;
mod sweep;
mod trial;
mod upload;
mod wire;

pub use body::MediaBody;
pub use error::{MediaError, MediaOpenError};
pub use head::MediaHead;
pub use name::{MediaId, MediaName, MediaType};
pub use settings::{Bucket, MediaPlace, MediaSettings};
pub use spool::{Spool, Spooled};
pub use storage::Media;
pub use sweep::Swept;
pub use upload::Upload;
