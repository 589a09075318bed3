//! What the command line prints with `--json` and the admin API answers, one struct for each thing.

mod audit;

pub(crate) use audit::AuditView;
