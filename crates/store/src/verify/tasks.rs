//! Checks of tasks (V8), in SQL that both databases support.

/// SQL statements that find tasks which lack something, and the name of the missing part.
pub(crate) const INCOMPLETE_TASKS: [(&str, &str); 5] = [
    (
        "SELECT wallet, id FROM tasks t WHERE ended_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.closes = t.hold)",
        "a closed hold",
    ),
    (
        "SELECT wallet, id FROM tasks WHERE ended_at IS NOT NULL AND length(snapshot) = 0",
        "a snapshot",
    ),
    (
        "SELECT wallet, id FROM tasks t WHERE ended_at IS NOT NULL AND callback_url IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM callbacks c WHERE c.task = t.id AND c.body = t.snapshot)",
        "a callback of equal bytes",
    ),
    (
        "SELECT wallet, id FROM tasks WHERE ended_at IS NULL AND next_at IS NULL",
        "a next action time",
    ),
    (
        "SELECT wallet, id FROM tasks t WHERE ended_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.id = t.hold)",
        "an open hold",
    ),
];
