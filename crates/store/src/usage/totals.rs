//! Sums over a set of calls, and their encoding.

use ledger::Micro;

use super::histogram::Histogram;
use super::varint;
use crate::records::journal::JournalRow;
use crate::records::meter::TokenCounts;

/// The version of the encoding, stored in its first byte.
const VERSION: u64 = 1;

/// Sums over a set of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    pub requests: u64,
    /// Calls with a status of 400 or above, or with an error code.
    pub errors: u64,
    /// Input of every class: new, cached and written to a cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub charge: Micro,
    /// The number of calls with a known cost, and the cost and charge of these calls.
    pub costed_requests: u64,
    pub cost: Micro,
    pub costed_charge: Micro,
    /// The durations of whole calls.
    pub latency: Histogram,
    /// The times to the first byte of the answer.
    pub first_byte: Histogram,
}

impl Totals {
    pub(crate) fn add(&mut self, row: &JournalRow) {
        let tokens = tokens_of(row);
        let input = [
            tokens.input,
            tokens.cached_input,
            tokens.cache_write,
            tokens.cache_write_1h,
        ];
        self.input_tokens = input
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add);
        self.output_tokens = self.output_tokens.saturating_add(tokens.output);
        self.charge = plus(self.charge, row.charge);
        if let Some(cost) = row.cost {
            self.costed_requests = self.costed_requests.saturating_add(1);
            self.cost = plus(self.cost, cost);
            self.costed_charge = plus(self.costed_charge, row.charge);
        }
        if row.is_late_charge {
            return;
        }
        self.requests = self.requests.saturating_add(1);
        self.errors = self.errors.saturating_add(u64::from(row.is_error()));
        self.latency.add(row.timings.total_us);
        if let Some(first_byte) = row.timings.first_byte_us {
            self.first_byte.add(first_byte);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.errors = self.errors.saturating_add(other.errors);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.charge = plus(self.charge, other.charge);
        self.costed_requests = self.costed_requests.saturating_add(other.costed_requests);
        self.cost = plus(self.cost, other.cost);
        self.costed_charge = plus(self.costed_charge, other.costed_charge);
        self.latency.merge(&other.latency);
        self.first_byte.merge(&other.first_byte);
    }

    /// The upstream cost of these calls. `None` if no call has a known cost.
    pub fn known_cost(&self) -> Option<Micro> {
        (self.costed_requests > 0).then_some(self.cost)
    }

    /// The charges of the calls whose cost is known, minus these costs. `None` if no call has a known cost.
    pub fn margin(&self) -> Option<Micro> {
        let margin = self.costed_charge.get().saturating_sub(self.cost.get());
        (self.costed_requests > 0).then_some(Micro::new(margin))
    }

    /// Encodes totals for storage. The encoding is self-delimiting, so that several can be concatenated.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        self.encode_to(&mut bytes);
        bytes
    }

    pub(super) fn encode_to(&self, bytes: &mut Vec<u8>) {
        varint::put(bytes, VERSION);
        for number in [
            self.requests,
            self.errors,
            self.input_tokens,
            self.output_tokens,
        ] {
            varint::put(bytes, number);
        }
        varint::put_signed(bytes, self.charge.get());
        varint::put(bytes, self.costed_requests);
        varint::put_signed(bytes, self.cost.get());
        varint::put_signed(bytes, self.costed_charge.get());
        self.latency.encode(bytes);
        self.first_byte.encode(bytes);
    }

    /// Reads stored totals. Totals that cannot be read are logged and count as zero, because an error here must not
    /// prevent the journal from being written.
    pub(crate) fn stored(bytes: &[u8]) -> Self {
        let mut totals = Self::default();
        if totals.merge_encoded(bytes).is_none() {
            tracing::error!("stored totals of usage are damaged and left out");
            return Self::default();
        }
        totals
    }

    /// Adds encoded totals. Returns `None` if the bytes cannot be read.
    pub(crate) fn merge_encoded(&mut self, mut from: &[u8]) -> Option<()> {
        while !from.is_empty() {
            self.merge_one(&mut from)?;
        }
        Some(())
    }

    /// Reads totals and consumes their bytes from the front of `from`.
    pub(super) fn take(from: &mut &[u8]) -> Option<Self> {
        let mut totals = Self::default();
        totals.merge_one(from)?;
        Some(totals)
    }

    fn merge_one(&mut self, from: &mut &[u8]) -> Option<()> {
        if varint::take(from)? != VERSION {
            return None;
        }
        let numbers = [
            &mut self.requests,
            &mut self.errors,
            &mut self.input_tokens,
            &mut self.output_tokens,
        ];
        for number in numbers {
            *number = number.saturating_add(varint::take(from)?);
        }
        self.charge = plus(self.charge, Micro::new(varint::take_signed(from)?));
        self.costed_requests = self.costed_requests.saturating_add(varint::take(from)?);
        self.cost = plus(self.cost, Micro::new(varint::take_signed(from)?));
        self.costed_charge = plus(self.costed_charge, Micro::new(varint::take_signed(from)?));
        self.latency.merge_encoded(from)?;
        self.first_byte.merge_encoded(from)
    }
}

/// The tokens of a call. A meter that was read back from the journal has only its JSON text, which is parsed.
fn tokens_of(row: &JournalRow) -> TokenCounts {
    let Some(meter) = &row.meter else {
        return TokenCounts::default();
    };
    let measured = meter.tokens();
    if measured == TokenCounts::default() {
        let read = meter.read();
        return read.map_or(measured, |meter| TokenCounts::from(&meter));
    }
    measured
}

/// Adds two amounts. The sum saturates, because it is only displayed. The ledger would refuse an overflow.
fn plus(one: Micro, other: Micro) -> Micro {
    Micro::new(one.get().saturating_add(other.get()))
}

#[cfg(test)]
mod tests {
    use ledger::Meter;

    use super::*;
    use crate::records::meter::MeterText;

    fn row(status: u16, charge: i64, cost: Option<i64>) -> JournalRow {
        JournalRow {
            status,
            charge: Micro::new(charge),
            cost: cost.map(Micro::new),
            meter: Some(MeterText::from(&Meter {
                input: 5,
                cached_input: 3,
                output: 2,
                ..Meter::default()
            })),
            ..JournalRow::default()
        }
    }

    #[test]
    fn calls_are_summed_and_stored_totals_add_up() {
        let mut totals = Totals::default();
        for row in [row(200, 10, Some(4)), row(429, 0, None), row(200, 7, None)] {
            totals.add(&row);
        }
        assert_eq!((totals.requests, totals.errors), (3, 1));
        assert_eq!((totals.input_tokens, totals.output_tokens), (24, 6));
        assert_eq!(totals.charge, Micro::new(17));
        assert_eq!(totals.known_cost(), Some(Micro::new(4)));
        assert_eq!(totals.margin(), Some(Micro::new(6)));

        let mut twice = totals.clone();
        twice.merge(&totals);
        let mut read = Totals::default();
        let bytes = totals.encode();
        read.merge_encoded(&[&*bytes, &*bytes].concat()).unwrap();
        assert_eq!(read, twice);
        assert_eq!(Totals::default().margin(), None);
    }

    #[test]
    fn a_late_charge_is_no_second_request() {
        let mut totals = Totals::default();
        totals.add(&row(200, 0, None));
        let late = JournalRow {
            is_late_charge: true,
            ..row(200, 10, Some(4))
        };
        totals.add(&late);
        assert_eq!(
            (totals.requests, totals.costed_requests, totals.charge),
            (1, 1, Micro::new(10))
        );
        assert_eq!(totals.margin(), Some(Micro::new(6)));
        let mut creation = Totals::default();
        creation.add(&row(200, 0, None));
        assert_eq!(totals.latency, creation.latency);
    }

    #[test]
    fn a_meter_counts_the_same_when_it_is_read_back() {
        let measured = row(200, 1, None);
        let mut read = measured.clone();
        read.meter = read.meter.map(|meter| meter.as_str().into());
        let (mut one, mut other) = (Totals::default(), Totals::default());
        one.add(&measured);
        other.add(&read);
        assert_eq!(one, other);
    }

    #[test]
    fn bytes_of_others_are_refused() {
        let bytes = Totals::default().encode();
        for cut in 1..bytes.len() {
            assert_eq!(
                Totals::default().merge_encoded(&bytes[..cut]),
                None,
                "{cut}"
            );
        }
        assert_eq!(Totals::default().merge_encoded(&[9, 1, 2, 3]), None);
    }
}
