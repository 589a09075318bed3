//! Property test: wallet and keys stay consistent after any interleaving of admissions, closes,
//! payments and changes.

use ledger::{
    Balance, Delta, Key, Micro, Refusal, Reservation, UnixMs, Wait, Wallet, WalletStatus, admit,
    extend, release, settle, stop_counting,
};
use proptest::prelude::*;

const NOON: UnixMs = UnixMs::new(1_700_000_000_000);
const DEBT_LIMIT: Micro = Micro::new(150);

#[derive(Debug, Clone, Copy)]
enum Event {
    Admit {
        key: usize,
        reservation: Reservation,
    },
    Extend {
        which: usize,
        more: Reservation,
    },
    CallerGone {
        which: usize,
    },
    Settle {
        which: usize,
        charge: i64,
        tokens: Option<u64>,
    },
    Release {
        which: usize,
    },
    TopUp(i64),
    Gift(i64),
    CreditLimit(i64),
    Status(WalletStatus),
    KeyEnabled {
        key: usize,
        enabled: bool,
    },
    KeyLimit {
        key: usize,
        limit: Option<i64>,
    },
    Concurrency {
        key: usize,
        limit: Option<u32>,
    },
    Pause(i64),
}

/// A wallet with two keys, and a log of all events from which every figure can be recomputed.
struct Books {
    wallet: Wallet,
    keys: [Key; 2],
    now: UnixMs,
    /// Each open hold with its key.
    open: Vec<(usize, Reservation)>,
    /// Each charge with its key.
    charges: Vec<(usize, i64)>,
    deltas: Vec<Delta>,
}

impl Books {
    fn new() -> Self {
        let key = Key {
            enabled: true,
            rpm_limit: Some(20),
            tpm_limit: Some(1_000),
            ..Key::default()
        };
        Self {
            wallet: Wallet::default(),
            keys: [key; 2],
            now: NOON,
            open: Vec::new(),
            charges: Vec::new(),
            deltas: Vec::new(),
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Admit { key, reservation } => return self.admit(key, reservation),
            Event::Extend { which, more } => return self.extend(which, more),
            Event::CallerGone { which } => {
                if let Some((key, held)) = self.open.get_mut(which) {
                    stop_counting(&mut self.keys[*key], held)?;
                }
            }
            Event::Settle {
                which,
                charge,
                tokens,
            } if which < self.open.len() => {
                let (key, held) = self.open.swap_remove(which);
                let (wallet, of) = (&mut self.wallet, &mut self.keys[key]);
                let delta = settle(wallet, of, &held, Micro::new(charge), tokens, self.now)?;
                prop_assert_eq!(
                    charge,
                    delta.credit_used - delta.balance - delta.gift_balance
                );
                self.charges.push((key, charge));
                self.deltas.push(delta);
            }
            Event::Release { which } if which < self.open.len() => {
                let (key, held) = self.open.swap_remove(which);
                release(&mut self.wallet, &mut self.keys[key], &held, self.now)?;
            }
            Event::Settle { .. } | Event::Release { .. } => {}
            Event::TopUp(amount) => self.deltas.push(self.wallet.top_up(Micro::new(amount))?),
            Event::Gift(amount) => self.deltas.push(self.wallet.gift(Micro::new(amount))?),
            Event::CreditLimit(limit) => self.wallet.set_credit_limit(Micro::new(limit))?,
            Event::Status(status) => self.wallet.status = status,
            Event::KeyEnabled { key, enabled } => self.keys[key].enabled = enabled,
            Event::KeyLimit { key, limit } => self.keys[key].limit = limit.map(Micro::new),
            Event::Concurrency { key, limit } => self.keys[key].concurrency_limit = limit,
            Event::Pause(ms) => self.now = self.now.plus_ms(ms),
        }
        Ok(())
    }

    /// W7: a request is admitted if there is no reason against it; otherwise it is refused for a
    /// valid reason and nothing changes.
    fn admit(&mut self, key: usize, reservation: Reservation) -> Result<(), TestCaseError> {
        let refusals = self.refusals(key, &reservation);
        let before = (self.wallet, self.keys);
        match admit(
            &mut self.wallet,
            &mut self.keys[key],
            &reservation,
            DEBT_LIMIT,
            self.now,
        ) {
            Ok(_) => {
                prop_assert_eq!(refusals, []);
                self.open.push((key, reservation));
            }
            Err(refusal) => {
                prop_assert!(
                    refusals.contains(&refusal),
                    "{:?} of {:?}",
                    refusal,
                    refusals
                );
                prop_assert_eq!((self.wallet, self.keys), before);
            }
        }
        Ok(())
    }

    fn extend(&mut self, which: usize, more: Reservation) -> Result<(), TestCaseError> {
        let Some((key, held)) = self.open.get(which).copied() else {
            return Ok(());
        };
        let (growth, exposure) = (more.hold.get(), more.exposure.get());
        let exposed = (held.exposure.get() + exposure - growth).max(0);
        // The amount by which the call's worst case (hold plus exposure) grows.
        let beyond = growth + exposed - held.exposure.get();
        let fits =
            self.covered(growth) && self.within_limit(key, growth) && self.within_debt(beyond);
        let before = (self.wallet, self.keys);
        let of = &mut self.keys[key];
        let extended = extend(&mut self.wallet, of, &held, &more, DEBT_LIMIT, self.now);
        prop_assert_eq!(extended.is_ok(), fits);
        if let Ok(grown) = extended {
            prop_assert_eq!(grown.hold.get(), held.hold.get() + growth);
            prop_assert_eq!(grown.exposure.get(), exposed);
            self.open[which].1 = grown;
        } else {
            prop_assert_eq!((self.wallet, self.keys), before);
        }
        Ok(())
    }

    /// All reasons to refuse a request, according to the log.
    fn refusals(&self, of: usize, reservation: &Reservation) -> Vec<Refusal> {
        let key = &self.keys[of];
        let full = |limit: u32| self.in_flight(of) >= limit as usize;
        // The buckets have their own property tests. This test only makes sure that they are
        // checked.
        let (mut rpm, mut tpm) = (key.rpm, key.tpm);
        let requests = key.rpm_limit.map(|limit| rpm.take(1, limit, self.now));
        let tokens = key
            .tpm_limit
            .map(|limit| tpm.take(reservation.tokens, limit, self.now));
        let rates = [
            match requests {
                Some(Err(Wait::Ms(retry_after_ms))) => {
                    Some(Refusal::RequestRate { retry_after_ms })
                }
                _ => None,
            },
            match tokens {
                Some(Err(Wait::Ms(ms))) => Some(Refusal::TokenRate {
                    retry_after_ms: Some(ms),
                }),
                Some(Err(Wait::Never)) => Some(Refusal::TokenRate {
                    retry_after_ms: None,
                }),
                _ => None,
            },
        ];
        let others = [
            (
                self.wallet.status == WalletStatus::Disabled,
                Refusal::WalletDisabled,
            ),
            (!key.enabled, Refusal::KeyDisabled),
            (
                !self.covered(reservation.hold.get()),
                Refusal::InsufficientQuota,
            ),
            (
                !self.within_limit(of, reservation.hold.get()),
                Refusal::KeyLimitReached,
            ),
            (
                !self.within_debt(reservation.hold.get() + reservation.exposure.get()),
                Refusal::DebtLimitReached,
            ),
            (
                reservation.counts_in_flight && key.concurrency_limit.is_some_and(full),
                Refusal::Concurrency,
            ),
        ];
        let others = others
            .into_iter()
            .filter_map(|(when, refusal)| when.then_some(refusal));
        others.chain(rates.into_iter().flatten()).collect()
    }

    fn covered(&self, hold: i64) -> bool {
        let line = (self.wallet.credit_limit.get() - self.sum(|delta| delta.credit_used)).max(0);
        let own = self.sum(|delta| delta.balance) + self.sum(|delta| delta.gift_balance);
        (own + line - self.frozen(|_| true)).max(0) >= hold
    }

    /// Whether the debt limit holds if all open calls cost their maximum and `more` is spent too.
    fn within_debt(&self, more: i64) -> bool {
        let own = self.sum(|delta| delta.balance) + self.sum(|delta| delta.gift_balance);
        let most: i64 = self
            .open
            .iter()
            .map(|(_, reservation)| reservation.hold.get() + reservation.exposure.get())
            .sum();
        let unpaid = (most + more - own).max(0);
        let debt = self.sum(|delta| delta.credit_used) + unpaid - self.wallet.credit_limit.get();
        more == 0 || unpaid == 0 || debt <= DEBT_LIMIT.get()
    }

    fn within_limit(&self, key: usize, hold: i64) -> bool {
        let used = self.spent(key) + self.frozen(|of| of == key);
        self.keys[key]
            .limit
            .is_none_or(|limit| used + hold <= limit.get())
    }

    fn sum(&self, part: impl Fn(&Delta) -> i64) -> i64 {
        self.deltas.iter().map(part).sum()
    }

    fn frozen(&self, of: impl Fn(usize) -> bool) -> i64 {
        let holds = self.open.iter().filter(|(key, _)| of(*key));
        holds.map(|(_, reservation)| reservation.hold.get()).sum()
    }

    fn in_flight(&self, of: usize) -> usize {
        self.open
            .iter()
            .filter(|(key, reservation)| *key == of && reservation.counts_in_flight)
            .count()
    }

    fn spent(&self, of: usize) -> i64 {
        let charges = self.charges.iter().filter(|(key, _)| *key == of);
        charges.map(|(_, charge)| charge).sum()
    }

    fn balance(&self) -> Result<(), TestCaseError> {
        let wallet = &self.wallet;
        // W2: the amounts of the wallet are the sums of the deltas.
        prop_assert_eq!(wallet.balance.get(), self.sum(|delta| delta.balance));
        prop_assert_eq!(
            wallet.gift_balance.get(),
            self.sum(|delta| delta.gift_balance)
        );
        prop_assert_eq!(
            wallet.credit_used.get(),
            self.sum(|delta| delta.credit_used)
        );
        // W3: no amount is negative. W4: no balance while there is debt.
        for amount in [
            wallet.balance,
            wallet.gift_balance,
            wallet.credit_used,
            wallet.frozen,
            wallet.exposed,
        ] {
            prop_assert!(!amount.is_negative());
        }
        prop_assert!(wallet.credit_used == Micro::ZERO || wallet.balance == Micro::ZERO);
        // W1: `frozen` is the sum of the open holds. W9: the usage of each key is the sum of its
        // charges.
        prop_assert_eq!(wallet.frozen.get(), self.frozen(|_| true));
        let exposed: i64 = self
            .open
            .iter()
            .map(|(_, reservation)| reservation.exposure.get())
            .sum();
        prop_assert_eq!(wallet.exposed.get(), exposed);
        for (of, key) in self.keys.iter().enumerate() {
            prop_assert_eq!(key.frozen.get(), self.frozen(|key| key == of));
            prop_assert_eq!(key.open_holds as usize, self.in_flight(of));
            prop_assert_eq!(key.usage.get(), self.spent(of));
        }
        // The Balance object adds up at any time.
        let view = serde_json::to_value(Balance::view(wallet, &self.keys[0]))?;
        let micro = |name: &str| {
            let shown = view["wallet"][format!("{name}_micro")].as_str();
            shown
                .and_then(|shown| shown.parse::<i64>().ok())
                .expect("amounts are integer texts")
        };
        let own = micro("balance") + micro("gift_balance") - micro("frozen");
        prop_assert_eq!(micro("available"), own.max(0));
        prop_assert_eq!(
            micro("total_available"),
            (own + micro("credit_remaining")).max(0)
        );
        Ok(())
    }
}

fn any_ask() -> impl Strategy<Value = Reservation> {
    let exposure = prop_oneof![Just(0), 0_i64..200];
    (0_i64..200, exposure, 0_u64..120, prop::bool::ANY).prop_map(
        |(hold, exposure, tokens, counts_in_flight)| Reservation {
            hold: Micro::new(hold),
            exposure: Micro::new(exposure),
            tokens,
            counts_in_flight,
        },
    )
}

fn any_event() -> impl Strategy<Value = Event> {
    let key = || 0_usize..2;
    let which = || 0_usize..6;
    let status = prop_oneof![3 => Just(WalletStatus::Active), 1 => Just(WalletStatus::Disabled)];
    let enabled = prop_oneof![3 => Just(true), 1 => Just(false)];
    prop_oneof![
        8 => (key(), any_ask()).prop_map(|(key, reservation)| Event::Admit { key, reservation }),
        2 => (which(), any_ask()).prop_map(|(which, more)| Event::Extend { which, more }),
        1 => which().prop_map(|which| Event::CallerGone { which }),
        3 => (which(), 0_i64..300, prop::option::of(0_u64..200))
            .prop_map(|(which, charge, tokens)| Event::Settle { which, charge, tokens }),
        1 => which().prop_map(|which| Event::Release { which }),
        3 => (0_i64..600).prop_map(Event::TopUp),
        1 => (0_i64..100).prop_map(Event::Gift),
        1 => (0_i64..300).prop_map(Event::CreditLimit),
        1 => status.prop_map(Event::Status),
        1 => (key(), enabled).prop_map(|(key, enabled)| Event::KeyEnabled { key, enabled }),
        1 => (key(), prop::option::of(0_i64..1_500))
            .prop_map(|(key, limit)| Event::KeyLimit { key, limit }),
        1 => (key(), prop::option::of(0_u32..4))
            .prop_map(|(key, limit)| Event::Concurrency { key, limit }),
        4 => (0_i64..20_000).prop_map(Event::Pause),
    ]
}

proptest! {
    #[test]
    fn the_books_balance_whatever_happens(events in prop::collection::vec(any_event(), 1..120)) {
        let mut books = Books::new();
        for event in events {
            books.happen(event)?;
            books.balance()?;
        }
    }
}
