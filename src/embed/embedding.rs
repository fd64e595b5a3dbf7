//! A model with its weights: scores, ranked answers, and the soft reward.

use super::NetworkError;
use super::examples::Batch;
use super::model::{self, Model, Size, Space, scores_of, scores_of_all, scores_of_some};
use super::settings::{Loss, Settings};
use crate::eval::{Answers, Reasoner, ReasonerError};
use crate::graph::{EntityId, Query};
use crate::tensor::{Device, Indices, Parameters, Segments, Tape, Tensor, TensorError, Var};

/// About how many scores are computed at once when answering: 64 MiB.
pub(super) const SCORES_AT_ONCE: usize = 1 << 24;

/// The map from scores to log-odds: `scale · x + shift`. Scores trained with the binary loss are log-odds already,
/// and `x` is the score. Scores trained with a softmax are meaningful only relative to the other entities of the same
/// query, so `x` is the log-softmax, and the map is fitted to the facts after training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calibration {
    pub(super) scale: f32,
    pub(super) shift: f32,
}

impl Default for Calibration {
    fn default() -> Self {
        Calibration { scale: 1.0, shift: 0.0 }
    }
}

/// A trained or freshly initialised embedding model on a device.
pub struct Embedding {
    pub(super) settings: Settings,
    pub(super) size: Size,
    pub(super) parameters: Parameters,
    pub(super) model: Box<dyn Model>,
    pub(super) calibration: Calibration,
}

impl Embedding {
    /// A model with initial weights drawn from `seed`.
    ///
    /// # Errors
    /// If the device has no memory for it.
    pub fn new(settings: &Settings, size: Size, device: &Device, seed: u64) -> Result<Self, NetworkError> {
        let mut parameters = Parameters::new(device, seed);
        let model = model::build(settings, size, &mut parameters)?;
        Ok(Embedding {
            settings: settings.clone(),
            size,
            parameters,
            model,
            calibration: Calibration::default(),
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many entities and relations it knows.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The device it lives on.
    pub fn device(&self) -> &Device {
        self.parameters.device()
    }

    /// The vectors of all entities, one per row; complex numbers have their real parts first.
    pub fn entity_vectors(&self) -> Tensor {
        self.parameters.value(self.model.tables().entities)
    }

    /// The vector of each query, `[queries, width]`: its product with an entity's vector is the score of the entity, up to
    /// terms that depend on the query or the entity alone.
    ///
    /// # Errors
    /// If the device fails, or a query has an entity or link that the model does not know.
    pub fn query_vectors(&self, queries: &[Query]) -> Result<Tensor, NetworkError> {
        let mut tape = Tape::inference(&self.parameters);
        let query = self.query_on(&mut tape, queries)?;
        let factor = match self.model.tables().space {
            Space::Product => 1.0,
            Space::Distance => 2.0,
        };
        let query = tape.scale(query, factor)?;
        Ok(tape.value(query))
    }

    /// The vectors of all links, one per row, including the reserved ones.
    pub fn link_vectors(&self) -> Tensor {
        self.parameters.value(self.model.tables().relations)
    }

    /// The biases of all entities, `[entities, 1]`, if the model has them.
    pub fn entity_biases(&self) -> Option<Tensor> {
        self.model.tables().bias.map(|bias| self.parameters.value(bias))
    }

    /// The log-odds of a fact are the first times its score plus the second. After a softmax, the score is that minus
    /// [`logsumexp`](Self::logsumexp).
    pub fn log_odds(&self) -> [f32; 2] {
        [self.calibration.scale, self.calibration.shift]
    }

    /// The scores of all entities for each query, `[queries, entities]`; stays on the device.
    ///
    /// # Errors
    /// If the device fails, or a query has an entity or link that the model does not know.
    pub fn scores(&self, queries: &[Query]) -> Result<Tensor, NetworkError> {
        let mut tape = Tape::inference(&self.parameters);
        let scores = self.scores_on(&mut tape, queries)?;
        Ok(tape.value(scores))
    }

    /// The scores of some entities for each query, `[queries, entities]`; stays on the device. They may differ from
    /// those of [`scores`](Self::scores) in their last digits.
    ///
    /// # Errors
    /// If the device fails, or there is an entity or link that the model does not know.
    pub fn scores_among(&self, queries: &[Query], entities: &[EntityId]) -> Result<Tensor, NetworkError> {
        let rows: Vec<u32> = entities.iter().map(|entity| entity.0).collect();
        let rows = Indices::new(self.device(), &rows)?;
        let mut tape = Tape::inference(&self.parameters);
        let query = self.query_on(&mut tape, queries)?;
        let scores = scores_of_some(self.model.as_ref(), &mut tape, query, &rows)?;
        Ok(tape.value(scores))
    }

    /// The scores of all entities for each query, on the tape: `[queries, entities]`.
    fn scores_on(&self, tape: &mut Tape, queries: &[Query]) -> Result<Var, TensorError> {
        let query = self.query_on(tape, queries)?;
        scores_of_all(self.model.as_ref(), tape, query)
    }

    /// The vector of each query: `[queries, width]`.
    fn query_on(&self, tape: &mut Tape, queries: &[Query]) -> Result<Var, TensorError> {
        let subjects: Vec<u32> = queries.iter().map(|query| query.subject.0).collect();
        let links: Vec<u32> = queries.iter().map(|query| query.link.0).collect();
        let (subjects, links) =
            (Indices::new(self.device(), &subjects)?, Indices::new(self.device(), &links)?);
        self.model.query(tape, &subjects, &links)
    }

    /// The score of each triple `(subjects[i], links[i], objects[i])`; stays on the device.
    ///
    /// # Errors
    /// If the device fails, or the lists differ in length.
    pub fn triple_scores(
        &self,
        subjects: &Indices,
        links: &Indices,
        objects: &Indices,
    ) -> Result<Tensor, TensorError> {
        let mut tape = Tape::inference(&self.parameters);
        let query = self.model.query(&mut tape, subjects, links)?;
        let scores = scores_of(self.model.as_ref(), &mut tape, query, objects)?; // [triples, 1]
        Ok(tape.value(scores))
    }

    /// `log Σ exp(score)` over all entities for each query if the model was trained with a softmax, otherwise 0:
    /// [`plausibility`](Self::plausibility) subtracts it from the scores. Training repeats the same queries, so
    /// callers may cache it.
    ///
    /// # Errors
    /// If the device fails.
    pub fn logsumexp(&self, queries: &[Query]) -> Result<Vec<f32>, NetworkError> {
        if self.settings.loss == Loss::Binary {
            return Ok(vec![0.0; queries.len()]);
        }
        let mut all = Vec::with_capacity(queries.len());
        for part in queries.chunks(self.batch()) {
            let mut tape = Tape::inference(&self.parameters);
            let scores = self.scores_on(&mut tape, part)?;
            let rows = Segments::from_lengths(self.device(), part.iter().map(|_| self.size.entities))?;
            let logsumexp = tape.segment_log_sum_exp(scores, &rows, None)?; // [queries, 1]
            all.extend(tape.value(logsumexp).to_vec()?);
        }
        Ok(all)
    }

    /// `f(s, q, e)` in [0, 1] for each `(subjects[i], links[i], objects[i])`: how plausible the triple is, which is
    /// the soft reward of a walk that ends in `e`. `logsumexp[i]` belongs to the query of triple `i`. Everything
    /// stays on the device.
    ///
    /// # Errors
    /// If the device fails, or the lists differ in length.
    pub fn plausibility(
        &self,
        subjects: &Indices,
        links: &Indices,
        objects: &Indices,
        logsumexp: &[f32],
    ) -> Result<Tensor, TensorError> {
        let mut tape = Tape::inference(&self.parameters);
        let query = self.model.query(&mut tape, subjects, links)?;
        let mut scores = scores_of(self.model.as_ref(), &mut tape, query, objects)?; // [triples, 1]
        if self.settings.loss == Loss::Softmax {
            let Calibration { scale, shift } = self.calibration;
            scores = tape.scale(scores, scale)?;
            let shifts: Vec<f32> = logsumexp.iter().map(|sum| shift - scale * sum).collect();
            let shifts = tape.constant(Tensor::vector(self.device(), &shifts)?)?;
            scores = tape.add(scores, shifts)?;
        }
        let odds = tape.sigmoid(scores)?;
        Ok(tape.value(odds))
    }

    /// Fits the calibration to `batch`, whose queries have all their known answers as labels.
    pub(super) fn calibrate(&mut self, batch: &Batch) -> Result<(), NetworkError> {
        self.calibration = Calibration::default();
        if self.settings.loss == Loss::Binary {
            return Ok(());
        }
        let mut tape = Tape::inference(&self.parameters);
        let query = self.model.query(&mut tape, &batch.subjects, &batch.links)?;
        let scores = scores_of_all(self.model.as_ref(), &mut tape, query)?;
        let logarithms = tape.log_softmax(scores, 0)?;
        let scores = tape.value(logarithms).to_vec()?;
        let (answers, starts) = (batch.labels.rows.to_vec()?, batch.labels.segments.starts());
        let mut labels = vec![false; scores.len()];
        for (row, bounds) in starts.windows(2).enumerate() {
            for &answer in &answers[bounds[0] as usize..bounds[1] as usize] {
                labels[row * self.size.entities + answer as usize] = true;
            }
        }
        self.calibration = fit(&scores, &labels);
        Ok(())
    }
}

impl Reasoner for Embedding {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        Ok(Answers::Dense { scores: self.scores(queries)?.to_vec()?, entities: self.size.entities })
    }

    fn batch(&self) -> usize {
        (SCORES_AT_ONCE / self.size.entities.max(1)).clamp(1, 512)
    }
}

/// Logistic regression of the labels on one variable, the score, by Newton's method.
fn fit(scores: &[f32], labels: &[bool]) -> Calibration {
    // Standardised scores decorrelate the two parameters.
    let count = scores.len().max(1) as f64;
    let mean = scores.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let variance = scores.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
    let deviation = variance.sqrt().max(1e-6);
    let positives = labels.iter().filter(|&&label| label).count() as f64;
    let (mut slope, mut intercept) = (1.0f64, ((positives + 1.0) / (count - positives + 1.0)).ln());
    for _ in 0..25 {
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 1e-9, 0.0, 1e-9);
        for (&score, &label) in scores.iter().zip(labels) {
            let x = (f64::from(score) - mean) / deviation;
            let p = 1.0 / (1.0 + (-(slope * x + intercept)).exp());
            let (error, weight) = (p - f64::from(u8::from(label)), p * (1.0 - p));
            g0 += error;
            g1 += error * x;
            h00 += weight;
            h01 += weight * x;
            h11 += weight * x * x;
        }
        let determinant = h00 * h11 - h01 * h01;
        let (step_intercept, step_slope) =
            ((g0 * h11 - g1 * h01) / determinant, (g1 * h00 - g0 * h01) / determinant);
        if !(step_intercept.is_finite() && step_slope.is_finite()) {
            break;
        }
        // A step of more than 2 in either parameter overshoots if the odds are extreme.
        intercept -= step_intercept.clamp(-2.0, 2.0);
        slope -= step_slope.clamp(-2.0, 2.0);
        if step_intercept.abs() + step_slope.abs() < 1e-6 {
            break;
        }
    }
    // A negative slope would invert the model's scores; then only the intercept is used.
    let slope = slope.max(0.0);
    Calibration { scale: (slope / deviation) as f32, shift: (intercept - slope * mean / deviation) as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn calibration_finds_the_odds_that_made_the_labels() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut uniform = || (random.next_u32() >> 8) as f32 / (1 << 24) as f32;
        let scores: Vec<f32> = (0..20_000).map(|_| uniform() * 20.0 + 5.0).collect();
        let labels: Vec<bool> =
            scores.iter().map(|x| uniform() < 1.0 / (1.0 + (-(0.8 * x - 14.0)).exp())).collect();
        let Calibration { scale, shift } = fit(&scores, &labels);
        assert!((scale - 0.8).abs() < 0.05 && (shift + 14.0).abs() < 0.8, "{scale} {shift}");
    }

    #[test]
    fn calibration_survives_scores_that_separate_the_labels() {
        let scores: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let labels: Vec<bool> = (0..1000).map(|i| i >= 990).collect();
        let Calibration { scale, shift } = fit(&scores, &labels);
        assert!(scale > 0.0 && scale.is_finite() && shift.is_finite());
        assert!(scale * 999.0 + shift > 0.0 && scale * 500.0 + shift < -3.0);
    }
}
