//! What remains true when the database fails (R8).

mod checkpoints;
mod commits;
mod disk;
mod files;
mod growth;
mod locks;
mod references;
mod rig;
mod states;
mod under_load;
