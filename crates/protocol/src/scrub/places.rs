//! Recognizes hosts and regions of clouds among the words that a client wrote too.

/// Top-level domains of vendors, and names of internal networks. Common file extensions are left out.
/// Clients may have some of these as members: see [`is_rooted`].
const DOMAINS: [&str; 39] = [
    "ai",
    "app",
    "au",
    "biz",
    "ch",
    "cloud",
    "cluster",
    "cn",
    "co",
    "com",
    "computer",
    "corp",
    "de",
    "dev",
    "eu",
    "fr",
    "gg",
    "hk",
    "internal",
    "intra",
    "io",
    "jp",
    "kr",
    "lan",
    "local",
    "localhost",
    "net",
    "nl",
    "org",
    "ru",
    "run",
    "se",
    "sg",
    "svc",
    "systems",
    "tech",
    "uk",
    "us",
    "xyz",
];

/// Parts of regions that say where.
const PLACES: [&str; 51] = [
    "africa",
    "america",
    "asia",
    "australia",
    "austria",
    "belgium",
    "brazil",
    "canada",
    "chile",
    "china",
    "denmark",
    "europe",
    "france",
    "germany",
    "gov",
    "india",
    "indonesia",
    "israel",
    "italy",
    "japan",
    "korea",
    "malaysia",
    "mexico",
    "newzealand",
    "norway",
    "poland",
    "qatar",
    "singapore",
    "spain",
    "sweden",
    "switzerland",
    "taiwan",
    "uae",
    "af",
    "ap",
    "ca",
    "cn",
    "eu",
    "il",
    "me",
    "mx",
    "nz",
    "sa",
    "uk",
    "us",
    "jp",
    "kr",
    "hk",
    "de",
    "fr",
    "in",
];

const CITIES: [&str; 17] = [
    "beijing",
    "chengdu",
    "frankfurt",
    "guangzhou",
    "hangzhou",
    "hongkong",
    "jakarta",
    "johor",
    "london",
    "mumbai",
    "paris",
    "seoul",
    "shanghai",
    "shenzhen",
    "sydney",
    "tokyo",
    "wulanchabu",
];

const DIRECTIONS: [&str; 5] = ["central", "east", "north", "south", "west"];

/// The first parts of paths in refusals.
const ROOTS: [&str; 31] = [
    "body",
    "config",
    "content",
    "contents",
    "extra_body",
    "function",
    "functions",
    "generationConfig",
    "generation_config",
    "input",
    "input_schema",
    "instructions",
    "items",
    "json_schema",
    "messages",
    "metadata",
    "options",
    "output_config",
    "parameters",
    "prompt",
    "properties",
    "reasoning",
    "request",
    "response_format",
    "schema",
    "session",
    "system",
    "text",
    "tool_choice",
    "tools",
    "user_metadata",
];

/// Whether a word begins like a member path and not like a host: `metadata.run`.
pub(super) fn is_rooted(word: &str) -> bool {
    // After an index, as in `tools[0].name`, only the rest of a path is a word.
    word.split_once('.')
        .is_some_and(|(first, _)| first.is_empty() || ROOTS.contains(&first))
}

/// Whether a word is the name of a host, perhaps with a port and a path.
pub(super) fn is_host(word: &str) -> bool {
    let host = word.split(['/', '?', ':', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let is_label = |label: &str| {
        let in_label = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && label.bytes().all(in_label)
    };
    host.rsplit_once('.').is_some_and(|(before, last)| {
        let is_domain = DOMAINS.iter().any(|known| last.eq_ignore_ascii_case(known));
        is_domain && before.split('.').all(is_label)
    })
}

/// Whether a word is the name of a cloud's region or zone: `us-east-1`, `europe-west4-a`,
/// `swedencentral`, `cn-beijing`.
pub(super) fn is_region(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let mut rest = &*lower;
    let (mut places, mut cities, mut directions) = (0, 0, 0);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['-', '_']) {
            rest = after;
            // A zone ends the name.
            let is_zone = matches!(rest.as_bytes(), [zone] if zone.is_ascii_lowercase());
            if is_zone {
                break;
            }
            continue;
        }
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() < rest.len() {
            // As in `us-east-1a`.
            rest = match after.as_bytes() {
                [zone] if zone.is_ascii_lowercase() => "",
                _ => after,
            };
            continue;
        }
        let kinds = [
            (&DIRECTIONS[..], &mut directions),
            (&CITIES[..], &mut cities),
            (&PLACES[..], &mut places),
        ];
        let found = kinds.into_iter().find_map(|(known, count)| {
            let mut known = known.iter();
            let after = known.find_map(|part| rest.strip_prefix(part))?;
            *count += 1;
            Some(after)
        });
        match found {
            Some(after) => rest = after,
            None => return false,
        }
    }
    places > 0 && (directions > 0 || cities > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_members_and_files() {
        for (word, is) in [
            ("nebius.com", true),
            ("api.hyperbolic.xyz:8443/v1", true),
            ("Z.AI", true),
            ("gpu-7.lan", true),
            ("ops@vendor.co", true),
            ("cat.png", false),
            ("deploy.sh", false),
            ("main.cc", false),
            ("tools.0.input_schema.city", false),
            ("address.zone", false),
            ("order.id", false),
            ("2.5", false),
            (".com", false),
            ("com", false),
            ("", false),
        ] {
            assert_eq!(is_host(word), is, "{word}");
        }
    }

    #[test]
    fn regions_are_told_from_other_words() {
        for (word, is) in [
            ("us-east-1", true),
            ("us-gov-west-1", true),
            ("ap-southeast-1", true),
            ("us-central1", true),
            ("europe-west4-a", true),
            ("us-east-1a", true),
            ("northamerica-northeast1", true),
            ("eastus2", true),
            ("WestEurope", true),
            ("swedencentral", true),
            ("cn-beijing", true),
            ("us", false),
            ("north", false),
            ("central", false),
            ("measure", false),
            ("east-1", false),
            ("invest", false),
            ("us-ascii", false),
            ("en-us", false),
            ("canada", false),
            ("a", false),
            ("1", false),
            ("", false),
        ] {
            assert_eq!(is_region(word), is, "{word}");
        }
    }
}
