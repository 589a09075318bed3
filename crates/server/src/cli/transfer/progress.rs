//! A progress bar on standard error, if that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use store::Progress;

const WIDTH: u64 = 30;
const REDRAW_EVERY: Duration = Duration::from_millis(100);
const CLEAR: &str = "\r\x1b[K";

/// The progress bar. Dropping it removes the bar from the terminal.
pub(super) struct ProgressBar {
    is_shown: bool,
    drawn: Option<Instant>,
}

impl ProgressBar {
    pub(super) fn new() -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            drawn: None,
        }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        let is_due = self
            .drawn
            .is_none_or(|drawn| drawn.elapsed() > REDRAW_EVERY);
        if self.is_shown && (is_due || progress.done >= progress.total) {
            self.drawn = Some(Instant::now());
            // If standard error is closed, the bar cannot be shown.
            let _ = write!(std::io::stderr(), "{CLEAR}{}", line(progress));
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

fn line(progress: Progress) -> String {
    let Progress { step, done, total } = progress;
    let part_of = |whole: u64| {
        let part = u128::from(done) * u128::from(whole);
        part.checked_div(total.into())
            .map_or(whole, |part| u64::try_from(part).unwrap_or(whole))
    };
    let bar: String = (0..WIDTH)
        .map(|place| if place < part_of(WIDTH) { '#' } else { '.' })
        .collect();
    format!("[{bar}] {:3}%  {step}  {done} of {total}", part_of(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        for (done, total, expected) in [
            (
                0,
                10,
                "[..............................]   0%  entries  0 of 10",
            ),
            (
                5,
                10,
                "[###############...............]  50%  entries  5 of 10",
            ),
            (
                10,
                10,
                "[##############################] 100%  entries  10 of 10",
            ),
            (
                0,
                0,
                "[##############################] 100%  entries  0 of 0",
            ),
        ] {
            let step = "entries";
            assert_eq!(line(Progress { step, done, total }), expected);
        }
    }
}
