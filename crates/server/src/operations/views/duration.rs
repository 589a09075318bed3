//! Converts durations for views.

#[expect(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    reason = "a duration that is shown; no call lasts long enough to lose a microsecond"
)]
pub(crate) fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
