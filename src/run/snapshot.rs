//! The data of a run, kept beside what was learnt from it: data from memory or a pipe cannot be read again, and an update has
//! to know what the run was trained on.
//!
//! The file is a zstd stream of numbers (little endian) and texts, each text with its length before it: names of entities,
//! names of relations, labels, then the facts of each split as three ids.

use super::directory::{FACTS, RunDirectory, write_whole};
use super::{Checksum, RunError};
use crate::graph::{Dataset, EntityId, Findings, Known, Names, RelationId, Triple, Vocabulary};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;

/// The first bytes of the file: what it is, and in which layout.
const MAGIC: &[u8; 8] = b"rgfacts1";
/// The most that is allocated before it has been read: a damaged file may claim any size.
const AT_ONCE: usize = 1 << 20;

/// Writes the data of the run in `directory`, unless it is already there.
///
/// # Errors
/// If the file cannot be written.
pub fn keep(directory: &RunDirectory, dataset: &Dataset, data: &Checksum) -> Result<(), RunError> {
    if read(directory).is_ok_and(|kept| kept.is_some_and(|kept| sum(&kept) == *data)) {
        return Ok(());
    }
    write_whole(&directory.file(FACTS), |out| {
        // The fastest level: slower ones hardly compress the numbers any further.
        let mut packer = zstd::stream::write::Encoder::new(out, 1)?;
        write(&mut packer, dataset)?;
        packer.finish().map(drop)
    })
}

/// The data that the run in `directory` was made from; `None` for runs of versions that kept none.
///
/// # Errors
/// If the file is damaged.
pub fn read(directory: &RunDirectory) -> Result<Option<Dataset>, RunError> {
    let path = directory.file(FACTS);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunError::reading(&path)(error)),
    };
    let whole =
        zstd::stream::read::Decoder::new(file).and_then(|unpacked| read_all(BufReader::new(unpacked)));
    whole.map(Some).map_err(|error| RunError::Broken { path, what: format!("is damaged ({error})") })
}

/// A data set as bytes, to be sent to other processes.
///
/// # Errors
/// If there is no memory for them.
pub fn pack(dataset: &Dataset) -> io::Result<Vec<u8>> {
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
    write(&mut packer, dataset)?;
    packer.finish()
}

/// The data set that was [packed](pack).
///
/// # Errors
/// If the bytes are damaged.
pub fn unpack(bytes: &[u8]) -> io::Result<Dataset> {
    read_all(BufReader::new(zstd::stream::read::Decoder::new(bytes)?))
}

/// The checksum of all of it.
pub fn sum(dataset: &Dataset) -> Checksum {
    Checksum::of_dataset(dataset, &Checksum::of_known(&dataset.names, &dataset.known))
}

fn write(out: &mut impl Write, dataset: &Dataset) -> io::Result<()> {
    let Dataset { names, known, test, test_left_out, .. } = dataset;
    out.write_all(MAGIC)?;
    for vocabulary in [&names.entities, &names.relations] {
        put_number(out, vocabulary.len())?;
        vocabulary.iter().try_for_each(|name| put_text(out, name))?;
    }
    let mut labels: Vec<(u32, &str)> =
        names.labels.iter().map(|(id, label)| (id.0, label.as_str())).collect();
    let mut of_relations: Vec<(u32, &str)> =
        names.relation_labels.iter().map(|(id, label)| (id.0, label.as_str())).collect();
    for labels in [&mut labels, &mut of_relations] {
        labels.sort_unstable();
        put_number(out, labels.len())?;
        for (id, label) in labels {
            put_number(out, *id as usize)?;
            put_text(out, label)?;
        }
    }
    let queries: Option<&[Triple]> = known.has_own_graph().then_some(&known.queries);
    put_number(out, usize::from(queries.is_some()))?;
    for split in [&known.facts, queries.unwrap_or_default(), &known.valid, test, test_left_out] {
        put_number(out, split.len())?;
        for block in split.chunks(4096) {
            let ids = block.iter().flat_map(|fact| [fact.head.0, fact.relation.0, fact.tail.0]);
            out.write_all(&ids.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
        }
    }
    Ok(())
}

fn put_number(out: &mut impl Write, number: usize) -> io::Result<()> {
    out.write_all(&(number as u64).to_le_bytes())
}

fn put_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    put_number(out, text.len())?;
    out.write_all(text.as_bytes())
}

fn read_all(mut input: impl Read) -> io::Result<Dataset> {
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(wrong("an unknown layout"));
    }
    let (entities, relations) = (vocabulary(&mut input)?, vocabulary(&mut input)?);
    let mut labels = |most: usize| -> io::Result<Vec<(u32, String)>> {
        let count = number(&mut input)?;
        (0..count)
            .map(|_| {
                let id = number(&mut input)?;
                if id >= most {
                    return Err(wrong("a label of an unknown id"));
                }
                Ok((id as u32, text(&mut input)?))
            })
            .collect()
    };
    let of_entities = labels(entities.len())?.into_iter().map(|(id, label)| (EntityId(id), label)).collect();
    let of_relations =
        labels(relations.len())?.into_iter().map(|(id, label)| (RelationId(id), label)).collect();
    let own_graph = number(&mut input)? == 1;
    let most = [entities.len(), relations.len()];
    let mut split = || triples(&mut input, most).map(Arc::<[Triple]>::from);
    let (facts, queries) = (split()?, split()?);
    let (valid, test, test_left_out) = (split()?, split()?, split()?);
    let queries = if own_graph { queries } else { facts.clone() };
    Ok(Dataset {
        names: Arc::new(Names { entities, relations, labels: of_entities, relation_labels: of_relations }),
        known: Known { facts, queries, valid },
        test,
        test_left_out,
        findings: Findings::default(),
    })
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn number(input: &mut impl Read) -> io::Result<usize> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| wrong("a number that is too large"))
}

fn text(input: &mut impl Read) -> io::Result<String> {
    let length = number(input)?;
    let mut bytes = Vec::with_capacity(length.min(AT_ONCE));
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    String::from_utf8(bytes).map_err(|_| wrong("a text that is not UTF-8"))
}

fn vocabulary(input: &mut impl Read) -> io::Result<Vocabulary> {
    let mut names = Vocabulary::default();
    for place in 0..number(input)? {
        if names.intern(&text(input)?) as usize != place {
            return Err(wrong("a duplicate name"));
        }
    }
    Ok(names)
}

fn triples(input: &mut impl Read, [entities, relations]: [usize; 2]) -> io::Result<Vec<Triple>> {
    let count = number(input)?;
    let mut facts = Vec::with_capacity(count.min(AT_ONCE));
    let mut bytes = [0; 12];
    for _ in 0..count {
        input.read_exact(&mut bytes)?;
        let [head, relation, tail] =
            [0, 4, 8].map(|at| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte])));
        if head.max(tail) as usize >= entities || relation as usize >= relations {
            return Err(wrong("a fact with an unknown id"));
        }
        facts.push(Triple::new(head, relation, tail));
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        assert!(read(&directory).unwrap().is_none());
        let mut dataset = crate::generate::demonstration();
        let names = Arc::make_mut(&mut dataset.names);
        names.entities.intern("a name\twith\nbreaks");
        names.labels.insert(EntityId(3), "a\tlabel\nof two lines".to_owned());
        names.relation_labels.insert(RelationId(1), "is sibling of".to_owned());
        keep(&directory, &dataset, &sum(&dataset)).unwrap();
        let kept = read(&directory).unwrap().unwrap();
        assert_eq!(sum(&kept), sum(&dataset));
        assert_eq!(kept.names.labels, dataset.names.labels);
        assert_eq!(kept.names.relation_labels, dataset.names.relation_labels);
        assert!(!kept.known.has_own_graph());
        dataset.known.queries = dataset.known.queries[1..].into();
        keep(&directory, &dataset, &sum(&dataset)).unwrap();
        let kept = read(&directory).unwrap().unwrap();
        assert!(kept.known.has_own_graph() && sum(&kept) == sum(&dataset));
        std::fs::write(directory.file(FACTS), "nothing").unwrap();
        assert!(read(&directory).is_err());
    }

    #[test]
    fn a_damaged_file_is_an_error_wherever_it_breaks_off() {
        let mut whole = Vec::new();
        write(&mut whole, &crate::generate::demonstration()).unwrap();
        for length in [0, 7, 8, 12, 100, whole.len() / 2, whole.len() - 1] {
            assert!(read_all(&whole[..length]).is_err(), "{length}");
        }
        let mut claims = whole.clone();
        claims[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(read_all(&claims[..]).is_err());
        assert!(read_all(&whole[..]).is_ok());
    }
}
