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
pub(crate) struct Lookups {
    all: Arc<Semaphore>,
    /// The permits of the one caller for whom these lookups are, besides those of all.
    of_caller: Option<Arc<Semaphore>>,
}

impl Lookups {
    pub(crate) fn new(at_once_max: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(at_once_max)),
            of_caller: None,
        }
    }

    /// The same lookups for one caller, who may run as many as `share` has permits.
    pub(crate) fn of_caller(&self, share: Arc<Semaphore>) -> Self {
        Self {
            all: Arc::clone(&self.all),
            of_caller: Some(share),
        }
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
        // A caller waits for its own permit first, so that it takes no place of others while it waits.
        let mut permits = Vec::with_capacity(2);
        for of in self.of_caller.iter().chain([&self.all]) {
            let permit = Arc::clone(of).acquire_owned().await;
            permits.push(permit.map_err(io::Error::other)?);
        }
        let resolving = spawn_blocking(move || {
            let found = resolve();
            drop(permits);
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
        assert_eq!(lookups.all.available_permits(), 0);
        // The lookup of an IP address does not wait.
        assert_eq!(lookups.look_up("::1", 80).await.unwrap().len(), 1);

        answer.send(Vec::new()).unwrap();
        assert_eq!(next.await.unwrap(), [found]);
    }

    #[tokio::test]
    async fn a_caller_whose_resolvers_are_silent_leaves_lookups_to_others() {
        let lookups = Lookups::new(3);
        let share = Arc::new(Semaphore::new(2));
        let of_caller = lookups.of_caller(Arc::clone(&share));
        let (answer, asked) = mpsc::channel::<()>();
        let asked = Arc::new(std::sync::Mutex::new(asked));
        for _ in 0..5 {
            let asked = Arc::clone(&asked);
            let silent = of_caller.run(move || {
                let _ = asked.lock().unwrap().recv();
                Ok(Vec::new())
            });
            timeout(Duration::ZERO, silent).await.unwrap_err();
        }
        assert_eq!(share.available_permits(), 0);
        let found = SocketAddr::from(([192, 0, 2, 1], 80));
        let other = lookups.of_caller(Arc::new(Semaphore::new(2)));
        let other = other.run(move || Ok(vec![found]));
        let other = timeout(Duration::from_secs(5), other).await;
        assert_eq!(other.unwrap().unwrap(), [found]);
        drop(answer);
    }

    #[tokio::test]
    async fn a_resolver_that_fails_or_panics_returns_its_permit() {
        let lookups = Lookups::new(1);
        for _ in 0..2 {
            let fails = || Err(io::ErrorKind::NotFound.into());
            assert!(lookups.run(fails).await.is_err());
            assert!(lookups.run(|| panic!("a resolver's bug")).await.is_err());
        }
        assert_eq!(lookups.all.available_permits(), 1);
    }
}
