//! Tells this process when its own store changes a key, so that the process updates its key caches at once.

use std::fmt;
use std::sync::OnceLock;

use crate::records::ids::KeyId;

type Notify = Box<dyn Fn(KeyId) + Send + Sync>;

/// The listener for changed keys. All clones of a store share it.
#[derive(Default)]
pub(crate) struct KeyListener(OnceLock<Notify>);

impl KeyListener {
    /// Sets the listener. Only the first call has an effect.
    pub(crate) fn set(&self, notify: impl Fn(KeyId) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(notify));
    }

    pub(crate) fn tell(&self, key: KeyId) {
        if let Some(notify) = self.0.get() {
            notify(key);
        }
    }
}

impl fmt::Debug for KeyListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.get().is_some();
        f.debug_tuple("KeyListener").field(&is_set).finish()
    }
}
