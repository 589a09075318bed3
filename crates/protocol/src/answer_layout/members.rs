//! The members of an event that clients need, and that some upstreams leave out.

/// A set of these members. The native path adds a required member that an event lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemberSet(u8);

impl MemberSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const SEQUENCE: Self = Self(1);
    /// The index of the item, block or step.
    pub(crate) const INDEX: Self = Self(1 << 1);
    pub(crate) const ITEM_ID: Self = Self(1 << 2);
    /// The index of the part within its item. In chat, the delta of a choice.
    pub(crate) const PART: Self = Self(1 << 3);
    pub(crate) const ITEMS: Self = Self(1 << 4);
    /// The object that contains the members of the answer.
    pub(crate) const ENVELOPE: Self = Self(1 << 5);
    pub(crate) const TYPE: Self = Self(1 << 6);
    /// Not a member. Says that an earlier event has started the part to which this event adds.
    pub(crate) const PART_STARTED: Self = Self(1 << 7);

    #[must_use]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
