//! What all video protocols say of a task.

/// Whose task it is, in every name that is shown.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The platform's id.
    pub id: &'a str,
    /// The public model.
    pub model: &'a str,
    /// What the upstream calls the model: never shown, and taken out of what it says.
    pub upstream_model: &'a str,
}

/// What a poll has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    /// It goes on; the snapshot is absent when there is nothing new to show.
    Running(Option<Vec<u8>>),
    /// It has ended.
    Ended(Outcome),
    /// The upstream knows no such task.
    Missing,
    /// The answer says nothing of the task.
    Unclear,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The protocol's word for it.
    pub status: &'static str,
    /// Whether there is a result: then it is charged for also when nothing is reported.
    pub is_success: bool,
    /// What the upstream reports to have been used.
    pub used: Used,
    /// The bytes that look-ups and the callback show from now on.
    pub snapshot: Vec<u8>,
}

/// What an upstream reports of a task's use; what it does not report is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Used {
    /// Its own cost, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// Seconds of video, rounded up.
    pub seconds: Option<u64>,
}
