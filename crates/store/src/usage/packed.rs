//! Reads the totals of several series from one value, into which a database query has concatenated them.

/// Totals by series: for each, its number (eight bytes), the length of its totals (four bytes), and the totals.
#[derive(Debug)]
pub(crate) struct PackedTotals<'a>(&'a [u8]);

impl<'a> PackedTotals<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for PackedTotals<'a> {
    type Item = (i64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (series, rest) = self.0.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (totals, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((i64::from_be_bytes(*series), totals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_comes_with_its_totals() {
        let mut bytes = Vec::new();
        for (series, totals) in [(7_i64, &b"abc"[..]), (-1, b""), (1 << 40, b"x")] {
            bytes.extend_from_slice(&series.to_be_bytes());
            bytes.extend_from_slice(&u32::try_from(totals.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(totals);
        }
        let read: Vec<_> = PackedTotals::new(&bytes).collect();
        assert_eq!(read, [(7, &b"abc"[..]), (-1, b""), (1 << 40, b"x")]);
        // Truncated totals are skipped.
        for cut in 1..13 {
            let rest = &bytes[..bytes.len() - cut];
            assert_eq!(PackedTotals::new(rest).count(), 2, "{cut}");
        }
    }
}
