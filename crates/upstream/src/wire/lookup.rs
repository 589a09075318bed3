//! DNS lookups with a limit on their number.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Limits the number of concurrent lookups.
///
/// The system's resolver blocks a thread and cannot be cancelled. A lookup therefore keeps its
/// permit until the resolver returns, even if its caller gives up earlier. Otherwise a resolver
/// that does not answer would occupy every thread of the blocking pool, and file reads would have
/// to wait.
#[derive(Debug, Clone)]
pub(crate) struct Lookups(Arc<Semaphore>);

impl Lookups {
    pub(crate) fn new(at_once_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once_max)))
    }

    /// Resolves a name. Waits while too many other lookups are running. An IP address needs no
    /// lookup.
    pub(crate) async fn look_up(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let name = name.to_owned();
        let resolve = move || Ok((&*name, port).to_socket_addrs()?.collect());
        self.run(resolve).await
    }

    async fn run(
        &self,
        resolve: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let permits = Arc::clone(&self.0);
        let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
        let resolving = spawn_blocking(move || {
            let found = resolve();
            drop(permit);
            found
        });
        resolving.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_look_up_keeps_its_permit_until_the_resolver_returns() {
        let lookups = Lookups::new(1);
        let (answer, asked) = mpsc::channel();
        let silent = lookups.run(move || asked.recv().map_err(io::Error::other));
        // With a timeout of zero, the future is polled once, which starts the resolver, and then
        // dropped.
        timeout(Duration::ZERO, silent).await.unwrap_err();

        let found = SocketAddr::from(([192, 0, 2, 1], 80));
        let mut next = std::pin::pin!(lookups.run(move || Ok(vec![found])));
        timeout(Duration::ZERO, &mut next).await.unwrap_err();
        assert_eq!(lookups.0.available_permits(), 0);
        // The lookup of an IP address does not wait.
        assert_eq!(lookups.look_up("::1", 80).await.unwrap().len(), 1);

        answer.send(Vec::new()).unwrap();
        assert_eq!(next.await.unwrap(), [found]);
    }

    #[tokio::test]
    async fn a_resolver_that_fails_or_panics_returns_its_permit() {
        let lookups = Lookups::new(1);
        for _ in 0..2 {
            let fails = || Err(io::ErrorKind::NotFound.into());
            assert!(lookups.run(fails).await.is_err());
            assert!(lookups.run(|| panic!("a resolver's bug")).await.is_err());
        }
        assert_eq!(lookups.0.available_permits(), 1);
    }
}
