//! Measures how long the disk takes to make a small write durable, which bounds the speed of
//! commits.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

const WRITES: usize = 41;

/// The median time of a 4 KiB write and its sync.
pub(super) fn sync_time(folder: &Path) -> io::Result<Duration> {
    let path = folder.join("sync");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let started = Instant::now();
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok(times[WRITES / 2])
}
