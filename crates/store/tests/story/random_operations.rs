//! Tests that the ledger balances after any sequence of operations.

use ledger::{Meter, Micro, Reservation};
use proptest::prelude::*;
use store::{
    Calendar, Close, End, Extend, HoldId, IfLost, KeyChange, KeyLimits, KeyRow, KeyWindow,
    MeterText, PeriodLength, PriceVersion, SessionStep, Store,
};

use crate::test_database::{
    NOW, TestDatabase, actor, admission, assert_clean, credits, key, price, released, settled,
    wallet,
};

#[derive(Debug, Clone)]
enum Step {
    Admit {
        key: usize,
        hold: i64,
        tokens: u64,
        counts_in_flight: bool,
    },
    Extend {
        hold: usize,
        more: i64,
    },
    /// A step of a session.
    Use {
        hold: usize,
        seconds: u64,
    },
    Settle {
        hold: usize,
        tokens: u64,
    },
    Release {
        hold: usize,
    },
    Abandon {
        hold: usize,
    },
    StopCounting {
        hold: usize,
    },
    TopUp {
        key: usize,
        amount: i64,
    },
    Gift {
        key: usize,
        amount: i64,
    },
    Limit {
        key: usize,
        limit: Option<i64>,
    },
    Credit {
        key: usize,
        limit: i64,
    },
    /// Makes everything so far durable. Without this, it is up to chance which steps share a batch.
    Flush,
    /// The process ends with open holds and starts again.
    Restart,
}

const KEYS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    let hold = 0..12_usize;
    prop_oneof![
        8 => (key.clone(), 0..3_000_000_i64, 0..500_u64, any::<bool>())
            .prop_map(|(key, hold, tokens, counts_in_flight)| Step::Admit { key, hold, tokens, counts_in_flight }),
        2 => (hold.clone(), 0..1_000_000_i64).prop_map(|(hold, more)| Step::Extend { hold, more }),
        4 => (hold.clone(), 0..300_u64).prop_map(|(hold, seconds)| Step::Use { hold, seconds }),
        6 => (hold.clone(), 0..5_000_000_u64).prop_map(|(hold, tokens)| Step::Settle { hold, tokens }),
        2 => hold.clone().prop_map(|hold| Step::Release { hold }),
        1 => hold.clone().prop_map(|hold| Step::Abandon { hold }),
        1 => hold.prop_map(|hold| Step::StopCounting { hold }),
        2 => (key.clone(), 1..4_000_000_i64).prop_map(|(key, amount)| Step::TopUp { key, amount }),
        1 => (key.clone(), 1..4_000_000_i64).prop_map(|(key, amount)| Step::Gift { key, amount }),
        1 => (key.clone(), proptest::option::of(0..9_000_000_i64)).prop_map(|(key, limit)| Step::Limit { key, limit }),
        1 => (key, 0..3_000_000_i64).prop_map(|(key, limit)| Step::Credit { key, limit }),
        1 => Just(Step::Flush),
        1 => Just(Step::Restart),
    ]
}

pub(crate) fn the_ledger_balances_after_any_interleaving(database: impl Fn() -> TestDatabase) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let cases = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(cases, |(steps in proptest::collection::vec(step(), 1..80))| {
        runtime.block_on(run_steps(&database(), &steps));
    });
}

async fn run_steps(database: &TestDatabase, steps: &[Step]) {
    let store = database.open();
    let version = price(&store).await;
    let keys = accounts(&store).await;
    let mut tale = Tale {
        store,
        version,
        keys,
        holds: Vec::new(),
    };
    for step in steps {
        match step {
            Step::Restart => {
                drop(tale.store);
                tale.store = database.open();
                assert_eq!(tale.store.stats().open_holds, 0);
            }
            step => tale.take(step).await,
        }
    }
    let Tale { store, holds, .. } = tale;
    store.flush().await.unwrap();
    assert_clean(&store).await;
    for hold in holds {
        store.close(released(hold));
    }
    store.flush().await.unwrap();
    for row in store.wallets().await.unwrap() {
        assert_eq!(row.wallet.frozen, Micro::ZERO);
    }
    assert_clean(&store).await;
}

struct Tale {
    store: Store,
    version: PriceVersion,
    keys: Vec<KeyRow>,
    /// Closed holds stay in the list, because closing a hold twice is part of the test.
    holds: Vec<HoldId>,
}

impl Tale {
    fn hold(&self, n: usize) -> Option<HoldId> {
        self.holds.get(n % self.holds.len().max(1)).copied()
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    async fn take(&mut self, step: &Step) {
        let store = self.store.clone();
        match *step {
            Step::Admit {
                key,
                hold,
                tokens,
                counts_in_flight,
            } => {
                let ask = Reservation {
                    hold: Micro::new(hold),
                    exposure: Micro::new(hold / 2),
                    tokens,
                    counts_in_flight,
                };
                if let Ok(admitted) = store.admit(admission(&self.keys[key], ask)).await {
                    self.holds.push(admitted.hold);
                }
            }
            Step::Extend { hold, more } => {
                if let Some(hold) = self.hold(hold) {
                    let more = Reservation {
                        hold: Micro::new(more),
                        exposure: Micro::new(more / 2),
                        tokens: 10,
                        counts_in_flight: false,
                    };
                    drop(
                        store
                            .extend(Extend {
                                hold,
                                more,
                                now: NOW,
                            })
                            .await,
                    );
                }
            }
            Step::Use { hold, seconds } => {
                if let Some(hold) = self.hold(hold) {
                    let cost = |seconds: u64| Micro::new(i64::try_from(seconds * 10_000).unwrap());
                    let step = SessionStep {
                        hold,
                        step: ledger::Step {
                            used: cost(seconds),
                            wanted: cost(seconds + 30),
                            least: cost(seconds + 1),
                        },
                        meter: MeterText::from(&Meter {
                            stt_stream_seconds: seconds,
                            ..Meter::default()
                        }),
                        price_version: self.version,
                        cost: None,
                        now: NOW,
                    };
                    drop(store.step_session(step).await);
                }
            }
            Step::Settle { hold, tokens } => {
                if let Some(hold) = self.hold(hold) {
                    store.close(settled(hold, self.version, tokens));
                }
            }
            Step::Release { hold } => {
                if let Some(hold) = self.hold(hold) {
                    store.close(released(hold));
                }
            }
            Step::Abandon { hold } => {
                if let Some(hold) = self.hold(hold) {
                    store.close(Close {
                        if_lost: IfLost::Charge,
                        hold,
                        end: End::Abandoned,
                        now: NOW,
                    });
                }
            }
            Step::StopCounting { hold } => {
                if let Some(hold) = self.hold(hold) {
                    store.stop_counting(hold);
                }
            }
            Step::TopUp { key, amount } => {
                let wallet = self.keys[key].wallet;
                store
                    .top_up(wallet, Micro::new(amount), "", &actor())
                    .await
                    .unwrap();
            }
            Step::Gift { key, amount } => {
                let wallet = self.keys[key].wallet;
                store
                    .gift(wallet, Micro::new(amount), "", &actor())
                    .await
                    .unwrap();
            }
            Step::Limit { key, limit } => {
                let limit = Some(limit.map(Micro::new));
                let change = KeyChange {
                    limit,
                    ..KeyChange::default()
                };
                store
                    .update_key(self.keys[key].id, change, &actor())
                    .await
                    .unwrap();
            }
            Step::Credit { key, limit } => {
                let wallet = self.keys[key].wallet;
                store
                    .set_credit_limit(wallet, Micro::new(limit), &actor())
                    .await
                    .unwrap();
            }
            Step::Flush => store.flush().await.unwrap(),
            Step::Restart => unreachable!("told where the place is known"),
        }
    }
}

/// Creates two wallets with two keys each, some with limits.
async fn accounts(store: &Store) -> Vec<KeyRow> {
    let mut keys = Vec::new();
    for name in ["one", "two"] {
        let account = wallet(store, name, credits(5)).await;
        keys.push(key(store, account.id, KeyLimits::default()).await);
        let limits = KeyLimits {
            limit: Some(credits(4)),
            window: Some(KeyWindow {
                amount: credits(3),
                calendar: Calendar::new(PeriodLength::Day, "UTC").unwrap(),
            }),
            tpm: Some(100_000),
            concurrency: Some(3),
            ..KeyLimits::default()
        };
        keys.push(key(store, account.id, limits).await);
    }
    keys
}
