//! Sampled softmax: a step compares its queries with some entities instead of all.
//!
//! The entities are the answers of the whole batch and `K` uniform draws, shared by all queries of the step. Entity
//! `e` is among them with probability `p(e) = 1 − (1 − 1/N)ᴷ (1 − f(e))ᴮ`, where `f(e)` is the share of examples that
//! `e` answers and `B` the size of the batch. `−log p(e)` is added to its score, for answers too (Bengio and Senécal
//! 2008; Jean et al. 2015): the softmax over the corrected scores is the probability that an entity of the sample is
//! the answer, so scores that are optimal for it are optimal for the softmax over all entities. Without the
//! correction, entities that are often answers would be learnt as too unlikely, because they are often in the sample.
//!
//! The gradient touches only the rows of the sample, and so does the optimiser: the cost of a step does not depend on
//! the number of entities.

use super::examples::Examples;
use crate::tensor::{Device, Indices, Labels, Segments, Tensor, TensorError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Separates these draws from the shuffling of examples, which uses the same seed.
const STREAM: u64 = 0x5a4d_504c_4544_0001;

/// Draws the sample of every step.
pub(super) struct Sampler {
    entities: usize,
    negatives: usize,
    seed: u64,
    /// For each entity: `log(1 − f)`.
    rarely_answers: Vec<f32>,
}

/// The entities that the queries of a step are compared with.
pub(super) struct Sample {
    /// Their rows, ascending.
    pub(super) rows: Indices,
    /// The answers of each query, as indices into `rows`.
    pub(super) labels: Labels,
    /// `−log p` of each entity: `[rows, 1]`.
    pub(super) correction: Tensor,
}

impl Sampler {
    /// Draws `negatives` of `entities` for each step, in addition to the answers of its examples.
    pub(super) fn new(examples: &Examples, entities: usize, negatives: usize, seed: u64) -> Self {
        let all = examples.len().max(1) as f64;
        let rarely = |&count: &u32| (-f64::from(count) / all).ln_1p() as f32;
        let rarely_answers = examples.answer_counts(entities).iter().map(rarely).collect();
        Self { entities, negatives, seed, rarely_answers }
    }

    /// The sample of `step`, whose examples have `answers`, in `segments`.
    pub(super) fn draw(
        &self,
        device: &Device,
        answers: &[u32],
        segments: &Segments,
        step: u64,
    ) -> Result<Sample, TensorError> {
        let rows = self.rows(answers, step);
        let place = |answer: &u32| rows.partition_point(|row| row < answer) as u32;
        let places: Vec<u32> = answers.iter().map(place).collect();
        let correction: Vec<f32> =
            rows.iter().map(|&row| -self.log_probability(row, segments.len())).collect();
        Ok(Sample {
            labels: Labels { rows: Indices::new(device, &places)?, segments: segments.clone() },
            correction: Tensor::vector(device, &correction)?,
            rows: Indices::new(device, &rows)?,
        })
    }

    fn rows(&self, answers: &[u32], step: u64) -> Vec<u32> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ STREAM);
        random.set_stream(step);
        let mut rows = answers.to_vec();
        // The upper half of the product is uniform below `entities`, to within one part in a thousand.
        let below = |word: u32| ((u64::from(word) * self.entities as u64) >> 32) as u32;
        rows.extend((0..self.negatives).map(|_| below(random.next_u32())));
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// `log p` of an entity in a step of `batch` examples.
    fn log_probability(&self, entity: u32, batch: usize) -> f32 {
        let not_drawn = self.negatives as f64 * (-1.0 / self.entities as f64).ln_1p();
        let no_answer = batch as f64 * f64::from(self.rarely_answers[entity as usize]);
        (-(not_drawn + no_answer).exp()).ln_1p() as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::settings::TrainingExample;
    use crate::graph::{Graph, Triple};

    fn examples() -> Examples {
        // Entity 0 is the answer of every other fact.
        let facts: Vec<Triple> =
            (1..40).map(|e| Triple::new(e, 0, if e % 2 == 0 { 0 } else { e - 1 })).collect();
        Examples::new(&Graph::new(40, 1, &facts), TrainingExample::Fact)
    }

    #[test]
    fn a_sample_has_every_answer_and_places_them() {
        let (examples, device) = (examples(), Device::cpu(1).unwrap());
        let sampler = Sampler::new(&examples, 40, 6, 3);
        let answers = [7, 0, 7, 31];
        let segments = Segments::from_lengths(&device, [1, 2, 1]).unwrap();
        let sample = sampler.draw(&device, &answers, &segments, 5).unwrap();
        let rows = sample.rows.to_vec().unwrap();
        assert!(rows.is_sorted() && rows.len() <= 9 && rows.iter().all(|&row| row < 40), "{rows:?}");
        let placed: Vec<u32> =
            sample.labels.rows.to_vec().unwrap().iter().map(|&place| rows[place as usize]).collect();
        assert_eq!(placed, answers);
        let again = sampler.draw(&device, &answers, &segments, 5).unwrap();
        assert_eq!(again.rows.to_vec().unwrap(), rows);
        assert_ne!(sampler.rows(&answers, 6), rows);
    }

    #[test]
    fn the_correction_is_how_often_an_entity_is_among_them() {
        let examples = examples();
        let (sampler, batch) = (Sampler::new(&examples, 40, 6, 3), 4);
        let (mut met, mut steps) = ([0u32; 40], 0u32);
        for epoch in 0..400 {
            for numbers in examples.shuffled(batch, 9, epoch) {
                let answers: Vec<u32> =
                    numbers.iter().flat_map(|&number| examples.answers_of(number)).copied().collect();
                sampler.rows(&answers, u64::from(steps)).iter().for_each(|&row| met[row as usize] += 1);
                steps += 1;
            }
        }
        for entity in [0, 1, 17, 38] {
            let share = f64::from(met[entity as usize]) / f64::from(steps);
            let expected = f64::from(sampler.log_probability(entity, batch).exp());
            assert!((share - expected).abs() < 0.02, "{entity}: {share} instead of {expected}");
        }
    }
}
