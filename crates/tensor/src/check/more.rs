//! What every device guarantees besides correct gradients.

use super::cases::{indices, segments};
use super::{cuda_devices, devices};
use crate::*;

#[test]
fn draws_on_cuda_are_those_on_the_cpu() {
    let draw = |device: &Device| -> Result<Vec<u32>> {
        let count = 3000;
        let segments = segments(device, count)?;
        let total = segments.total();
        let scores = Tensor::vector(device, &Initial::Normal(1.0).values(total, 1, 9, "scores"))?;
        let groups = Tensor::new(device, &Initial::Normal(1.0).values(7, 3, 9, "groups"), 7, 3)?;
        // Elements of one group are adjacent.
        let thirds = segments.starts().windows(2).flat_map(|bounds| {
            let len = bounds[1] - bounds[0];
            (0..len).map(move |at| 3 * at / len)
        });
        let group_of = Indices::new(device, &thirds.collect::<Vec<u32>>())?;
        let (from, rows) = (indices(device, 2 * count, count)?, indices(device, 2 * count, 7)?);
        let choosing = Choosing {
            groups: Some(&groups),
            scores: Some(&scores),
            group_of: &group_of,
            segments: &segments,
            drop_groups: 0.3,
            drop: 0.2,
            key: Key::new(4, 4),
        };
        choose(choosing, &from, &rows)?.to_vec()
    };
    let drawn = draw(&Device::cpu(1).unwrap()).unwrap();
    for (cuda, _) in cuda_devices() {
        let others = draw(&cuda).unwrap();
        let same = drawn.iter().zip(&others).filter(|(left, right)| left == right).count();
        assert!(same * 1000 >= drawn.len() * 999, "{same} of {} draws are the same", drawn.len());
    }
}

#[test]
fn an_index_outside_its_table_is_an_error_on_every_device_and_in_every_build() {
    for device in devices() {
        let mut parameters = Parameters::new(&device, 1);
        let table = parameters.table("table", 5, 3, Initial::Ones).unwrap();
        let mut tape = Tape::inference(&parameters);
        let table = tape.parameter(table);
        let outside = |list: &Indices, tape: &mut Tape| {
            let error = tape.gather(table, list, 0.0).unwrap_err();
            assert!(matches!(error, TensorError::Index { rows: 5, .. }), "{device}: {error}");
            error.to_string()
        };
        let message = outside(&Indices::new(&device, &[0, 4, 5, 1]).unwrap(), &mut tape);
        assert_eq!(message, "gather: index 5 at position 2 is outside a table of 5 rows");
        let mut draft = Draft::new(&device, 70_000);
        draft.values_mut().fill(4);
        tape.gather(table, &Indices::of_draft(&draft).unwrap(), 0.0).unwrap();
        let mut draft = Draft::new(&device, 70_000);
        draft.values_mut().fill(0);
        draft.values_mut()[69_999] = 7;
        outside(&Indices::of_draft(&draft).unwrap(), &mut tape);
        // Lists made by the device: the owners of seven segments, and a draw from an empty segment.
        let segments = Segments::from_lengths(&device, [1, 0, 1, 1, 1, 1, 1]).unwrap();
        let owners = segments.owners().unwrap();
        outside(&owners, &mut tape);
        let choosing = Choosing {
            groups: None,
            scores: None,
            group_of: &Indices::new(&device, &[0; 6]).unwrap(),
            segments: &segments,
            drop_groups: 0.0,
            drop: 0.0,
            key: Key::new(1, 1),
        };
        let from = |segment: u32| Indices::new(&device, &[segment]).unwrap();
        let drawn = |segment| choose(choosing, &from(segment), &from(segment)).unwrap();
        outside(&drawn(1), &mut tape);
        let row = tape.gather(table, &drawn(2), 0.0).unwrap();
        assert_eq!(tape.value(row).to_vec().unwrap(), [1.0; 3]);
        let labels = Labels {
            rows: Indices::new(&device, &[9]).unwrap(),
            segments: Segments::from_lengths(&device, [1]).unwrap(),
        };
        let loss = tape.softmax_loss_against_all(row, table, None, &labels, 0.0);
        assert!(matches!(loss, Err(TensorError::Index { index: 9, .. })), "{device}");
    }
}

#[test]
fn a_device_may_be_dropped_on_another_thread_and_opened_again() {
    for round in 0..3u32 {
        for device in devices() {
            let list = Indices::new(&device, &[round; 1000]).unwrap();
            assert_eq!(list.to_vec().unwrap(), [round; 1000]);
            std::thread::spawn(move || drop((list, device))).join().unwrap();
        }
    }
}

#[test]
fn segments_longer_than_32_bits_are_an_error() {
    let device = Device::cpu(1).unwrap();
    let error = Segments::from_lengths(&device, [1, u32::MAX as usize]).unwrap_err();
    assert!(matches!(error, TensorError::TooLarge { operation: "segments", .. }), "{error}");
}
