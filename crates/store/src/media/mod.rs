//! Generated media: files under unguessable names, in a folder or in a bucket.
//!
//! There is no table of media. The name of a file contains its id and type. The storage provides the size and the time
//! of writing, which determines when the file expires (docs/decisions/016). So every node can serve and sweep the files
//! of all nodes.
//!
//! Start with [`Media`].

mod body;
mod bucket;
mod error;
mod head;
mod http_sender;
mod name;
mod self_test;
mod settings;
mod spool;
mod storage;
mod sweep;
mod upload;

pub use body::MediaBody;
pub use error::{MediaError, MediaOpenError};
pub use head::MediaHead;
pub use name::{MediaId, MediaName, MediaType};
pub use settings::{Bucket, MediaPlace, MediaSettings};
pub use spool::{Spool, Spooled};
pub use storage::Media;
pub use sweep::Swept;
pub use upload::Upload;
