//! Computes the models that a virtual key may call. Both its own list and the list of its team must allow a model. For
//! a key without a team, the list of its user counts instead.

use std::collections::HashMap;

use store::ForeignRow;

/// The names of the models that a key may call. `None` if neither list restricts it.
pub(super) fn allowed_models(
    row: ForeignRow<'_>,
    teams: &HashMap<&str, ForeignRow<'_>>,
    users: &HashMap<&str, ForeignRow<'_>>,
) -> Result<Option<Vec<String>>, &'static str> {
    let own = list(row, "models").ok_or("its list of models cannot be read")?;
    let follows_team = own.iter().any(|name| name == "all-team-models");
    let above = match row.text("team_id") {
        Some(team) => Some(teams.get(team).ok_or("its team does not exist")?),
        None if follows_team => return Err("it may call the models of a team and has none"),
        None => row.text("user_id").and_then(|user| users.get(user)),
    };
    let above = match above {
        Some(above) => {
            list(*above, "models").ok_or("the list of models of its team or user cannot be read")?
        }
        None => Vec::new(),
    };
    let own = if follows_team { None } else { restriction(own) };
    Ok(match (own, restriction(above)) {
        (None, only) | (only, None) => only,
        (Some(own), Some(above)) => Some(in_both(&own, &above)),
    })
}

/// The JSON list of strings in a column; empty if the column is empty or null. `None` for any other text.
fn list(row: ForeignRow<'_>, column: &str) -> Option<Vec<String>> {
    let Some(text) = row.text(column) else {
        return Some(Vec::new());
    };
    let list: Option<Vec<String>> = serde_json::from_str(text).ok()?;
    Some(list.unwrap_or_default())
}

/// The names that a list of models allows. `None` if it allows all models.
fn restriction(mut names: Vec<String>) -> Option<Vec<String>> {
    let is_all = |name: &String| name == "all-proxy-models" || name == "*";
    if names.is_empty() || names.iter().any(is_all) {
        return None;
    }
    names.retain(|name| name != "no-default-models");
    Some(names)
}

/// The names that both lists allow. A name may end with a star.
fn in_both(one: &[String], other: &[String]) -> Vec<String> {
    let is_in = |name: &str, list: &[String]| {
        list.iter().any(|it| {
            let begins = it.strip_suffix('*');
            it == name || begins.is_some_and(|it| !it.contains('*') && name.starts_with(it))
        })
    };
    let mut names: Vec<String> = Vec::new();
    for (from, with) in [(one, other), (other, one)] {
        for name in from.iter().filter(|name| is_in(name, with)) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}
