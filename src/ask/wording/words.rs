//! Words of relations, by kind, and what is said for some labels.

/// Labels that no grammar makes a phrase of, and what a person says: the relations of WordNet, mostly.
pub(super) const SAID: &[(&str, &str)] = &[
    ("part of", "is part of"),
    ("location of", "is the location of"),
    ("capital of", "is the capital of"),
    ("isa", "is a kind of"),
    ("is a", "is a kind of"),
    ("also see", "refers also to"),
    ("see also", "refers also to"),
    ("same as", "is the same as"),
    ("hypernym", "is a kind of"),
    ("hyponym", "has the kind"),
    ("instance hypernym", "is an instance of"),
    ("derivationally related form", "is derivationally related to"),
    ("member meronym", "has the member"),
    ("part meronym", "has the part"),
    ("synset domain topic of", "belongs to the topic"),
    ("member of domain region", "is the region of"),
    ("member of domain usage", "is the usage of"),
    ("verb group", "is a verb in a group with"),
    ("assesses effect of", "assesses the effect of"),
    ("shares border with", "shares a border with"),
];
/// Prefixes that stay with their word: `co-occurs`.
pub(super) const PREFIXES: &str = "co non up down self pre multi";

/// Prepositions that a relation may end with, or begin.
pub(super) const PREPOSITIONS: &str = "\
    of to in by with from for on at as about into under over through within after before against via \
    using between among";
/// First words that a subject can be put before.
pub(super) const AUXILIARIES: &str = "is was are were has had have can may does";
/// Adjectives before a preposition.
pub(super) const ADJECTIVES: &str = "\
    similar adjacent equal equivalent next close capable due parallel orthologous homologous identical \
    opposite native specific sensitive resistant active different";
/// Participles that do not end in `ed`.
pub(super) const PARTICIPLES: &str = "\
    born made known written held led found won given built drawn set bound taught split spoken sung \
    shown sold sent paid fed grown bred run kept driven caught taken seen done begun chosen spent worn \
    said";
/// What a subject did, and what was not done to it: `lived_in`.
pub(super) const ACTIVE: &str = "\
    lived died worked studied played starred appeared participated served graduated competed \
    collaborated emigrated immigrated migrated moved travelled traveled resided retired belonged \
    contributed donated exported imported occurred happened originated evolved emerged voted fought \
    campaigned performed debuted responded replied subscribed reacted converted defected won led";
/// Verbs in the third person that relations are named by.
pub(super) const VERBS: &str = "\
    accepts accesses accompanies achieves acquires activates addresses adds adjoins affects aggravates \
    agrees allows alters analyses analyzes applies approves asks assesses attacks attends augments \
    becomes begins binds blocks borders breaks builds buys calls carries catalyses catalyzes causes \
    cites cleaves combines communicates competes complements completes complicates comprises confers \
    confirms connects constitutes constrains contains continues contradicts contributes controls creates \
    crosses decreases defeats defines delivers describes destroys detects determines develops diagnoses \
    directs disrupts distributes divides eats edits employs enables encodes enhances enjoys enters \
    equals evaluates exhibits exploits exports expresses extends facilitates feeds fills follows funds \
    generates gets gives governs grants harbors helps holds hosts identifies imitates impersonates \
    implements implies imports improves includes increases indicates induces influences inherits \
    inhibits initiates interconnects invades investigates invests joins keeps knows lacks learns leaves \
    likes loves maintains makes manages manufactures marries means measures mediates meets \
    mitigates modifies needs observes operates orbits owns performs plays practices precedes predicts \
    prevents produces promotes provides publishes recommends reduces regulates releases removes replaces \
    represents requires resembles says secretes sees sells sends serves shares speaks sponsors starts stimulates \
    stores succeeds suggests supplies supports suppresses surrounds takes targets teaches tells \
    terminates tolerates transcribes transforms translates transports treats triggers trusts understands \
    upholds uses validates violates visits wants warns wears wins writes yields";
/// Verbs that need a preposition, and which.
pub(super) const GOVERNING: &[(&str, &str)] = &[
    ("belongs", "to"),
    ("collaborates", "with"),
    ("communicates", "with"),
    ("competes", "with"),
    ("complies", "with"),
    ("conflicts", "with"),
    ("consists", "of"),
    ("corresponds", "to"),
    ("depends", "on"),
    ("derives", "from"),
    ("differs", "from"),
    ("interacts", "with"),
    ("lives", "in"),
    ("occurs", "with"),
    ("overlaps", "with"),
    ("participates", "in"),
    ("reacts", "with"),
    ("refers", "to"),
    ("relates", "to"),
    ("relies", "on"),
    ("resides", "in"),
    ("responds", "to"),
    ("subscribes", "to"),
];
/// Endings that few nouns have.
pub(super) const VERB_ENDINGS: &str = "izes ises ifies ylates ulates olves uces ibes ludes quires";
/// Nouns that have them.
pub(super) const NOUNS_LIKE_VERBS: &str = "prizes rises exercises premises enterprises";
/// Plurals that do not end in `s`.
pub(super) const PLURALS: &str = "people children men women alumni criteria phenomena genera media";
/// Endings in `s` that are no plural.
pub(super) const SINGULAR_ENDINGS: &str = "ss us is";
/// What ends as a plural does, and is one thing.
pub(super) const SINGULARS: &str = "\
    series species headquarters news gas atlas bias lens canvas diabetes rabies herpes politics physics \
    economics mathematics genetics genomics ethics linguistics mechanics dynamics gymnastics";

/// What a subject is of a thing that the label names: `member_of_team`.
pub(super) const ROLES: &str = "member part instance subclass kind citizen resident";
/// Where and when something was done: `place_founded`.
pub(super) const PLACES: &str = "place places location locations city cities country countries";
pub(super) const TIMES: &str = "date dates day time year years";
