//! Converts price ratios to prices.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::options::Options;
use super::tables::{ReadError, Tables};
use crate::import::exact::Decimal;
use crate::import::plan::ImportPlan;

/// Output ratios that `new-api` has built in for names with these prefixes. A built-in ratio overrides the option.
/// `new-api` has more of them, so models with neither a ratio here nor an option are marked for review.
const BUILT_IN: [(&str, i64); 5] = [
    ("gpt-5.4", 6),
    ("claude-3", 5),
    ("o1", 4),
    ("o3", 4),
    ("mistral-", 3),
];

/// The price groups of an installation that does not store the option `GroupRatio`. Their ratio is 1.
const BUILT_IN_GROUPS: [&str; 3] = ["default", "vip", "svip"];

/// The ratios of the option tables.
struct Ratios {
    model: BTreeMap<String, Decimal>,
    completion: BTreeMap<String, Decimal>,
    cache: BTreeMap<String, Decimal>,
    create_cache: BTreeMap<String, Decimal>,
    image: BTreeMap<String, Decimal>,
    audio: BTreeMap<String, Decimal>,
    audio_completion: BTreeMap<String, Decimal>,
    price: BTreeMap<String, Decimal>,
    /// The price in credits of a million tokens at ratio 1, in the chosen group.
    unit: Decimal,
}

pub(super) fn read(
    tables: &Tables,
    options: &Options,
    group: Option<&str>,
    plan: &mut ImportPlan,
) -> Result<(), ReadError> {
    let (group, ratio) = group_ratio(tables, options, group, plan)?;
    let Some(unit) = Decimal::integer(1_000_000)
        .over(options.quota_per_unit)
        .and_then(|unit| unit.times(ratio))
    else {
        return Ok(());
    };
    let numbers = |option: &str| options.numbers(option).unwrap_or_default();
    let ratios = Ratios {
        model: numbers("ModelRatio"),
        completion: numbers("CompletionRatio"),
        cache: numbers("CacheRatio"),
        create_cache: numbers("CreateCacheRatio"),
        image: numbers("ImageRatio"),
        audio: numbers("AudioRatio"),
        audio_completion: numbers("AudioCompletionRatio"),
        price: numbers("ModelPrice"),
        unit,
    };
    plan.notes.push(format!(
        "Prices are those of the group {group}. Prices here have no groups; `markup` of a channel, or other entries, can replace them."
    ));
    if options.text("billing_setting.billing_mode").is_some() {
        plan.notes.push(
            "The option billing_setting.billing_mode replaces the ratios of some models by expressions, which are not read: check their prices."
                .to_owned(),
        );
    }
    let names: Vec<(String, String)> = plan
        .catalog
        .ids
        .iter()
        .map(|(name, id)| (name.clone(), id.clone()))
        .collect();
    for (name, id) in names {
        let found = ratios.prices(&name);
        let Some(model) = plan.catalog.models.get_mut(&id) else {
            continue;
        };
        match found {
            Ok((price, comments)) => {
                model.price = price;
                model.comments.extend(comments);
            }
            Err(reason) => model.comments.push(reason),
        }
        if name != id {
            model
                .comments
                .insert(0, format!("Callers named it {name} there."));
        }
    }
    Ok(())
}

/// The name and the ratio of the requested group, or of the group with the most users. The ratio determines the prices
/// of all models, so a requested group without a ratio and without users is refused.
fn group_ratio(
    tables: &Tables,
    options: &Options,
    asked: Option<&str>,
    plan: &mut ImportPlan,
) -> Result<(String, Decimal), ReadError> {
    let mut users: HashMap<&str, usize> = HashMap::new();
    for row in tables.users.rows() {
        *users
            .entry(row.text("group").unwrap_or("default"))
            .or_default() += 1;
    }
    let largest = users
        .iter()
        .max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name)));
    let largest = largest.map_or("default", |(name, _)| *name);
    let group = asked.unwrap_or(largest).to_owned();
    let one = Decimal::integer(1);
    let ratios = options
        .numbers("GroupRatio")
        .unwrap_or_else(|| BUILT_IN_GROUPS.map(|name| (name.to_owned(), one)).into());
    let mut known: BTreeSet<&str> = ratios.keys().map(|name| &**name).collect();
    known.extend(users.keys());
    if asked.is_some() && !known.contains(&*group) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        return Err(ReadError::UnknownGroup { group, known });
    }
    let ratio = ratios.get(&group).copied().unwrap_or_else(|| {
        plan.notes.push(format!(
            "The group {group} has no ratio there, which counts as 1."
        ));
        one
    });
    for (name, other) in &ratios {
        if *other != ratio
            && let Some((text, _)) = other.price()
        {
            plan.notes.push(format!(
                "The group {name} has ratio {text}, which is not carried."
            ));
        }
    }
    Ok((group, ratio))
}

type Prices = BTreeMap<&'static str, String>;

impl Ratios {
    /// The prices of a model and notes for the review, or the reason why it has no price.
    fn prices(&self, name: &str) -> Result<(Prices, Vec<String>), String> {
        if let Some(price) = self.price.get(name) {
            let text = price.price().map(|(text, _)| text).unwrap_or_default();
            return Err(format!(
                "It cost {text} US dollars per call there; text models have no such price here."
            ));
        }
        let ratio = self
            .model
            .get(name)
            .ok_or("It has no ModelRatio there, so it has no price.")?;
        let unreadable = || "Its ratios cannot be multiplied; set its price by hand.".to_owned();
        let input = ratio.times(self.unit).ok_or_else(unreadable)?;
        let mut comments = Vec::new();
        let mut prices = Prices::new();
        let mut put = |key: &'static str, price: Option<Decimal>| {
            let (text, is_rounded) = price.and_then(Decimal::price).ok_or_else(unreadable)?;
            if is_rounded {
                comments.push(format!("{key} was rounded up to 12 decimals."));
            }
            prices.insert(key, text);
            Ok::<_, String>(())
        };
        put("input", Some(input))?;
        let (completion, note) = self.completion(name);
        put("output", input.times(completion))?;
        let audio = self.audio.get(name).and_then(|ratio| input.times(*ratio));
        for (key, ratio) in [
            ("cached_input", self.cache.get(name)),
            ("cache_write", self.create_cache.get(name)),
            ("image_input", self.image.get(name)),
        ] {
            if let Some(ratio) = ratio {
                put(key, input.times(*ratio))?;
            }
        }
        if let Some(audio) = audio {
            put("audio_input", Some(audio))?;
            let one = Decimal::integer(1);
            let ratio = self.audio_completion.get(name).copied().unwrap_or(one);
            put("audio_output", audio.times(ratio))?;
        }
        comments.extend(note);
        Ok((prices, comments))
    }

    /// The output ratio, and a note for the review if one is needed.
    fn completion(&self, name: &str) -> (Decimal, Option<String>) {
        let option = self.completion.get(name).copied();
        let built_in = built_in(name).map(Decimal::integer);
        match (option, built_in) {
            (Some(option), Some(built_in)) if option != built_in => (
                built_in,
                Some("The output price follows the ratio that is built into new-api, not the option: check it.".to_owned()),
            ),
            (_, Some(built_in)) => (built_in, None),
            (Some(option), None) => (option, None),
            (None, None) => (
                Decimal::integer(1),
                Some("It has no CompletionRatio; new-api may have one built in: check the output price.".to_owned()),
            ),
        }
    }
}

/// The built-in output ratio. Names with a slash have none.
fn built_in(name: &str) -> Option<i64> {
    if name.contains('/') {
        return None;
    }
    if let Some(rest) = name.strip_prefix("gpt-5")
        && !rest.starts_with('.')
    {
        return Some(8);
    }
    if name.starts_with("claude-") && name.contains("-4") {
        return Some(5);
    }
    let found = BUILT_IN.iter().find(|(prefix, _)| name.starts_with(prefix));
    found.map(|(_, ratio)| *ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(members: &[(&str, &str)]) -> BTreeMap<String, Decimal> {
        let members = members.iter();
        members
            .map(|(name, number)| ((*name).to_owned(), Decimal::parse(number).unwrap()))
            .collect()
    }

    /// Reads a database whose users are in the groups `default` and `staff`, with this option `GroupRatio`.
    async fn read_group(
        ratios: Option<&str>,
        group: Option<&str>,
    ) -> Result<ImportPlan, ReadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one-api.db");
        let database = rusqlite::Connection::open(&path).unwrap();
        let rows = "
            CREATE TABLE users (id, username, status, quota, `group`);
            CREATE TABLE tokens (id, user_id, key, status);
            CREATE TABLE options (key, value);
            INSERT INTO users VALUES (1, 'ann', 1, 0, 'default'), (2, 'bob', 1, 0, 'staff'), (3, 'eve', 1, 0, 'default');
        ";
        database.execute_batch(rows).unwrap();
        if let Some(ratios) = ratios {
            let insert = "INSERT INTO options VALUES ('GroupRatio', ?)";
            database.execute(insert, [ratios]).unwrap();
        }
        crate::import::new_api::read(path.to_str().unwrap(), group).await
    }

    #[tokio::test]
    async fn an_unknown_group_is_refused_with_the_known_ones() {
        let stored = Some(r#"{"default":1,"gold":0.5}"#);
        for group in ["default", "gold", "staff"] {
            let plan = read_group(stored, Some(group)).await.unwrap();
            let notes = plan.notes.join(" ");
            assert!(notes.contains(&format!("the group {group}")), "{notes}");
            let has_no_ratio = notes.contains("staff has no ratio");
            assert_eq!(has_no_ratio, group == "staff", "{notes}");
        }
        for (ratios, group, known) in [
            (stored, "silver", "default, gold, staff"),
            (stored, "vip", "default, gold, staff"),
            (stored, "", "default, gold, staff"),
            // Without the option, new-api has three groups with ratio 1.
            (None, "gold", "default, staff, svip, vip"),
        ] {
            let refused = read_group(ratios, Some(group)).await.unwrap_err();
            let expected = format!("there is no price group `{group}`; known are: {known}");
            assert_eq!(refused.to_string(), expected);
        }
        assert!(read_group(None, Some("svip")).await.is_ok());
        assert!(read_group(None, None).await.is_ok());
    }

    #[test]
    fn ratios_become_prices_per_million() {
        let ratios = Ratios {
            model: table(&[("m", "1.25"), ("gpt-5-mini", "0.125"), ("plain", "0.15")]),
            completion: table(&[("m", "4"), ("gpt-5-mini", "2")]),
            cache: table(&[("m", "0.5")]),
            create_cache: table(&[]),
            image: table(&[]),
            audio: table(&[("m", "8")]),
            audio_completion: table(&[("m", "2")]),
            price: table(&[("drawing", "0.04")]),
            unit: Decimal::integer(2),
        };
        let (prices, comments) = ratios.prices("m").unwrap();
        let expected = [
            ("audio_input", "20"),
            ("audio_output", "40"),
            ("cached_input", "1.25"),
            ("input", "2.5"),
            ("output", "10"),
        ];
        let found: Vec<_> = prices.iter().map(|(key, price)| (*key, &**price)).collect();
        assert_eq!(found, expected);
        assert!(comments.is_empty());
        // The built-in ratio overrides the option, and a note says so.
        let (prices, comments) = ratios.prices("gpt-5-mini").unwrap();
        assert_eq!((&*prices["input"], &*prices["output"]), ("0.25", "2"));
        assert_eq!(comments.len(), 1);
        let (prices, comments) = ratios.prices("plain").unwrap();
        assert_eq!((&*prices["output"], comments.len()), ("0.3", 1));
        assert!(ratios.prices("drawing").is_err());
        assert!(ratios.prices("unknown").is_err());
    }
}
