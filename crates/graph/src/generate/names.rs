//! Names for people and towns: readable, and unique without a list of the names in use.
//!
//! Every clan has its own eight surnames out of 3,072. When they run out, clans reuse them from the first and everybody
//! gets a number; numbers also distinguish namesakes within a clan.

use super::kin::LIMIT;

/// How many surnames a clan has: two for the founding lines, the rest for those who marry in.
pub(super) const SURNAMES_A_CLAN: usize = 8;

const WOMEN: [&str; 48] = [
    "Ada", "Agnes", "Alma", "Anna", "Astrid", "Beatrix", "Bella", "Cara", "Clara", "Cora", "Dora", "Edith",
    "Elena", "Elsa", "Emma", "Esther", "Eva", "Fanny", "Flora", "Frida", "Gerda", "Greta", "Hanna", "Hazel",
    "Helena", "Ida", "Ilse", "Ines", "Iris", "Jana", "Julia", "Karin", "Klara", "Laura", "Lena", "Lydia",
    "Maria", "Marta", "Mina", "Nina", "Nora", "Olga", "Paula", "Rosa", "Ruth", "Selma", "Vera", "Wanda",
];

const MEN: [&str; 48] = [
    "Adam", "Albert", "Alvin", "Anton", "Arno", "Basil", "Bruno", "Carl", "Casper", "Conrad", "David",
    "Edgar", "Edwin", "Emil", "Erik", "Ernst", "Felix", "Franz", "Fritz", "Georg", "Gustav", "Hans", "Hugo",
    "Ivan", "Jacob", "Jonas", "Josef", "Julius", "Kurt", "Leo", "Linus", "Ludwig", "Magnus", "Martin", "Max",
    "Moritz", "Nils", "Oscar", "Otto", "Paul", "Peter", "Rolf", "Samuel", "Simon", "Theo", "Victor",
    "Walter", "Xaver",
];

const SURNAME_STARTS: [&str; 64] = [
    "Alder", "Ames", "Arn", "Bach", "Bern", "Birk", "Blom", "Brand", "Brook", "Burg", "Dahl", "Dorn", "Eber",
    "Eck", "Egg", "Eich", "Elm", "Falk", "Farn", "Feld", "Fern", "Finster", "Forst", "Fuchs", "Gold", "Graf",
    "Grim", "Gron", "Hagen", "Hart", "Hasel", "Heid", "Hein", "Holm", "Horn", "Isen", "Kalt", "Kern",
    "Kirch", "Kron", "Lager", "Lang", "Lind", "Lund", "Mar", "Mohr", "Morgen", "Nord", "Oster", "Raben",
    "Reich", "Ried", "Rosen", "Roth", "Sand", "Schon", "Sil", "Stein", "Stern", "Tann", "Thal", "Wald",
    "Winter", "Wolf",
];

const SURNAME_ENDS: [&str; 48] = [
    "acker", "auer", "bach", "baum", "beck", "berg", "berger", "bert", "blad", "bock", "born", "brand",
    "burg", "dal", "dorf", "eck", "egger", "feld", "felder", "fors", "gard", "gren", "hardt", "haus", "heim",
    "hof", "hofer", "holt", "kamp", "land", "ler", "lin", "man", "mark", "mayer", "meister", "mond", "ner",
    "quist", "rath", "son", "stad", "stein", "strom", "thal", "wald", "weg", "wig",
];

const TOWN_STARTS: [&str; 32] = [
    "Ash", "Bex", "Black", "Bright", "Clay", "Cold", "Crow", "Deep", "East", "Fair", "Fen", "Glen", "Green",
    "Grey", "High", "Kings", "Lake", "Long", "Marsh", "Mill", "New", "North", "Oak", "Old", "Red", "Salt",
    "Silver", "South", "Stone", "West", "White", "Wood",
];

const TOWN_ENDS: [&str; 16] = [
    "bridge", "brook", "bury", "church", "cliff", "combe", "dale", "field", "ford", "gate", "ham", "haven",
    "mouth", "port", "ton", "wick",
];

/// How many clans have surnames of their own before surnames are reused.
const CLANS_A_ROUND: u64 = (SURNAME_STARTS.len() * SURNAME_ENDS.len() / SURNAMES_A_CLAN) as u64;

/// How many given names there are for either gender.
pub(super) const GIVEN: u32 = 48;

pub(super) fn given(woman: bool, which: u32) -> &'static str {
    if woman { WOMEN[which as usize] } else { MEN[which as usize] }
}

/// The `which`-th surname of a clan.
pub(super) fn surname(clan: u64, which: usize) -> String {
    let place = (clan % CLANS_A_ROUND) as usize * SURNAMES_A_CLAN + which;
    // A step coprime to the number of surnames visits all of them and keeps neighbours apart.
    let place = place * 1115 % (SURNAME_STARTS.len() * SURNAME_ENDS.len());
    let (start, end) = (place / SURNAME_ENDS.len(), place % SURNAME_ENDS.len());
    format!("{}{}", SURNAME_STARTS[start], SURNAME_ENDS[end])
}

/// The number that tells namesakes apart, from how many in the clan already bear the name and from the clan's round.
/// The first of the first round needs none.
pub(super) fn number(clan: u64, namesakes: u64) -> Option<u64> {
    let before = clan / CLANS_A_ROUND * LIMIT as u64 + namesakes;
    (before > 0).then_some(before + 1)
}

/// The name of a town.
pub(super) fn town(town: u64) -> String {
    let names = (TOWN_STARTS.len() * TOWN_ENDS.len()) as u64;
    let place = (town * 77 % names) as usize;
    let name = format!("{}{}", TOWN_STARTS[place / TOWN_ENDS.len()], TOWN_ENDS[place % TOWN_ENDS.len()]);
    match town / names {
        0 => name,
        round => format!("{name}_{}", round + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_clans_of_a_round_share_a_surname() {
        let all = (0..CLANS_A_ROUND).flat_map(|clan| (0..SURNAMES_A_CLAN).map(move |i| surname(clan, i)));
        assert_eq!(all.collect::<HashSet<_>>().len(), 3072);
    }

    #[test]
    fn no_two_towns_share_a_name() {
        assert_eq!((0..2000).map(town).collect::<HashSet<_>>().len(), 2000);
    }

    #[test]
    fn given_names_are_distinct() {
        let all: HashSet<_> = WOMEN.iter().chain(&MEN).collect();
        assert_eq!(all.len(), 2 * GIVEN as usize);
    }
}
