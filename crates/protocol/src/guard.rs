//! Refuses request members that no endpoint allows (routing controls, paid tiers and stored
//! objects), and ids that cannot name a model or a voice.
//!
//! An explicit `null` counts as absent and is accepted, because some SDKs send every unset member as `null`.

pub mod form_field;

use crate::failure::Failure;
use crate::json::patch::Edit;
use crate::json::{Integer, Members};

/// Members by which clients of other gateways choose routes.
pub(crate) const ROUTING: [&str; 6] = [
    "provider",
    "routing",
    "route",
    "routes",
    "models",
    "fallbacks",
];

/// Tiers without an extra charge.
const FREE_TIERS: [&str; 4] = ["auto", "default", "standard", "standard_only"];

const MODEL_BYTES_MAX: usize = 256;
const VOICE_BYTES_MAX: usize = 256;

/// Refuses client routing controls (`docs/api/README.md`).
pub(crate) fn routing(members: &Members<'_>) -> Result<(), Failure> {
    for name in ROUTING {
        if members.get(name)?.is_some() {
            return Err(Failure::routing_not_supported(name));
        }
    }
    // A router reads other models, the order of vendors and tiers from `providerOptions`.
    let is_options = |name: &str| {
        ["providerOptions", "provider_options"]
            .iter()
            .any(|it| name.eq_ignore_ascii_case(it))
    };
    let mut named = members.iter().filter(|member| is_options(&member.name));
    if named.any(|member| !member.value.is_null()) {
        return Err(Failure::routing_not_supported("providerOptions"));
    }
    Ok(())
}

/// Refuses a preset, by which some vendors choose the model and its tools.
pub(crate) fn preset(members: &Members<'_>) -> Result<(), Failure> {
    match members.get("preset")? {
        Some(_) => Err(Failure::routing_not_supported("preset")),
        None => Ok(()),
    }
}

/// Refuses paid service tiers, and values that are not strings.
pub(crate) fn service_tier(members: &Members<'_>) -> Result<(), Failure> {
    tier(members, "service_tier")
}

/// Refuses a paid tier in the member with this name.
pub(crate) fn tier(members: &Members<'_>, name: &'static str) -> Result<(), Failure> {
    let Some(value) = members.get(name)? else {
        return Ok(());
    };
    let tier = value.string().and_then(|text| text.decode().ok());
    let tier = tier.ok_or_else(|| Failure::service_tier_not_supported(name))?;
    free_tier(name, Some(&tier))
}

/// Refuses a tier with an extra charge. A request without a tier is accepted.
pub(crate) fn free_tier(name: &'static str, tier: Option<&str>) -> Result<(), Failure> {
    match tier {
        Some(tier) if !FREE_TIERS.contains(&tier) => Err(Failure::service_tier_not_supported(name)),
        _ => Ok(()),
    }
}

/// Refuses `true` for a member that would make the upstream store something: `store`, `background`,
/// `deferred`.
pub(crate) fn refuse_storing(members: &Members<'_>, name: &'static str) -> Result<(), Failure> {
    if members.boolean(name)? == Some(true) {
        return Err(Failure::stateful_not_supported(format!(
            "`{name}: true` is not supported: the service keeps no state."
        ))
        .param(name));
    }
    Ok(())
}

/// Refuses a member that refers to a stored object, unless it is absent or `null`.
pub(crate) fn refuse_reference(members: &Members<'_>, name: &'static str) -> Result<(), Failure> {
    if members.get(name)?.is_some() {
        return Err(Failure::stateful_not_supported(format!(
            "`{name}` is not supported: the service keeps no state."
        ))
        .param(name));
    }
    Ok(())
}

/// Removes routing controls and the members in `also` from `body` if they are `null`. An upstream may refuse
/// a name that it does not know, even with `null`. `members` were read from `body`.
pub(crate) fn without_nulls<'a>(
    members: &'a Members<'_>,
    body: &'a [u8],
    also: &'a [&str],
) -> impl Iterator<Item = Edit> + 'a {
    let mut before = None;
    let mut is_leading = true;
    members.iter().filter_map(move |member| {
        let end = member.value.span().end;
        let name = &*member.name;
        let is_cut = member.value.is_null() && (ROUTING.contains(&name) || also.contains(&name));
        is_leading &= is_cut;
        let start = before.replace(end);
        if !is_cut {
            return None;
        }
        // A comma is removed with the member: the comma before it, or the one after it if no
        // earlier member remains.
        if !is_leading {
            return start.map(|start| Edit::remove(start..end));
        }
        let comma = memchr::memchr(b',', body.get(end..).unwrap_or_default());
        let end = comma.map_or(end, |at| end + at + 1);
        before = Some(end);
        Some(Edit::remove(start.unwrap_or(members.inside())..end))
    })
}

/// The output limit, unless it is zero or negative. Some servers read such limits as "no limit", and a hold
/// for no output would admit calls without payment.
pub(crate) fn output_limit(limit: Option<Integer>) -> Option<u64> {
    match limit? {
        Integer::Negative | Integer::Value(0) => None,
        limit => Some(limit.saturating()),
    }
}

/// Refuses texts that cannot be model ids, before they are looked up or echoed.
pub fn model_id(id: &str) -> Result<(), Failure> {
    let wrong = if id.is_empty() {
        "must not be empty"
    } else if id.len() > MODEL_BYTES_MAX {
        "is longer than 256 bytes"
    } else if id.split('/').any(str::is_empty) {
        "has an empty part"
    } else if id.contains("..") {
        "must not contain `..`"
    } else if id.chars().any(char::is_control) {
        "has a control character"
    } else {
        return Ok(());
    };
    Err(Failure::invalid(format!("The model id {wrong}.")).param("model"))
}

/// Refuses texts that cannot be the name of a voice. The name becomes part of the path of an
/// upstream URL. It must not change that path, even if servers on the way decode it several times.
pub fn voice_id(id: &str) -> Result<(), Failure> {
    let is_named = |sign: char| sign.is_alphanumeric() || "-_.: ()'~+@,!".contains(sign);
    let is_path = id.contains("..") || id.chars().all(|sign| sign == '.');
    if id.len() <= VOICE_BYTES_MAX && id.chars().all(is_named) && !is_path {
        return Ok(());
    }
    Err(Failure::invalid("The voice id is not one.").param("voice_id"))
}

/// Whether a text has the scheme of an `http` or `https` URL. The code that fetches the URL checks
/// the rest.
pub(crate) fn is_web_url(url: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| {
        let start = url.get(..scheme.len());
        url.len() > scheme.len() && start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;
    use crate::json::Spelling;

    #[test]
    fn voice_ids_lead_nowhere_else() {
        for id in ["eve", "Eve", "v-1_2.x", "maker:eve", "Zoë (calm)", "声"] {
            assert_eq!(voice_id(id), Ok(()), "{id}");
        }
        let too_long = "v".repeat(VOICE_BYTES_MAX + 1);
        for id in [
            "",
            ".",
            "..",
            "...",
            "../eve",
            "a/b",
            "/eve",
            "eve/",
            "..\\eve",
            "a\\b",
            "%2e%2e",
            "%2F",
            "..%2Feve",
            "%252e%252e%252f",
            "a%5cb",
            "a%00",
            "eve\0",
            "eve\n",
            "eve?x=1",
            "eve#x",
            "eve;x=1",
            "eve&x",
            "a..b",
            "\u{ff0f}eve",
            "\u{2215}eve",
            "\u{200b}eve",
            &too_long,
        ] {
            let failure = voice_id(id).unwrap_err();
            assert_eq!(failure.param.as_deref(), Some("voice_id"), "{id:?}");
        }
    }

    fn check(body: &str) -> Result<(), Failure> {
        let members = Members::read(body.as_bytes(), Spelling::One)?;
        routing(&members)?;
        service_tier(&members)?;
        refuse_storing(&members, "store")?;
        refuse_reference(&members, "conversation")
    }

    #[test]
    fn values_are_refused_and_nulls_are_not() {
        for (body, refused) in [
            ("{}", None),
            (
                r#"{"provider":null,"routes":null,"service_tier":null}"#,
                None,
            ),
            (r#"{"store":null,"conversation":null}"#, None),
            (r#"{"store":false}"#, None),
            (r#"{"service_tier":"auto"}"#, None),
            (r#"{"service_tier":"default"}"#, None),
            (r#"{"service_tier":"standard"}"#, None),
            (r#"{"service_tier":"standard_only"}"#, None),
            (r#"{"service_tier":"a\u0075to"}"#, None),
            (r#"{"metadata":{"provider":"x"}}"#, None),
            (
                r#"{"provider":{}}"#,
                Some((Code::RoutingNotSupported, "provider")),
            ),
            (
                r#"{"routing":""}"#,
                Some((Code::RoutingNotSupported, "routing")),
            ),
            (
                r#"{"route":false}"#,
                Some((Code::RoutingNotSupported, "route")),
            ),
            (
                r#"{"routes":[]}"#,
                Some((Code::RoutingNotSupported, "routes")),
            ),
            (
                r#"{"models":["a"]}"#,
                Some((Code::RoutingNotSupported, "models")),
            ),
            (
                r#"{"fall\u0062acks":0}"#,
                Some((Code::RoutingNotSupported, "fallbacks")),
            ),
            (r#"{"providerOptions":null}"#, None),
            (
                r#"{"providerOptions":{"gateway":{"models":["a"]}}}"#,
                Some((Code::RoutingNotSupported, "providerOptions")),
            ),
            (
                r#"{"provider\u005foptions":{}}"#,
                Some((Code::RoutingNotSupported, "providerOptions")),
            ),
            (
                r#"{"Provider":{}}"#,
                Some((Code::InvalidRequest, "provider")),
            ),
            (
                r#"{"service_tier":"flex"}"#,
                Some((Code::ServiceTierNotSupported, "service_tier")),
            ),
            (
                r#"{"service_tier":"Auto"}"#,
                Some((Code::ServiceTierNotSupported, "service_tier")),
            ),
            (
                r#"{"service_tier":1}"#,
                Some((Code::ServiceTierNotSupported, "service_tier")),
            ),
            (
                r#"{"store":true}"#,
                Some((Code::StatefulNotSupported, "store")),
            ),
            (r#"{"store":"yes"}"#, Some((Code::InvalidRequest, "store"))),
            (
                r#"{"conversation":"c"}"#,
                Some((Code::StatefulNotSupported, "conversation")),
            ),
        ] {
            let found = check(body).err();
            let found = found
                .as_ref()
                .map(|f| (f.code, f.param.as_deref().unwrap()));
            assert_eq!(found, refused, "{body}");
        }
    }

    #[test]
    fn null_members_are_removed_for_upstreams() {
        for (body, sent) in [
            (r#"{"a":1,"route":null}"#, r#"{"a":1}"#),
            (r#"{"route":null,"a":null}"#, r#"{"a":null}"#),
            (r#"{ "route" : null , "agent":null, "a":1}"#, r#"{ "a":1}"#),
            (
                r#"{"agent":null,"a":1,"route":null,"provider":null,"b":2,"models":null}"#,
                r#"{"a":1,"b":2}"#,
            ),
            (
                r#"{"a":1, "provider":null, "agent":"x"}"#,
                r#"{"a":1, "agent":"x"}"#,
            ),
            (
                r#"{"metadata":{"route":null}}"#,
                r#"{"metadata":{"route":null}}"#,
            ),
            ("{}", "{}"),
        ] {
            let body = bytes::Bytes::from(body);
            let members = Members::read(&body, Spelling::One).unwrap();
            let edits = without_nulls(&members, &body, &["agent"]).collect();
            assert_eq!(crate::json::patch::apply(&body, edits), sent, "{body:?}");
        }
    }

    #[test]
    fn model_ids_have_bounds() {
        let longest = format!("maker/{}", "m".repeat(MODEL_BYTES_MAX - 6));
        for id in [
            "maker/model",
            "a",
            "a/b/c",
            "maker/m-1.5:latest",
            "界/模型",
            &longest,
        ] {
            assert_eq!(model_id(id), Ok(()), "{id}");
        }
        let too_long = format!("{longest}m");
        for id in [
            "", "/", "a/", "/a", "a//b", "a/../b", "a..b", "a\n", "a\u{7f}", &too_long,
        ] {
            assert!(model_id(id).is_err(), "{id}");
        }
    }
}
