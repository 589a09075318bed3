//! Provides the service account of the simulated Google cloud, and checks the assertions that it signs.

use super::rsa;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A key made for the simulator. It gives access to nothing.
const PRIVATE_KEY: &str = include_str!("account_key.pem");
/// The modulus of `PRIVATE_KEY`, in hexadecimal.
const MODULUS: &str = include_str!("account_modulus.txt");
const KEY_ID: &str = "sim-key-1";
const EMAIL: &str = "gateway@sim-project-4711.iam.gserviceaccount.com";
/// The audience that assertions must name. It does not depend on the address of the token endpoint.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
const SKEW_S: u64 = 60;

/// The key file of the simulator's only account, for a token endpoint at this address.
pub fn service_account(token_uri: &str) -> String {
    let file = json!({
        "type": "service_account",
        "project_id": "sim-project-4711",
        "private_key_id": KEY_ID,
        "private_key": PRIVATE_KEY,
        "client_email": EMAIL,
        "client_id": "100000000000000004711",
        "token_uri": token_uri,
        "universe_domain": "googleapis.com",
    });
    format!("{file:#}")
}

/// Checks an assertion at Unix time `now`. `Err` says what is wrong with it.
pub(super) fn check(assertion: &str, now: u64) -> Result<(), &'static str> {
    let (signed, signature) = assertion.rsplit_once('.').ok_or("not a JWT")?;
    let (header, claims) = signed.split_once('.').ok_or("not a JWT")?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "not base64url");
    let object = |part: &str| -> Result<Value, &'static str> {
        serde_json::from_slice(&decoded(part)?).map_err(|_| "not JSON")
    };
    let header = object(header)?;
    if header["alg"] != "RS256" || header["typ"] != "JWT" {
        return Err("not RS256");
    }
    if header["kid"] != KEY_ID {
        return Err("unknown key id");
    }
    if !rsa::verifies(&modulus(), signed.as_bytes(), &decoded(signature)?) {
        return Err("Invalid JWT Signature.");
    }
    let claims = object(claims)?;
    if claims["iss"] != EMAIL || claims["aud"] != AUDIENCE {
        return Err("wrong issuer or audience");
    }
    let scope = claims["scope"].as_str().unwrap_or_default();
    if scope != "https://www.googleapis.com/auth/cloud-platform" {
        return Err("wrong scope");
    }
    let time = |name: &str| claims[name].as_u64().ok_or("no time");
    let (issued, ends) = (time("iat")?, time("exp")?);
    if issued > now + SKEW_S || ends + SKEW_S < now || ends.saturating_sub(issued) > 3600 {
        return Err("Invalid JWT: Token must be a short-lived token");
    }
    Ok(())
}

fn modulus() -> Vec<u8> {
    let digits = MODULUS.trim().as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.filter_map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time at which `google-auth` 2.62.2 signed the assertion with the simulator's key.
    const NOW: u64 = 1_767_323_045;
    const ASSERTION: &str = include_str!("assertion.txt");

    #[test]
    fn the_assertion_of_the_vendors_library_is_accepted_and_a_changed_one_is_not() {
        let assertion = ASSERTION.trim();
        assert_eq!(check(assertion, NOW), Ok(()));
        assert!(check(assertion, NOW + 4000).is_err());
        assert!(check(assertion, NOW - 100).is_err());
        // Flips one bit of the signature, and one of the claims.
        for at in [assertion.len() - 9, assertion.find('.').unwrap() + 30] {
            let mut changed = assertion.to_owned().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert!(check(&changed, NOW).is_err());
        }
    }
}
