//! The learning rate schedule of a training.

use super::Place;

/// How the learning rate decays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decay {
    /// The learning rate is constant.
    Constant,
    /// Linearly, to this fraction of its initial value.
    Linear(f32),
    /// Along half a cosine, to this fraction of its initial value.
    Cosine(f64),
    /// Multiplied by this after every epoch.
    Exponential(f64),
}

/// A stretch of a training, from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// This many epochs.
    Epochs(usize),
    /// This many steps.
    Steps(usize),
}

/// The learning rate of every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningRate {
    /// The initial value (after warm-up).
    pub initial: f64,
    /// How it decays.
    pub decay: Decay,
    /// The period over which it falls to its final value; ignored by [`Decay::Exponential`].
    pub within: Within,
    /// The warm-up steps, in which it rises from 0.
    pub warm_up: u64,
}

impl LearningRate {
    /// A constant learning rate.
    pub fn constant(initial: f64) -> Self {
        Self { initial, decay: Decay::Constant, within: Within::Steps(0), warm_up: 0 }
    }

    /// The learning rate of the step at `place`, in epochs of `epoch_steps`.
    pub fn learning_rate_at(&self, place: Place, epoch_steps: usize) -> f32 {
        let Place { epoch, batch, step } = place;
        let fallen = match self.decay {
            Decay::Constant => self.initial,
            Decay::Linear(last) => {
                // In single precision, as the published walkers were trained, so that results are bit-identical.
                let done = epoch as f32 + batch as f32 / epoch_steps.max(1) as f32;
                let part = match self.within {
                    Within::Epochs(epochs) => done / epochs.max(1) as f32,
                    Within::Steps(steps) => step as f32 / steps.max(1) as f32,
                };
                f64::from(self.initial as f32 * (1.0 - (1.0 - last) * part.clamp(0.0, 1.0)))
            }
            Decay::Cosine(last) => {
                let steps = match self.within {
                    Within::Epochs(epochs) => epochs * epoch_steps,
                    Within::Steps(steps) => steps,
                };
                let part = step as f64 / steps as f64;
                let wave = 0.5 + 0.5 * (std::f64::consts::PI * part.min(1.0)).cos();
                self.initial * (last + (1.0 - last) * wave)
            }
            Decay::Exponential(decay) => self.initial * decay.powi(i32::try_from(epoch).unwrap_or(i32::MAX)),
        };
        if step < self.warm_up {
            return (fallen * (step + 1) as f64 / self.warm_up as f64) as f32;
        }
        fallen as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: LearningRate, step: u64) -> f32 {
        rate.learning_rate_at(Place { epoch: step as usize / 10, batch: step as usize % 10, step }, 10)
    }

    #[test]
    fn it_falls_as_it_is_told() {
        let rate = |decay, within| LearningRate { initial: 0.01, decay, within, warm_up: 0 };
        for (decay, expected) in [
            (Decay::Constant, [0.01, 0.01, 0.01, 0.01]),
            (Decay::Linear(0.2), [0.01, 0.006, 0.002, 0.002]),
            (Decay::Cosine(0.01), [0.01, 0.00505, 0.0001, 0.0001]),
            (Decay::Exponential(0.5), [0.01, 0.0025, 0.000_625, 0.01 * 0.5f32.powi(9)]),
        ] {
            for (step, expected) in [0, 20, 40, 90].into_iter().zip(expected) {
                for within in [Within::Epochs(4), Within::Steps(40)] {
                    let found = at(rate(decay, within), step);
                    assert!((found - expected).abs() < 1e-8, "{decay:?} {within:?} at {step}: {found}");
                }
            }
        }
    }

    #[test]
    fn it_rises_first_where_there_is_a_warm_up() {
        let rate = LearningRate { warm_up: 4, ..LearningRate::constant(0.1) };
        let rates: Vec<f32> = (0..6).map(|step| at(rate, step)).collect();
        assert_eq!(rates, [0.025, 0.05, 0.075, 0.1, 0.1, 0.1]);
    }
}
