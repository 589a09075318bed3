//! Reads how long an upstream asks us to stay away.
