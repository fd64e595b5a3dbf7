//! One clan: two founding couples, their descendants, those who marry in, and everything that is true of them.
//!
//! Clans share nothing but towns, so that each can be generated on its own, from its number and the seed.

use super::dice::Dice;
use super::kin::{Facts, Kin, bits};
use super::names::{self, SURNAMES_A_CLAN};
use std::collections::HashMap;

/// How many towns the people of a clan choose from.
pub(super) const TOWNS_A_CLAN: usize = 6;
/// How many couples in a thousand are married.
const MARRIED: u32 = 900;
/// How many people in a thousand find a partner.
const FINDS_PARTNER: u32 = 800;
/// How many of these in a thousand look inside the clan first, and find a partner if there is an unrelated one of
/// their age.
const MARRIES_WITHIN: u32 = 300;
/// How many people in a thousand live where their partner does.
const LIVES_WITH_PARTNER: u32 = 900;
/// How many people in a thousand live where their mother does.
const LIVES_NEAR_MOTHER: u32 = 700;
/// The number of children of a couple is one of these.
const CHILDREN: [u32; 8] = [0, 1, 2, 2, 3, 3, 4, 5];

/// A member of a clan.
struct Person {
    woman: bool,
    surname: usize,
    given: u32,
    generation: u32,
    birth_year: u32,
    /// Mother and father, both members or neither.
    parents: Option<(usize, usize)>,
    partner: Option<usize>,
    /// An index into the clan's towns.
    town: usize,
}

/// A clan with all facts that are true of it.
pub(super) struct Clan {
    number: u64,
    people: Vec<Person>,
    married: Vec<(usize, usize)>,
    /// The numbers of the towns that its people live in.
    towns: [u64; TOWNS_A_CLAN],
    incomers: usize,
}

impl Clan {
    /// The clan with this number, `size` people, whose towns are `towns`.
    pub(super) fn new(number: u64, size: usize, towns: [u64; TOWNS_A_CLAN], dice: &mut Dice) -> Self {
        let mut clan =
            Clan { number, people: Vec::with_capacity(size), married: Vec::new(), towns, incomers: 0 };
        while clan.people.len() < size {
            clan.found(size, dice);
        }
        clan
    }

    /// Two founding couples and their descendants, until the line dies out or there are `size` people.
    fn found(&mut self, size: usize, dice: &mut Dice) {
        let mut parents = Vec::new();
        for line in 0..2 {
            if self.people.len() + 2 > size {
                break;
            }
            let wife = self.join(true, line, 0, dice);
            let husband = self.join(false, line, 0, dice);
            parents.push(self.couple(wife, husband, dice));
        }
        if parents.is_empty() && self.people.len() < size {
            self.join(true, 0, 0, dice);
        }
        while !parents.is_empty() {
            let mut children = Vec::new();
            for &couple in &parents {
                for _ in 0..dice.one_of(&CHILDREN) {
                    if self.people.len() < size {
                        children.push(self.child(couple, dice));
                    }
                }
            }
            parents = self.partners(&children, size, dice);
        }
    }

    /// The couples that a generation forms.
    fn partners(&mut self, generation: &[usize], size: usize, dice: &mut Dice) -> Vec<(usize, usize)> {
        let mut couples = Vec::new();
        for &person in generation {
            if self.people[person].partner.is_some() || !dice.chance(FINDS_PARTNER) {
                continue;
            }
            let woman = self.people[person].woman;
            let within = dice
                .chance(MARRIES_WITHIN)
                .then(|| generation.iter().copied().find(|&other| self.may_marry(person, other)))
                .flatten();
            let partner = match within {
                Some(other) => other,
                None if self.people.len() < size => {
                    self.incomers += 1;
                    let surname = 2 + self.incomers % (SURNAMES_A_CLAN - 2);
                    self.join(!woman, surname, self.people[person].generation, dice)
                }
                None => continue,
            };
            let (wife, husband) = if woman { (person, partner) } else { (partner, person) };
            couples.push(self.couple(wife, husband, dice));
        }
        couples
    }

    /// Whether two people of one generation could be a couple: both free, and without a common grandparent.
    fn may_marry(&self, one: usize, other: usize) -> bool {
        let free = |person: usize| self.people[person].partner.is_none();
        let (ours, theirs) = (self.ancestors(one), self.ancestors(other));
        free(one)
            && free(other)
            && self.people[one].woman != self.people[other].woman
            && ours.iter().all(|ancestor| !theirs.contains(ancestor))
    }

    /// Parents and grandparents.
    fn ancestors(&self, person: usize) -> Vec<usize> {
        let parents = |person: usize| self.people[person].parents.into_iter().flat_map(|(m, f)| [m, f]);
        parents(person).chain(parents(person).flat_map(parents)).collect()
    }

    /// Someone without parents in the clan.
    fn join(&mut self, woman: bool, surname: usize, generation: u32, dice: &mut Dice) -> usize {
        let town = dice.below(TOWNS_A_CLAN as u32) as usize;
        let birth_year = 1850 + 28 * generation + dice.below(20);
        self.add(woman, surname, generation, birth_year, None, town, dice)
    }

    fn child(&mut self, (mother, father): (usize, usize), dice: &mut Dice) -> usize {
        let woman = dice.chance(500);
        let (surname, generation) = (self.people[father].surname, self.people[mother].generation + 1);
        let youngest = self.people[mother].birth_year.max(self.people[father].birth_year);
        let birth_year = youngest + 18 + dice.below(20);
        let town = self.near(mother, LIVES_NEAR_MOTHER, dice);
        self.add(woman, surname, generation, birth_year, Some((mother, father)), town, dice)
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of a person")]
    fn add(
        &mut self,
        woman: bool,
        surname: usize,
        generation: u32,
        birth_year: u32,
        parents: Option<(usize, usize)>,
        town: usize,
        dice: &mut Dice,
    ) -> usize {
        let given = dice.below(names::GIVEN);
        self.people.push(Person {
            woman,
            surname,
            given,
            generation,
            birth_year,
            parents,
            partner: None,
            town,
        });
        self.people.len() - 1
    }

    /// Makes two people a couple, married or not. The husband chooses again where to live.
    fn couple(&mut self, wife: usize, husband: usize, dice: &mut Dice) -> (usize, usize) {
        self.people[wife].partner = Some(husband);
        self.people[husband].partner = Some(wife);
        if dice.chance(MARRIED) {
            self.married.push((wife, husband));
        }
        self.people[husband].town = self.near(wife, LIVES_WITH_PARTNER, dice);
        (wife, husband)
    }

    /// The town of `person` with probability `per_mille` / 1000, otherwise another town of the clan.
    fn near(&self, person: usize, per_mille: u32, dice: &mut Dice) -> usize {
        let town = self.people[person].town;
        if dice.chance(per_mille) {
            return town;
        }
        (town + 1 + dice.below(TOWNS_A_CLAN as u32 - 1) as usize) % TOWNS_A_CLAN
    }

    /// The names of all entities of the clan: its people, its towns, the two genders.
    pub(super) fn names(&self) -> Vec<String> {
        let mut bearers: HashMap<(usize, bool, u32), u64> = HashMap::new();
        let people = self.people.iter().map(|person| {
            let namesakes = bearers.entry((person.surname, person.woman, person.given)).or_default();
            let number = names::number(self.number, *namesakes);
            *namesakes += 1;
            let name = format!(
                "{}_{}",
                names::given(person.woman, person.given),
                names::surname(self.number, person.surname)
            );
            match number {
                None => name,
                Some(number) => format!("{name}_{number}"),
            }
        });
        let mut names: Vec<String> = people.collect();
        names.extend(self.towns.map(names::town));
        names.extend(["woman".to_owned(), "man".to_owned()]);
        names
    }

    /// What people read instead of the `person`-th name.
    pub(super) fn label(&self, person: usize) -> String {
        let Person { woman, surname, given, birth_year, .. } = self.people[person];
        let surname = names::surname(self.number, surname);
        format!("{} {surname} (born {birth_year})", names::given(woman, given))
    }

    /// How many people there are.
    pub(super) fn len(&self) -> usize {
        self.people.len()
    }

    /// All facts that are true of the clan.
    pub(super) fn world(&self) -> Box<Facts> {
        let mut world = Facts::none();
        let (towns, genders) = (self.people.len(), self.people.len() + TOWNS_A_CLAN);
        for (id, person) in self.people.iter().enumerate() {
            world.insert(Kin::LivesIn, id, towns + person.town);
            world.insert(Kin::Gender, id, genders + usize::from(!person.woman));
            if let Some((mother, father)) = person.parents {
                world.insert(Kin::ParentOf, mother, id);
                world.insert(Kin::ParentOf, father, id);
            }
        }
        for &(wife, husband) in &self.married {
            world.insert(Kin::SpouseOf, wife, husband);
            world.insert(Kin::SpouseOf, husband, wife);
        }
        self.add_siblings(&mut world);
        self.add_elders(&mut world);
        self.add_cousins(&mut world);
        world
    }

    fn add_siblings(&self, world: &mut Facts) {
        for (one, person) in self.people.iter().enumerate() {
            for other in (0..self.people.len()).filter(|&other| other != one) {
                if person.parents.is_some() && person.parents == self.people[other].parents {
                    world.insert(Kin::SiblingOf, one, other);
                }
            }
        }
    }

    /// Grandparents, uncles and aunts, including those by marriage.
    fn add_elders(&self, world: &mut Facts) {
        for id in 0..self.people.len() {
            let children = world.forward(Kin::ParentOf).row(id);
            for grandchild in children_of(world, children) {
                world.insert(Kin::GrandparentOf, id, grandchild);
            }
            let spouses = bits(world.forward(Kin::SpouseOf).row(id));
            let siblings = world.forward(Kin::SiblingOf).row(id)
                | spouses.fold(0, |all, spouse| all | world.forward(Kin::SiblingOf).row(spouse));
            let kin = if self.people[id].woman { Kin::AuntOf } else { Kin::UncleOf };
            for niece in children_of(world, siblings) {
                world.insert(kin, id, niece);
            }
        }
    }

    fn add_cousins(&self, world: &mut Facts) {
        for id in 0..self.people.len() {
            let parents = bits(world.inverse(Kin::ParentOf).row(id));
            let their_siblings =
                parents.fold(0, |all, parent| all | world.forward(Kin::SiblingOf).row(parent));
            for cousin in children_of(world, their_siblings) {
                world.insert(Kin::CousinOf, id, cousin);
            }
        }
    }
}

/// The children of a set of people.
fn children_of(world: &Facts, people: u128) -> Vec<usize> {
    bits(bits(people).fold(0, |all, parent| all | world.forward(Kin::ParentOf).row(parent))).collect()
}
