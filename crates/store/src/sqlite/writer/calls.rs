//! Loads the rows of calls, and then decides the calls.

use ledger::{Micro, Rates};

use super::ledger::Ledger;
use crate::books::Closed;
use crate::error::AdmitError;
use crate::records::call::{Admit, Close, Extend, SessionStep};
use crate::records::ids::HoldId;

impl Ledger<'_> {
    pub(crate) fn admit(
        &mut self,
        admit: Admit,
    ) -> rusqlite::Result<Result<(HoldId, Rates), AdmitError>> {
        self.load_key(admit.key)?;
        Ok(self.books.admit(admit))
    }

    pub(crate) fn extend(
        &mut self,
        extend: &Extend,
    ) -> rusqlite::Result<Option<Result<(), AdmitError>>> {
        self.load_hold(extend.hold)?;
        Ok(self.books.extend(extend))
    }

    pub(crate) fn step(
        &mut self,
        stepping: Box<SessionStep>,
    ) -> rusqlite::Result<Option<Result<Micro, AdmitError>>> {
        self.load_hold(stepping.hold)?;
        Ok(self.books.step(stepping))
    }

    pub(crate) fn stop_counting(&mut self, hold: HoldId) -> rusqlite::Result<()> {
        self.load_hold(hold)?;
        self.books.stop_counting(hold);
        Ok(())
    }

    /// Closes a hold. Returns the close if its rows could not be read.
    pub(crate) fn close(
        &mut self,
        closing: Close,
    ) -> Result<Closed, Box<(Close, rusqlite::Error)>> {
        let loaded = self.load_hold(closing.hold);
        match loaded.and_then(|()| self.reopen_lost(&closing)) {
            Ok(()) => Ok(self.books.close(closing)),
            Err(error) => Err(Box::new((closing, error))),
        }
    }
}
