//! The images of an answer, for billing.

use super::grade::PriceGrade;

/// The images of an answer, with the cost and grade that it reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pictures {
    /// The number of images that were delivered.
    pub delivered: u64,
    /// The number of further images of which only previews were delivered so far.
    pub previewed: u64,
    /// The cost of the images as the upstream reports it, in ticks of 1e-10 US dollar.
    pub usd_ticks: Option<u64>,
    /// The grade of the images, as the answer reports it.
    pub reported: PriceGrade,
}

impl Pictures {
    /// The number of images to bill. An image of which the client has seen a preview is made.
    pub fn begun(&self) -> u64 {
        self.delivered.saturating_add(self.previewed)
    }

    /// Images without further information, if there are any.
    pub(crate) fn some(delivered: u64) -> Option<Box<Self>> {
        (delivered > 0).then(|| {
            Box::new(Self {
                delivered,
                ..Self::default()
            })
        })
    }
}
