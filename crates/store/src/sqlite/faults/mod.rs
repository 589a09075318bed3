//! Tests the store while its database fails (R8).

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
