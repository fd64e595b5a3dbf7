//! Event files for TensorBoard: scalars only, written as the metrics come.
//!
//! An event file is a sequence of records: the length (u64, little endian), a masked CRC-32C of the length, the
//! payload, a masked CRC-32C of the payload. A payload is the protocol buffer `Event { wall_time = 1: double,
//! step = 2: int64, file_version = 3: string, summary = 5: Summary { value = 1: { tag = 1: string, simple_value
//! = 2: float } } }`, small enough to be written by hand.

use super::{RunError, directory};
use crate::progress::Metric;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An open event file.
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Makes a new event file in `folder`, which is made if needed. Every invocation of a run has its own.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(folder: &Path) -> Result<Self, RunError> {
        std::fs::create_dir_all(folder).map_err(RunError::writing(folder))?;
        let now = now();
        let name = format!("events.out.tfevents.{:010}.{}.ruleguider", now as u64, std::process::id());
        let path = folder.join(name);
        let file = File::create(&path).map_err(RunError::writing(&path))?;
        let mut events = Self { path, file };
        let mut payload = Vec::new();
        put_double(&mut payload, 1, now);
        put_bytes(&mut payload, 3, b"brain.Event:2");
        events.put(&payload)?;
        Ok(events)
    }

    /// Adds the numbers of a metric, each under `stage/name`.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, metric: &Metric) -> Result<(), RunError> {
        let mut summary = Vec::new();
        for (name, value) in &metric.figures {
            let Some(value) = value.as_f64() else { continue };
            let mut scalar = Vec::new();
            put_bytes(&mut scalar, 1, format!("{}/{name}", metric.stage).as_bytes());
            put_float(&mut scalar, 2, value as f32);
            put_bytes(&mut summary, 1, &scalar);
        }
        let mut payload = Vec::new();
        put_double(&mut payload, 1, now());
        put_varint(&mut payload, 2 << 3);
        put_varint(&mut payload, metric.step);
        put_bytes(&mut payload, 5, &summary);
        self.put(&payload)
    }

    fn put(&mut self, payload: &[u8]) -> Result<(), RunError> {
        let length = (payload.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(payload.len() + 16);
        record.extend(length);
        record.extend(masked_crc(&length).to_le_bytes());
        record.extend(payload);
        record.extend(masked_crc(payload).to_le_bytes());
        self.file.write_all(&record).map_err(RunError::writing(&self.path))
    }
}

/// Where a run keeps its event files.
pub fn folder(directory: &directory::RunDirectory) -> PathBuf {
    directory.file("tensorboard")
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(out, field << 3 | 1);
    out.extend(value.to_le_bytes());
}

fn put_float(out: &mut Vec<u8>, field: u64, value: f32) {
    put_varint(out, field << 3 | 5);
    out.extend(value.to_le_bytes());
}

/// The checksum of the format: CRC-32C, rotated and offset, so that checksums of data that contains checksums
/// stay sound.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: event files are small.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    /// Takes the payloads out of an event file, checking both sums of every record.
    fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_at(12);
            let length = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize;
            assert_eq!(u32::from_le_bytes(head[8..].try_into().unwrap()), masked_crc(&head[..8]));
            let (payload, rest) = rest.split_at(length);
            let (sum, rest) = rest.split_at(4);
            assert_eq!(u32::from_le_bytes(sum.try_into().unwrap()), masked_crc(payload));
            found.push(payload);
            bytes = rest;
        }
        found
    }

    /// The fields of a message as (number, raw content).
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (&byte, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let length = match key & 7 {
                0 => {
                    let value = varint(&mut bytes);
                    found.push((key >> 3, value.to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            let (content, rest) = bytes.split_at(length);
            found.push((key >> 3, content.to_vec()));
            bytes = rest;
        }
        found
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn what_is_written_can_be_parsed_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(folder.path()).unwrap();
        let figures = Map::from_iter([
            ("mrr".to_owned(), Value::from(0.25)),
            ("note".to_owned(), Value::from("no number, no scalar")),
        ]);
        events.add(&Metric { stage: "joint".to_owned(), step: 300, seconds: 1.0, figures }).unwrap();
        let bytes = std::fs::read(&events.path).unwrap();
        let [version, event] = records(&bytes)[..] else { panic!("two records") };
        assert_eq!(fields(version)[1], (3, b"brain.Event:2".to_vec()));
        let event = fields(event);
        assert_eq!(event[1], (2, 300u64.to_le_bytes().to_vec()));
        let [(1, value)] = &fields(&event[2].1)[..] else { panic!("one scalar") };
        assert_eq!(fields(value), [(1, b"joint/mrr".to_vec()), (2, 0.25f32.to_le_bytes().to_vec())]);
    }
}
