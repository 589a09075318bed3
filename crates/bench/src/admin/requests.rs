//! The requests that are timed: every read of the admin API, with its most expensive filters.

use std::io;

use ledger::DAY_MS;
use serde_json::Value;

use super::timing::AdminClient;
use crate::fill::{Accounts, MODELS, Size, request_id};

/// Reads that are not timed: the answer of `/events` ends only when the client disconnects, and
/// `/play/{path}` passes requests on to the public API.
const ENDLESS: [&str; 2] = ["/events", "/play/{path}"];

/// A read and its name in the table of results.
pub(super) struct AdminRead {
    pub(super) what: String,
    pub(super) path: String,
}

/// The ids and names from the filled store that the requests contain.
pub(super) struct StoreNames {
    wallet: String,
    wallet_name: String,
    key: String,
    task: String,
    call: String,
    old_call: String,
    now_ms: i64,
}

impl StoreNames {
    pub(super) async fn of(
        client: &AdminClient,
        accounts: &Accounts,
        size: Size,
    ) -> io::Result<Self> {
        let missing = || io::Error::other("the store is not filled");
        // The first key has the most calls, and the first wallet owns it.
        let wallet = accounts.wallets.first().ok_or_else(missing)?;
        let key = accounts.keys.first().ok_or_else(missing)?;
        let newest = client.json("/admin/v1/calls?limit=1").await?;
        let tasks = client.json("/admin/v1/tasks?limit=1").await?;
        Ok(Self {
            wallet: wallet.id.to_string(),
            wallet_name: wallet.name.clone(),
            key: key.id.to_string(),
            task: text(&tasks["data"][0]["id"]),
            call: request_id(size.rows.saturating_sub(1)),
            old_call: request_id(size.rows / 3),
            now_ms: newest["data"][0]["at"].as_i64().ok_or_else(missing)?,
        })
    }

    fn requests(&self) -> Vec<AdminRead> {
        let mut all = self.lists();
        all.extend(self.calls());
        all.extend(self.reports());
        all
    }

    fn lists(&self) -> Vec<AdminRead> {
        let (wallet, key, task) = (&self.wallet, &self.key, &self.task);
        let name = &self.wallet_name;
        let day = self.now_ms - DAY_MS;
        [
            "session".to_owned(),
            "attention".to_owned(),
            "wallets?limit=500".to_owned(),
            format!("wallets?q={name}"),
            "wallets?q=nobody".to_owned(),
            format!("wallets/{wallet}"),
            format!("wallets/{wallet}/entries?limit=500"),
            format!("wallets/{wallet}/statement?from={day}&limit=500"),
            format!("wallets/{wallet}/statement?from={day}&format=csv"),
            format!("wallets/{wallet}/history"),
            "keys?limit=500".to_owned(),
            format!("keys?wallet={wallet}"),
            "keys?q=service-00042".to_owned(),
            "keys?q=nobody".to_owned(),
            "keys?tag=research".to_owned(),
            format!("keys/{key}"),
            "tasks?limit=500".to_owned(),
            format!("tasks?wallet={wallet}"),
            format!("tasks/{task}"),
            "models".to_owned(),
            "channels".to_owned(),
            "presets".to_owned(),
            "config".to_owned(),
            "tokens".to_owned(),
            "alerts".to_owned(),
            "alerts/rules".to_owned(),
            "audit?limit=500".to_owned(),
            "audit?action=key.create".to_owned(),
            "audit?q=nobody-has-this-name".to_owned(),
            "search?q=customer-0042".to_owned(),
            "search?q=nothing-has-this-name".to_owned(),
        ]
        .map(AdminRead::of)
        .into()
    }

    fn calls(&self) -> Vec<AdminRead> {
        let (wallet, key) = (&self.wallet, &self.key);
        let month_ago = self.now_ms - 30 * DAY_MS;
        let (from, to) = (month_ago - DAY_MS, month_ago);
        let model = MODELS[0];
        [
            "calls?limit=500".to_owned(),
            format!("calls?wallet={wallet}"),
            format!("calls?wallet={wallet}&from={from}&to={to}"),
            format!("calls?key={key}"),
            format!("calls?key={key}&status=418"),
            format!("calls?model={model}"),
            "calls?model=maker/rare".to_owned(),
            "calls?model=no/model".to_owned(),
            "calls?channel=spare".to_owned(),
            "calls?model=maker/rare&channel=spare".to_owned(),
            "calls?status=5xx".to_owned(),
            "calls?status=418".to_owned(),
            format!("calls?from={from}&to={to}"),
            format!("calls?q={}", self.old_call.get(..12).unwrap_or_default()),
            "calls?q=upstream_error".to_owned(),
            "calls?q=nothing-has-this-name".to_owned(),
            format!("calls/{}", self.call),
            format!("calls/{}", self.old_call),
        ]
        .map(AdminRead::of)
        .into()
    }

    fn reports(&self) -> Vec<AdminRead> {
        let (wallet, key) = (&self.wallet, &self.key);
        let model = MODELS[0];
        let mut reads = Vec::new();
        for days in [1, 30, 90] {
            let from = self.now_ms - days * DAY_MS + 1_234_567;
            for (what, query) in [
                ("all", String::new()),
                ("by hour", "step=hour".to_owned()),
                ("by day and model", "step=day&by=model".to_owned()),
                (
                    "by model, channel, endpoint",
                    "by=model,channel,endpoint".to_owned(),
                ),
                ("by wallet", "by=wallet".to_owned()),
                ("by key", "by=key".to_owned()),
                ("by wallet and model", "by=wallet,model".to_owned()),
                ("of a model by wallet", format!("by=wallet&model={model}")),
                ("of a wallet by model", format!("by=model&wallet={wallet}")),
                (
                    "of a wallet by day and key",
                    format!("step=day&by=key&wallet={wallet}"),
                ),
                (
                    "of a wallet by key and model",
                    format!("by=key,model&wallet={wallet}"),
                ),
                ("of a key by model", format!("by=model&key={key}")),
            ] {
                let path = format!("/admin/v1/usage?from={from}&{query}");
                let what = format!("usage of {days} days, {what}");
                reads.push(AdminRead { what, path });
            }
        }
        let from = self.now_ms - DAY_MS / 24;
        reads.push(AdminRead {
            what: "usage of an hour by minute and key".to_owned(),
            path: format!("/admin/v1/usage?from={from}&step=minute&by=key"),
        });
        reads
    }

    /// The timed reads, and the paths of all other reads that the gateway's `OpenAPI` description
    /// lists, except those in `ENDLESS`.
    pub(super) async fn timed_and_other_reads(
        &self,
        client: &AdminClient,
    ) -> io::Result<(Vec<AdminRead>, Vec<String>)> {
        let description = client.json("/openapi.json").await?;
        let paths = description["paths"].as_object().into_iter().flatten();
        let reads = paths.filter(|(_, operations)| operations["get"].is_object());
        let reads = reads.map(|(path, _)| path.clone());
        let reads: Vec<String> = reads.filter(|path| path.starts_with("/admin/v1")).collect();
        let mut requests = self.requests();
        requests.retain(|it| reads.iter().any(|path| matches_template(&it.path, path)));
        let is_timed = |path: &String| {
            let endless = ENDLESS.iter().any(|endless| path.ends_with(endless));
            endless || requests.iter().any(|it| matches_template(&it.path, path))
        };
        let forgotten = reads.iter().filter(|path| !is_timed(path)).cloned();
        let forgotten = forgotten.collect();
        Ok((requests, forgotten))
    }
}

impl AdminRead {
    fn of(path: String) -> Self {
        Self {
            path: format!("/admin/v1/{path}"),
            what: path,
        }
    }
}

/// Whether a request matches a path template, which has names in braces.
fn matches_template(request: &str, template: &str) -> bool {
    let path = request.split('?').next().unwrap_or_default();
    let (mut of_path, mut of_template) = (path.split('/'), template.split('/'));
    loop {
        match (of_path.next(), of_template.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if part == name || name.starts_with('{') => {}
            _ => return false,
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_the_template_of_its_path() {
        for (request, template, expected) in [
            ("/admin/v1/calls?limit=1", "/admin/v1/calls", true),
            (
                "/admin/v1/calls/req_1",
                "/admin/v1/calls/{request_id}",
                true,
            ),
            ("/admin/v1/calls/req_1", "/admin/v1/calls", false),
            ("/admin/v1/calls", "/admin/v1/calls/{request_id}", false),
            ("/admin/v1/keys/a", "/admin/v1/wallets/{id}", false),
        ] {
            assert_eq!(
                matches_template(request, template),
                expected,
                "{request} {template}"
            );
        }
    }
}
