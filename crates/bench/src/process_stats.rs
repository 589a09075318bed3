//! Reads the CPU time and memory of a process from the kernel.

use std::fs;
use std::io;
use std::time::Duration;

/// The kernel reports `utime` and `stime` in units of `USER_HZ`, which is 100 on all supported
/// systems.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of all threads so far, including threads that have ended.
pub(crate) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks(&stat)
        .map(|ticks| TICK * ticks)
        .ok_or_else(|| unexpected("stat"))
}

/// Parses `utime` and `stime`, which are fields 14 and 15. The name in field 2 may contain spaces
/// and brackets.
fn ticks(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

pub(crate) fn resident_bytes(pid: u32) -> io::Result<u64> {
    status(pid, "VmRSS:")
}

/// The peak of resident memory in bytes since the last [`forget_peak`].
pub(crate) fn peak_bytes(pid: u32) -> io::Result<u64> {
    status(pid, "VmHWM:")
}

/// Resets the peak. If the kernel does not support this, the peak covers the whole run.
pub(crate) fn forget_peak(pid: u32) {
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

fn status(pid: u32, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kib(&status, name)
        .map(|kib| kib * 1024)
        .ok_or_else(|| unexpected(name))
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn unexpected(what: &str) -> io::Error {
    io::Error::other(format!("{what} of a process is not as expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_after_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 103 0 0 0 250 31 0 0 20 0 1 0 818 31 4";
        assert_eq!(ticks(stat), Some(281));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib(status, "VmHWM:"), Some(2048));
        assert_eq!(kib(status, "VmRSS:"), Some(1024));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn own_process_can_be_read() {
        let pid = std::process::id();
        assert!(cpu_time(pid).is_ok());
        assert!(resident_bytes(pid).unwrap() > 0);
        assert!(peak_bytes(pid).unwrap() > 0);
        // Both values come from one read, because other tests allocate in the meantime.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(kib(&status, "VmHWM:").unwrap() >= kib(&status, "VmRSS:").unwrap());
    }
}
