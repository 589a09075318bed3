//! What an operator does and lives through: commands, reloads, shutdowns, crashes, outages, several nodes.

mod admin;
mod cli;
mod clock;
mod crash;
mod demo;
mod keys;
mod nodes;
mod outage;
mod reload;
mod shutdown;
mod standby;
