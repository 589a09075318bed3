//! What an answer gave, beside tokens.

/// Pictures that went by, and what was told of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pictures {
    /// How many were delivered.
    pub delivered: u64,
    /// What they cost the upstream, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// The quality they have.
    pub quality: Option<Box<str>>,
    /// The size they have.
    pub size: Option<Box<str>>,
}

/// The resolution tier of a size: `2048x2048` and `2K` are `2k`. A size lies in the tier whose
/// square holds as many pixels.
pub fn size_tier(size: &str) -> Option<String> {
    let lower = size.to_ascii_lowercase();
    if let Some(number) = lower.strip_suffix('k')
        && number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return Some(lower);
    }
    let (width, height) = lower.split_once('x')?;
    let pixels = width
        .parse::<u64>()
        .ok()?
        .checked_mul(height.parse().ok()?)?;
    (1..=16_u64)
        .find(|tier| pixels <= (tier * 1024) * (tier * 1024))
        .map(|tier| format!("{tier}k"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_lie_in_tiers() {
        for (size, tier) in [
            ("2K", Some("2k")),
            ("0.5k", Some("0.5k")),
            ("1024x1024", Some("1k")),
            ("1280x720", Some("1k")),
            ("1536x1024", Some("2k")),
            ("2048x2048", Some("2k")),
            ("2560x1440", Some("2k")),
            ("4096x4096", Some("4k")),
            ("auto", None),
            ("99999999999x99999999999", None),
            ("x", None),
        ] {
            assert_eq!(size_tier(size).as_deref(), tier, "{size}");
        }
    }
}
