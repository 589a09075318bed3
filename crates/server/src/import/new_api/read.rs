//! Reads a whole database of `new-api` or `one-api`.

use super::options::Options;
use super::tables::{Project, ReadError, open, tables};
use super::{SYSTEM, accounts, channels, prices};
use crate::import::plan::ImportPlan;

/// Reads a database, which is given as a URL, a file or a dump. `group` is the price group whose ratios become prices.
pub(crate) async fn read(place: &str, group: Option<&str>) -> Result<ImportPlan, ReadError> {
    let database = open(place).await?;
    let (tables, options) = tables(&database).await?;
    let options = Options::of(options.as_ref())?;
    let project = if tables.channels.has("channel_info") || tables.tokens.has("model_limits") {
        Project::NewApi
    } else {
        Project::OneApi
    };
    let mut plan = ImportPlan::of(SYSTEM);
    let names = match project {
        Project::NewApi => "new-api",
        Project::OneApi => "one-api",
    };
    plan.notes.push(format!(
        "The database is one of {names}; 1 credit is {} quota.",
        options.quota_per_unit
    ));
    // Channels are read first, because keys may refer to their models.
    channels::read(&tables, project, &mut plan);
    prices::read(&tables, &options, group, &mut plan)?;
    accounts::read(&tables, &options, &mut plan);
    Ok(plan)
}
