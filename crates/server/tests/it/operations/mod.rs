//! Operation of a gateway: commands, reloads, shutdowns, crashes, outages, several nodes.

mod admin;
mod cli;
mod clock;
mod crash;
mod demo;
mod health;
mod imports;
mod init;
mod keys;
mod litellm_import;
mod live_check;
mod log;
mod nodes;
mod outage;
mod reload;
mod shutdown;
mod standby;
mod telemetry;
mod transfers;
