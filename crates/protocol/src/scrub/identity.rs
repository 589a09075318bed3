//! Recognizes kinds of identity: model names, addresses, accounts, request ids, keys and vendors.

use super::names::Names;
use super::vendors::is_vendor;

/// The maximum length of a text that is passed on, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 512;
/// A number of at least this length counts as an account number.
const ACCOUNT_DIGITS_MIN: usize = 8;
/// A word of letters and digits of at least this length counts as an id.
const RANDOM_CHARS_MIN: usize = 20;

/// Masks known kinds of identity in content and keeps everything else. Error messages go through
/// [`explain`](super::explain()).
pub fn mask(text: &str, names: Names<'_>) -> String {
    let mut clean = String::with_capacity(text.len().min(TEXT_BYTES_MAX));
    let mut rest = without_request_id(text).trim();
    while let Some(first) = rest.chars().next() {
        if clean.len() >= TEXT_BYTES_MAX {
            break;
        }
        if is_separator(first) {
            clean.push(if first.is_control() { ' ' } else { first });
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let length = rest.find(is_separator).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        // A full stop after a word is not part of it.
        let core = word.trim_end_matches(['.', ':', '!', '?']);
        clean.push_str(replacement_for(core, names).unwrap_or(core));
        clean.push_str(word.get(core.len()..).unwrap_or_default());
        rest = after;
    }
    if clean.len() > TEXT_BYTES_MAX {
        let mut keep = TEXT_BYTES_MAX;
        while !clean.is_char_boundary(keep) {
            keep -= 1;
        }
        clean.truncate(keep);
        clean.push('…');
    }
    clean
}

/// Removes the request id at the end of one vendor's messages, which means nothing to a client.
pub(super) fn without_request_id(text: &str) -> &str {
    match text.find("Request id:") {
        Some(at) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

pub(super) fn is_separator(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`()[]{}<>,;|=“”‘’".contains(c)
}

/// The text that replaces a word that must not be shown.
fn replacement_for<'a>(word: &str, names: Names<'a>) -> Option<&'a str> {
    if word.is_empty() || word == names.public {
        return None;
    }
    if is_model(word, names.upstream) {
        return Some(names.public);
    }
    if is_vendor(word) {
        return Some(UPSTREAM);
    }
    if is_account(word) {
        return Some(ID);
    }
    kind_of(word)
}

/// Whether a word is a cloud's resource name, or a number as long as an account number.
fn is_account(word: &str) -> bool {
    let mut runs = word.split(|c: char| !c.is_ascii_digit());
    is_resource(word) || runs.any(|run| run.len() >= ACCOUNT_DIGITS_MIN)
}

/// Whether a word is a cloud's resource name.
pub(super) fn is_resource(word: &str) -> bool {
    let start = word.get(..4);
    start.is_some_and(|it| it.eq_ignore_ascii_case("arn:"))
}

/// Replaces a host, an address or a mail address.
pub(super) const ADDRESS: &str = "[address]";

/// Replaces an id.
pub(super) const ID: &str = "[id]";

/// Replaces a URL.
pub(super) const URL: &str = "[url]";

/// The text that replaces an address, a key or an id.
pub(super) fn kind_of(word: &str) -> Option<&'static str> {
    if word.contains("://") || word.starts_with("www.") {
        return Some(URL);
    }
    if is_key(word) {
        return Some("[key]");
    }
    if is_address(word) {
        return Some(ADDRESS);
    }
    is_id(word).then_some(ID)
}

/// Whether a word is the upstream's name of the model, its last part, or a dated form of either. Also
/// recognizes the resource name `models/NAME` that some vendors derive from the name.
fn is_model(word: &str, upstream: &str) -> bool {
    let last = upstream.rsplit('/').next().unwrap_or_default();
    let word = word.rsplit_once("models/").map_or(word, |(_, name)| name);
    [upstream, last].iter().any(|name| {
        let start = word.get(..name.len());
        let behind = word.get(name.len()..).and_then(|rest| rest.chars().next());
        !name.is_empty()
            && start.is_some_and(|start| start.eq_ignore_ascii_case(name))
            && behind.is_none_or(|c| !c.is_alphanumeric())
    })
}

/// Replaces a word that names a vendor or identifies the channel.
pub(super) const UPSTREAM: &str = "[upstream]";

/// Masks keys and keeps everything else, for operators.
pub fn mask_keys(text: &str) -> String {
    text.split_inclusive(is_separator)
        .map(|piece| {
            let word = piece.trim_end_matches(is_separator);
            if is_key(word) {
                return format!("[key]{}", piece.get(word.len()..).unwrap_or_default());
            }
            piece.to_owned()
        })
        .collect()
}

fn is_key(word: &str) -> bool {
    ["sk-", "sk_", "pk-", "rk-", "xai-", "AIza", "ya29.", "eyJ"]
        .iter()
        .any(|start| word.starts_with(start) && word.len() > start.len() + 4)
}

fn is_address(word: &str) -> bool {
    let host = word.split(['/', '?']).next().unwrap_or_default();
    if let Some((user, host)) = host.split_once('@') {
        return !user.is_empty() && !host.is_empty();
    }
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    if port.contains(':') {
        // Two colons: an IPv6 address or a time of day.
        return word.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
    }
    let labels: Vec<&str> = host.split('.').collect();
    let numbers = labels.iter().all(|label| label.parse::<u8>().is_ok());
    match labels.as_slice() {
        ["localhost"] => true,
        [_, _, _, _] if numbers => true,
        [.., _, last] => is_top_level(last),
        _ => false,
    }
}

/// Whether a label is a known top-level domain. The list has none that often end member paths or file names.
fn is_top_level(label: &str) -> bool {
    [
        "com",
        "net",
        "org",
        "io",
        "ai",
        "dev",
        "cloud",
        "cn",
        "eu",
        "internal",
        "local",
        "svc",
        "localhost",
    ]
    .iter()
    .any(|known| label.eq_ignore_ascii_case(known))
}

fn is_id(word: &str) -> bool {
    const PREFIXES: [&str; 14] = [
        "req_",
        "req-",
        "request_",
        "request-",
        "chatcmpl-",
        "chatcmpl_",
        "resp_",
        "msg_",
        "org-",
        "org_",
        "proj_",
        "acct_",
        "user-",
        "trace-",
    ];
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let named = PREFIXES.iter().any(|prefix| {
        let rest = word.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.len() >= 6)
    });
    if named {
        return has_digit;
    }
    // The client's own tool calls have long ids too, and error messages refer to them.
    if ["call_", "fc_", "tooluse_", "toolu_"]
        .iter()
        .any(|start| word.starts_with(start))
    {
        return false;
    }
    let random = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/'));
    random
        && has_digit
        && word.len() >= RANDOM_CHARS_MIN
        && !word.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a word with the form of an id may be the name or the id of something of the client, such as a
/// tool (`text_editor_20250728`) or an item (`rs_…`). Ids of accounts and requests are not, and nor are
/// short ids, which can be guessed.
pub(super) fn may_be_callers_id(word: &str) -> bool {
    const OWNERS: [&str; 18] = [
        "account",
        "acct",
        "chatcmpl",
        "customer",
        "deployment",
        "org",
        "organization",
        "proj",
        "project",
        "req",
        "request",
        "resp",
        "subscription",
        "team",
        "tenant",
        "trace",
        "user",
        "workspace",
    ];
    // Names have fewer: `user_lookup_by_email_v2`.
    const OWNERS_ID_CHARS_MIN: usize = 6;
    // Longer numbers are accounts. Dates are shorter.
    const NUMBER_CHARS_MAX: usize = 10;
    let has_digit = |part: &&str| part.bytes().any(|byte| byte.is_ascii_digit());
    let is_account =
        |part: &str| part.len() > NUMBER_CHARS_MAX && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = word.split(|c: char| !c.is_ascii_alphanumeric());
    let is_long = word.len() >= RANDOM_CHARS_MIN;
    if !is_long || parts.clone().any(is_account) {
        return false;
    }
    let first = parts.next().unwrap_or_default();
    let of_owner = OWNERS.iter().any(|owner| first.eq_ignore_ascii_case(owner));
    let id_chars: usize = parts.filter(has_digit).map(str::len).sum();
    !of_owner || id_chars < OWNERS_ID_CHARS_MIN
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: Names<'_> = Names::of_model("vendors/gpt-large-2026", "maker/large");

    #[test]
    fn identity_goes_and_meaning_stays() {
        for (text, clean) in [
            (
                "'messages.0.content' is too long (max 10 chars), see https://docs.example.com/x.",
                "'messages.0.content' is too long (max 10 chars), see [url].",
            ),
            (
                "The model `gpt-large-2026` does not exist",
                "The model `maker/large` does not exist",
            ),
            (
                "Vendors/GPT-large-2026: bad; gpt-large-2026-08-01 too. maker/large stays",
                "maker/large: bad; maker/large too. maker/large stays",
            ),
            (
                "gpt-large-2026x is another word",
                "gpt-large-2026x is another word",
            ),
            (
                "Incorrect API key provided: sk-proj-abc123def. Find it at platform.example.com.",
                "Incorrect API key provided: [key]. Find it at [address].",
            ),
            (
                "request req_011CSHoEeqs5C35K2UUqR7Fy in org-a1b2c3d4e5 failed (10.0.0.7:8443)",
                "request [id] in [id] failed ([address])",
            ),
            (
                "id 123e4567-e89b-12d3-a456-426614174000, node-7.svc.internal, localhost:80, ::1",
                "id [id], [address], [address], [address]",
            ),
            (
                "No tool output for call_abcdefghijklmnop123456, max_completion_tokens=128000",
                "No tool output for call_abcdefghijklmnop123456, max_completion_tokens=128000",
            ),
            (
                "models/gpt-large-2026 is not found; publishers/v/models/gpt-large-2026@001",
                "maker/large is not found; maker/large",
            ),
            (
                "OpenAI's Gemini, ANTHROPIC: no; the arkansas marks",
                "[upstream]'s [upstream], [upstream]: no; the arkansas marks",
            ),
            (
                "`duration` is not valid. Request id: 02170000000000000000000000000000",
                "`duration` is not valid.",
            ),
            ("mail ops@example.com\n\tnow", "mail [address]  now"),
            (
                "stream_options.include_usage",
                "stream_options.include_usage",
            ),
            ("", ""),
        ] {
            assert_eq!(mask(text, NAMES), clean);
        }
    }

    #[test]
    fn an_unknown_upstream_name_hides_nothing_else() {
        let names = Names::of_model("", "maker/large");
        assert_eq!(mask("a b", names), "a b");
    }

    proptest! {
        #[test]
        fn the_upstream_name_never_shows(before in "[a-z ]{0,9}", after in "[a-z .,]{0,9}") {
            let text = format!("{before} vendors/gpt-large-2026 {after}");
            prop_assert!(!mask(&text, NAMES).contains("gpt-large-2026"));
        }

        #[test]
        fn any_text_is_bounded(text in any::<String>(), times in 0_usize..200) {
            let clean = mask(&text.repeat(times), NAMES);
            prop_assert!(clean.len() <= TEXT_BYTES_MAX + '…'.len_utf8());
        }
    }
}
