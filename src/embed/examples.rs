//! Training examples: the queries of the facts in both directions, each with its answers as a ragged list.

use super::sample::{Sample, Sampler};
use super::settings::TrainingExample;
use crate::graph::{EntityId, Graph, Link, Notes, Query};
use crate::tensor::{Device, Indices, Labels, Segments, TensorError};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// All training examples of a graph. Example `i` has the answers `starts[i]..starts[i + 1]`.
pub(super) struct Examples {
    subjects: Vec<u32>,
    links: Vec<u32>,
    starts: Vec<u32>,
    answers: Vec<u32>,
    /// The share of the epochs that each example takes part in; empty if all take part in all.
    shares: Vec<f32>,
}

/// A batch of examples, on the device.
pub(super) struct Batch {
    /// The subject of each query.
    pub(super) subjects: Indices,
    /// The link of each query.
    pub(super) links: Indices,
    /// The answers of each query.
    pub(super) labels: Labels,
    /// The entities they are compared with, if not all.
    pub(super) sample: Option<Sample>,
}

impl Examples {
    /// The examples of all facts of `graph`, in both directions.
    pub(super) fn new(graph: &Graph, kind: TrainingExample) -> Self {
        let mut all = Examples {
            subjects: Vec::new(),
            links: Vec::new(),
            starts: vec![0],
            answers: Vec::new(),
            shares: Vec::new(),
        };
        for subject in (0..graph.entities() as u32).map(EntityId) {
            for run in
                graph.edges(subject).chunk_by(|a, b| kind == TrainingExample::Query && a.link == b.link)
            {
                all.subjects.push(subject.0);
                all.links.push(run[0].link.0);
                all.answers.extend(run.iter().map(|edge| edge.target.0));
                all.starts.push(u32::try_from(all.answers.len()).expect("fewer than 2^32 answers"));
            }
        }
        all
    }

    /// The same where facts count by their confidence: an example takes part in as many epochs as its facts are certain in
    /// the mean, which weighs its loss without another loss.
    pub(super) fn by_confidence(mut self, notes: &Notes) -> Self {
        if !notes.has_confidence() {
            return self;
        }
        let share = |number: u32| {
            let [subject, link] = [&self.subjects, &self.links].map(|ids| ids[number as usize]);
            let query = Query { subject: EntityId(subject), link: Link(link) };
            let answers = self.answers_of(number);
            let certain = answers.iter().filter_map(|&answer| query.fact(EntityId(answer)));
            certain.map(|fact| notes.confidence(fact)).sum::<f32>() / answers.len().max(1) as f32
        };
        self.shares = (0..self.len() as u32).map(share).collect();
        self
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.subjects.len()
    }

    /// The examples of one epoch in random order, cut into steps of about `batch` examples. No step is much smaller
    /// than the others, because batch normalisation needs enough rows.
    pub(super) fn shuffled(&self, batch: usize, seed: u64, epoch: u64) -> Vec<Vec<u32>> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(epoch);
        order.shuffle(&mut random);
        let steps = self.len().div_ceil(batch);
        if !self.shares.is_empty() {
            let drawn = |number: &u32| random.random::<f32>() < self.shares[*number as usize];
            let kept: Vec<u32> = order.iter().copied().filter(drawn).collect();
            // An epoch has as many steps whatever is drawn, and none of them is empty.
            order = if kept.len() < steps { order } else { kept };
        }
        let all = order.len();
        (0..steps).map(|step| order[step * all / steps..(step + 1) * all / steps].to_vec()).collect()
    }

    /// How many steps an epoch has.
    pub(super) fn steps(&self, batch: usize) -> usize {
        self.len().div_ceil(batch)
    }

    /// The examples with these indices, moved to the device.
    pub(super) fn batch(&self, device: &Device, numbers: &[u32]) -> Result<Batch, TensorError> {
        let pick = |from: &[u32]| numbers.iter().map(|&number| from[number as usize]).collect::<Vec<u32>>();
        let rows: Vec<u32> = numbers.iter().flat_map(|&number| self.answers_of(number)).copied().collect();
        let lengths = numbers.iter().map(|&number| self.answers_of(number).len());
        Ok(Batch {
            subjects: Indices::new(device, &pick(&self.subjects))?,
            links: Indices::new(device, &pick(&self.links))?,
            labels: Labels {
                rows: Indices::new(device, &rows)?,
                segments: Segments::from_lengths(device, lengths)?,
            },
            sample: None,
        })
    }

    /// The same, to be compared with a sample of the entities that `sampler` draws for `step`.
    pub(super) fn sampled_batch(
        &self,
        device: &Device,
        numbers: &[u32],
        sampler: Option<&Sampler>,
        step: u64,
    ) -> Result<Batch, TensorError> {
        let mut batch = self.batch(device, numbers)?;
        if let Some(sampler) = sampler {
            let rows: Vec<u32> =
                numbers.iter().flat_map(|&number| self.answers_of(number)).copied().collect();
            batch.sample = Some(sampler.draw(device, &rows, &batch.labels.segments, step)?);
        }
        Ok(batch)
    }

    /// For each of this many entities, how many examples it answers.
    pub(super) fn answer_counts(&self, entities: usize) -> Vec<u32> {
        let mut counts = vec![0; entities];
        self.answers.iter().for_each(|&answer| counts[answer as usize] += 1);
        counts
    }

    pub(super) fn answers_of(&self, number: u32) -> &[u32] {
        let [from, to] = [number, number + 1].map(|at| self.starts[at as usize] as usize);
        &self.answers[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Note, NotesBuilder, Triple};
    use std::collections::BTreeSet;

    fn graph() -> Graph {
        let facts = [(0, 0, 1), (0, 0, 2), (1, 1, 2), (3, 0, 1)].map(|(h, r, t)| Triple::new(h, r, t));
        Graph::new(4, 2, &facts)
    }

    #[test]
    fn every_edge_is_an_answer_of_exactly_one_example() {
        let graph = graph();
        for (kind, count) in [(TrainingExample::Query, 6), (TrainingExample::Fact, 8)] {
            let examples = Examples::new(&graph, kind);
            assert_eq!(examples.len(), count);
            let mut seen = BTreeSet::new();
            for i in 0..examples.len() {
                for &answer in &examples.answers[examples.starts[i] as usize..examples.starts[i + 1] as usize]
                {
                    let edge = (EntityId(examples.subjects[i]), Link(examples.links[i]), EntityId(answer));
                    assert!(graph.contains(edge.0, edge.1, edge.2) && seen.insert(edge));
                }
            }
            assert_eq!(seen.len(), graph.adjacency().edge_count());
        }
    }

    #[test]
    fn an_uncertain_fact_takes_part_in_fewer_epochs() {
        let mut notes = NotesBuilder::default();
        notes.add(Triple::new(0, 0, 1), Note { confidence: Some(0.25), ..Note::default() });
        let notes = notes.finish();
        let examples = Examples::new(&graph(), TrainingExample::Fact).by_confidence(&notes);
        let mut taken = vec![0; examples.len()];
        for epoch in 0..2000 {
            let steps = examples.shuffled(3, 1, epoch);
            assert_eq!(steps.len(), examples.steps(3));
            assert!(steps.iter().all(|step| !step.is_empty()));
            steps.concat().into_iter().for_each(|number| taken[number as usize] += 1);
        }
        for (number, taken) in taken.into_iter().enumerate() {
            let about = (examples.subjects[number], examples.answers[number]);
            match about == (0, 1) || about == (1, 0) {
                true => assert!((400..600).contains(&taken), "{taken}"),
                false => assert_eq!(taken, 2000),
            }
        }
        // Without confidences nothing is drawn.
        let plain = Examples::new(&graph(), TrainingExample::Fact);
        let same = Examples::new(&graph(), TrainingExample::Fact).by_confidence(&Notes::default());
        assert_eq!(plain.shuffled(3, 1, 7), same.shuffled(3, 1, 7));
    }

    #[test]
    fn an_epoch_takes_every_example_once_in_even_steps() {
        let examples = Examples::new(&graph(), TrainingExample::Query);
        let steps = examples.shuffled(5, 1, 5);
        assert_eq!((steps.len(), examples.steps(5)), (2, 2));
        assert!(steps.iter().all(|step| step.len() == 3));
        let mut all: Vec<u32> = steps.concat();
        all.sort_unstable();
        assert_eq!(all, (0..6).collect::<Vec<u32>>());
        assert_eq!(steps, examples.shuffled(5, 1, 5));
        assert_ne!(steps, examples.shuffled(5, 1, 6));
    }

    #[test]
    fn a_batch_keeps_answers_with_their_queries() {
        let device = Device::cpu(1).unwrap();
        let examples = Examples::new(&graph(), TrainingExample::Query);
        let batch = examples.batch(&device, &[4, 0]).unwrap();
        let (subjects, links) = (batch.subjects.to_vec().unwrap(), batch.links.to_vec().unwrap());
        let (rows, starts) = (batch.labels.rows.to_vec().unwrap(), batch.labels.segments.starts());
        for i in 0..2 {
            let answers = &rows[starts[i] as usize..starts[i + 1] as usize];
            let true_ones = graph().targets(EntityId(subjects[i]), Link(links[i])).to_vec();
            assert_eq!(answers, true_ones.iter().map(|e| e.0).collect::<Vec<u32>>());
        }
    }
}
