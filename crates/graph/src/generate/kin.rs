//! The relations of a family, and sets of pairs over the few entities of one clan.
//!
//! A clan has at most 128 entities (people, their towns, the two genders), so the targets of an entity are
//! the bits of one number, and following a relation is a matter of a few `or`s.

/// How many entities a clan may have: the bits of a row.
pub(super) const LIMIT: usize = 128;

/// A relation between two members of a clan, or between a member and a town or gender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kin {
    ParentOf,
    SpouseOf,
    SiblingOf,
    GrandparentOf,
    UncleOf,
    AuntOf,
    CousinOf,
    LivesIn,
    Gender,
}

impl Kin {
    pub(super) const ALL: [Kin; 9] = [
        Kin::ParentOf,
        Kin::SpouseOf,
        Kin::SiblingOf,
        Kin::GrandparentOf,
        Kin::UncleOf,
        Kin::AuntOf,
        Kin::CousinOf,
        Kin::LivesIn,
        Kin::Gender,
    ];

    /// The name of the relation in the data.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kin::ParentOf => "parent_of",
            Kin::SpouseOf => "spouse_of",
            Kin::SiblingOf => "sibling_of",
            Kin::GrandparentOf => "grandparent_of",
            Kin::UncleOf => "uncle_of",
            Kin::AuntOf => "aunt_of",
            Kin::CousinOf => "cousin_of",
            Kin::LivesIn => "lives_in",
            Kin::Gender => "gender",
        }
    }

    /// How many of a thousand facts of this relation are left out of `train`. Relations that follow from others lose
    /// the most, so that there is something to derive.
    pub(super) fn held_per_mille(self) -> u32 {
        match self {
            Kin::ParentOf => 40,
            Kin::SpouseOf => 150,
            Kin::SiblingOf => 150,
            Kin::GrandparentOf => 200,
            Kin::UncleOf | Kin::AuntOf => 200,
            Kin::CousinOf => 200,
            Kin::LivesIn => 100,
            Kin::Gender => 20,
        }
    }
}

/// A set of pairs of entities of one clan.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pairs([u128; LIMIT]);

impl Pairs {
    pub(super) const EMPTY: Pairs = Pairs([0; LIMIT]);

    pub(super) fn insert(&mut self, source: usize, target: usize) {
        self.0[source] |= 1 << target;
    }

    pub(super) fn contains(&self, source: usize, target: usize) -> bool {
        self.0[source] >> target & 1 == 1
    }

    /// The targets of `source`, one bit each.
    pub(super) fn row(&self, source: usize) -> u128 {
        self.0[source]
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|row| row.count_ones()).sum()
    }

    /// The pairs that are in both sets.
    pub(super) fn common(&self, other: &Pairs) -> u32 {
        self.0.iter().zip(&other.0).map(|(ours, theirs)| (ours & theirs).count_ones()).sum()
    }

    pub(super) fn add_all(&mut self, other: &Pairs) {
        for (ours, theirs) in self.0.iter_mut().zip(&other.0) {
            *ours |= theirs;
        }
    }

    /// Adds `targets` to the targets of `source`.
    pub(super) fn add_row(&mut self, source: usize, targets: u128) {
        self.0[source] |= targets;
    }

    /// All pairs, ordered by source and target.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().enumerate().flat_map(|(source, &row)| bits(row).map(move |target| (source, target)))
    }
}

/// The positions of the ones in `row`, ascending.
pub(super) fn bits(mut row: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (row != 0).then(|| row.trailing_zeros() as usize)?;
        row &= row - 1;
        Some(place)
    })
}

/// The facts of a clan, each relation readable in both directions.
pub(super) struct Facts {
    forward: [Pairs; Kin::ALL.len()],
    inverse: [Pairs; Kin::ALL.len()],
}

impl Facts {
    /// No facts. On the heap, since the rows of all relations fill some 36 kilobytes.
    pub(super) fn none() -> Box<Facts> {
        Box::new(Facts {
            forward: [const { Pairs::EMPTY }; Kin::ALL.len()],
            inverse: [const { Pairs::EMPTY }; Kin::ALL.len()],
        })
    }

    pub(super) fn insert(&mut self, kin: Kin, head: usize, tail: usize) {
        self.forward[kin as usize].insert(head, tail);
        self.inverse[kin as usize].insert(tail, head);
    }

    /// Head to tail.
    pub(super) fn forward(&self, kin: Kin) -> &Pairs {
        &self.forward[kin as usize]
    }

    /// Tail to head.
    pub(super) fn inverse(&self, kin: Kin) -> &Pairs {
        &self.inverse[kin as usize]
    }

    /// Every fact as (relation, head, tail), in a fixed order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Kin, usize, usize)> + '_ {
        Kin::ALL.into_iter().flat_map(|kin| self.forward(kin).iter().map(move |(h, t)| (kin, h, t)))
    }
}
