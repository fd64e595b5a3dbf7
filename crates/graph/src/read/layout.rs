//! The structures of Parquet's footer and page headers: the type of every field, by its number.

/// The type of a field. `Any` is one that the decoder skips by its declared type.
pub(super) enum Kind {
    Any,
    Flag,
    Byte,
    /// Of two, four or eight bytes, or one of a list of names: all are written alike.
    Number,
    /// A number of at most this.
    AtMost(i32),
    /// The number of elements that follow, each of a byte or more.
    Count,
    Double,
    Text,
    List(&'static Kind),
    /// The fields with the numbers from 1 on; later ones are `Any`.
    Struct(&'static [Kind]),
}

use Kind::{Any, AtMost, Byte, Count, Double, Flag, List, Number, Struct, Text};

impl Kind {
    /// Whether Thrift's compact protocol writes this kind as `wire`.
    pub(super) fn is(&self, wire: u8) -> bool {
        match self {
            Any => true,
            Flag => matches!(wire, 1 | 2),
            Byte => wire == 3,
            Number | AtMost(_) | Count => matches!(wire, 4..=6),
            Double => wire == 7,
            Text => wire == 8,
            // A set is written like a list.
            List(_) => matches!(wire, 9 | 10),
            Struct(_) => wire == 12,
        }
    }
}

/// A structure without fields that matter here.
const EMPTY: Kind = Struct(&[]);

/// The footer of a file.
pub(super) const FILE: &[Kind] = &[
    Number,
    List(&Struct(ELEMENT)),
    Number,
    List(&Struct(ROW_GROUP)),
    List(&Struct(KEY_VALUE)),
    Text,
    List(&Struct(&[EMPTY, EMPTY])),
    Any,
    Any,
];

/// An element of the schema.
const ELEMENT: &[Kind] =
    &[Number, Number, Number, Text, Count, Number, Number, Number, Number, Struct(LOGICAL_TYPE)];

const LOGICAL_TYPE: &[Kind] = &[
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Struct(&[Number, Number]),
    EMPTY,
    TIME,
    TIME,
    Any,
    Struct(&[Byte, Flag]),
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    EMPTY,
    Struct(&[Byte]),
    Struct(&[Text]),
    Struct(&[Text, Number]),
    EMPTY,
];

/// Whether it is in UTC, and its unit.
const TIME: Kind = Struct(&[Flag, Struct(&[EMPTY, EMPTY, EMPTY])]);

const KEY_VALUE: &[Kind] = &[Text, Text];

const ROW_GROUP: &[Kind] =
    &[List(&Struct(CHUNK)), Number, Number, List(&Struct(&[Number, Flag, Flag])), Number, Any, Number];

/// One column of a row group.
const CHUNK: &[Kind] = &[Text, Number, Struct(COLUMN), Number, Number, Number, Number, Any, Any];

const COLUMN: &[Kind] = &[
    Number,
    List(&Number),
    Any,
    Number,
    Number,
    Number,
    Number,
    Any,
    Number,
    Number,
    Number,
    Struct(STATISTICS),
    List(&Struct(&[Number, Number, Number])),
    Number,
    Number,
    Struct(&[Number, List(&Number), List(&Number)]),
    Struct(&[Struct(BOX), List(&Number)]),
];

const STATISTICS: &[Kind] = &[Text, Text, Number, Number, Text, Text, Flag, Flag, Number];

/// The corners of geometries.
const BOX: &[Kind] = &[Double, Double, Double, Double, Double, Double, Double, Double];

/// The bytes that a page may have, unpacked: the decoder allocates as many as the header says before it unpacks any.
/// Writers aim at one megabyte.
const LARGEST_PAGE: i32 = 256 << 20;

/// What stands before a page.
pub(super) const PAGE: &[Kind] = &[
    Number,
    AtMost(LARGEST_PAGE),
    AtMost(LARGEST_PAGE),
    Number,
    Struct(&[Number, Number, Number, Number, Any]),
    EMPTY,
    Struct(&[Number, Number, Flag]),
    Struct(&[Number, Number, Number, Number, Number, Number, Flag, Any]),
];
