//! The check that every operation passes: gradients against central differences, one thread against two.
//!
//! A [`Case`] is an operation with inputs of some size. Small cases are differentiated numerically; large ones
//! are run on different devices and compared.
#![cfg(test)]

mod cases;
mod more;
mod propagation;

use super::*;

type Build = fn(&mut Tape, &[Var], usize) -> Result<Var>;

/// An operation to be checked: the shapes of its inputs at a scale, and how to apply it to them.
pub(super) struct Case {
    pub(super) name: &'static str,
    inputs: fn(usize) -> Vec<(usize, usize)>,
    build: Build,
}

/// The result of a case: the output and the gradient of each input.
pub(super) struct Outcome {
    pub(super) output: Vec<f32>,
    pub(super) gradients: Vec<Vec<f32>>,
}

impl Case {
    fn parameters(&self, device: &Device, scale: usize) -> Result<Parameters> {
        let mut parameters = Parameters::new(device, 11);
        for (index, (rows, columns)) in (self.inputs)(scale).into_iter().enumerate() {
            parameters.table(&format!("input {index}"), rows, columns, Initial::Uniform(0.8))?;
        }
        for (name, value) in [("mean", Initial::Zeros), ("variance", Initial::Ones)] {
            parameters.statistic(name, 4, 1, value)?;
        }
        Ok(parameters)
    }

    /// The loss: the output weighted by fixed numbers between -1 and 1.
    fn loss(&self, tape: &mut Tape, parameters: &Parameters, scale: usize) -> Result<(Var, Var)> {
        let vars: Vec<Var> = parameters.ids().map(|id| tape.parameter(id)).collect();
        let output = (self.build)(tape, &vars, scale)?;
        let [rows, columns] = tape.shape(output);
        let weights = Initial::Uniform(1.0).values(rows, columns, 5, "weights");
        let weights = Tensor::new(parameters.device(), &weights, rows, columns)?;
        Ok((output, tape.weighted_sum(output, &weights)?))
    }

    pub(super) fn run(&self, device: &Device, scale: usize) -> Result<Outcome> {
        let parameters = self.parameters(device, scale)?;
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 3);
        let (output, loss) = self.loss(&mut tape, &parameters, scale)?;
        let output = tape.value(output).to_vec()?;
        tape.backward(loss, &mut gradients)?;
        let gradients = parameters.ids().map(|id| gradients.of(id)).collect::<Result<_>>()?;
        Ok(Outcome { output, gradients })
    }

    /// The loss in double precision, with element `index` of a parameter moved.
    fn moved(&self, parameters: &mut Parameters, id: ParameterId, index: usize, offset: f32) -> Result<f64> {
        let values = parameters.value(id).to_vec()?;
        let mut other = values.clone();
        other[index] += offset;
        parameters.set(id, &other)?;
        let mut tape = Tape::training(parameters, 3);
        let (output, _) = self.loss(&mut tape, parameters, 1)?;
        let [rows, columns] = tape.shape(output);
        let weights = Initial::Uniform(1.0).values(rows, columns, 5, "weights");
        let output = tape.value(output).to_vec()?;
        drop(tape);
        parameters.set(id, &values)?;
        Ok(output.iter().zip(&weights).map(|(x, weight)| f64::from(*x) * f64::from(*weight)).sum())
    }

    /// Compares the gradient with fourth-order differences of the loss; no case has a kink within their steps.
    fn check_gradient(&self) -> Result<()> {
        const STEP: f32 = 1e-2;
        let device = Device::cpu(1)?;
        let outcome = self.run(&device, 1)?;
        let mut parameters = self.parameters(&device, 1)?;
        let steep = |gradient: &Vec<f32>| gradient.iter().any(|derivative| derivative.abs() > 1e-3);
        assert!(outcome.gradients.iter().any(steep), "{}: the gradient is too small to check", self.name);
        for id in parameters.ids() {
            if parameters.kind(id) == Kind::Statistic {
                continue;
            }
            let count = parameters.value(id).to_vec()?.len();
            for index in (0..count).step_by(1 + count / 60) {
                let mut across = |steps: f32| -> Result<f64> {
                    let above = self.moved(&mut parameters, id, index, steps * STEP)?;
                    Ok(above - self.moved(&mut parameters, id, index, -steps * STEP)?)
                };
                let derivative = (8.0 * across(1.0)? - across(2.0)?) / (12.0 * f64::from(STEP));
                let ours = f64::from(outcome.gradients[id.0 as usize][index]);
                assert!(
                    (derivative - ours).abs() <= 2e-3 + 1e-2 * derivative.abs().max(ours.abs()),
                    "{}: input {} element {index}: {ours} but differences say {derivative}",
                    self.name,
                    id.0
                );
            }
        }
        Ok(())
    }
}

/// `x` with its elements shifted up and down by `far` like the squares of a chessboard, so that a ReLU stays clear of its
/// kink and no two neighbouring rows pass the same columns.
fn apart(tape: &mut Tape, x: Var, far: f32) -> Result<Var> {
    let [rows, columns] = tape.shape(x);
    let offset = |at: usize| if (at / columns + at % columns).is_multiple_of(2) { far } else { -far };
    let offsets: Vec<f32> = (0..rows * columns).map(offset).collect();
    let offsets = tape.constant(Tensor::new(tape.device(), &offsets, rows, columns)?)?;
    tape.add(x, offsets)
}

/// All cases.
fn all() -> impl Iterator<Item = &'static Case> {
    cases::CASES.iter().chain(propagation::PROPAGATION)
}

/// The largest difference, relative to the largest value.
fn difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let finite = |value: f32| if value == f32::NEG_INFINITY { -1e3 } else { value };
    let apart = left.iter().zip(right).map(|(&x, &y)| (finite(x) - finite(y)).abs()).fold(0.0, f32::max);
    assert!(left.iter().zip(right).all(|(x, y)| !(x.is_nan() || y.is_nan())), "a value is not a number");
    apart / left.iter().map(|&x| finite(x).abs()).fold(1e-6, f32::max)
}

/// The CUDA devices to check, exact and TF32, each with its tolerance; none if there is no device.
pub(super) fn cuda_devices() -> Vec<(Device, f32)> {
    match (Device::cuda_exact(0), Device::cuda(0)) {
        (Ok(exact), Ok(fast)) => vec![(exact, 1e-4), (fast, 2e-3)],
        (Err(error), _) | (_, Err(error)) => {
            assert!(matches!(error, TensorError::NoCuda { .. }), "{error}");
            skip::skip(skip::Need::Cuda, error);
            Vec::new()
        }
    }
}

/// Every available device: the CPU, and CUDA if it can be used.
pub(super) fn devices() -> Vec<Device> {
    let cuda = cuda_devices().into_iter().map(|(device, _)| device);
    [Device::cpu(1).unwrap()].into_iter().chain(cuda).collect()
}

#[test]
fn gradients_agree_with_differences() {
    // Messages have kinks (maximum, minimum, a deviation at its minimum) within a step of the differences: they are
    // checked next to their operation, in double precision and with a smaller step. Sums that a ReLU cuts off near
    // zero have kinks too; other cases keep them away from zero, on both sides.
    let bends = |case: &&Case| case.name.starts_with("propagate,") || case.name.ends_with("bends");
    for case in all().filter(|case| !bends(case)) {
        case.check_gradient().unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

fn expect_same_bits(case: &Case, left: &Outcome, right: &Outcome) {
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&left.output), bits(&right.output), "{}", case.name);
    for (input, (left, right)) in left.gradients.iter().zip(&right.gradients).enumerate() {
        assert_eq!(bits(left), bits(right), "{}: gradient of input {input}", case.name);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    let (one, two) = (Device::cpu(1).unwrap(), Device::cpu(2).unwrap());
    for case in all() {
        expect_same_bits(case, &case.run(&one, 400).unwrap(), &case.run(&two, 400).unwrap());
    }
}

#[test]
fn a_hundred_thousand_rows_give_the_same_bits_too() {
    let (one, two) = (Device::cpu(1).unwrap(), Device::cpu(2).unwrap());
    for case in all().filter(|case| !case.name.contains("all") && case.name != "convolve") {
        let rows = (case.inputs)(1)[0].0;
        let scale = 100_000usize.div_ceil(rows);
        expect_same_bits(case, &case.run(&one, scale).unwrap(), &case.run(&two, scale).unwrap());
    }
}

#[test]
fn cuda_agrees_with_the_cpu() {
    let cpu = Device::cpu(1).unwrap();
    for (cuda, tolerance) in cuda_devices() {
        let mut failures = Vec::new();
        // Rounding to TF32 takes some sums to the other side of a kink, where the derivative is different.
        let exact = tolerance < 1e-3;
        for case in all().filter(|case| exact || !case.name.ends_with("bends")) {
            for scale in [1, 40, 700] {
                let (left, right) = (case.run(&cpu, scale).unwrap(), case.run(&cuda, scale).unwrap());
                let again = case.run(&cuda, scale).unwrap();
                expect_same_bits(case, &right, &again);
                let worst = left
                    .gradients
                    .iter()
                    .zip(&right.gradients)
                    .map(|(left, right)| difference(left, right))
                    .fold(difference(&left.output, &right.output), f32::max);
                eprintln!("{cuda}, {}, scale {scale}: {worst:.1e}", case.name);
                if worst > tolerance {
                    failures.push(format!("{} at scale {scale}: {worst:.1e} > {tolerance:.0e}", case.name));
                }
            }
        }
        assert!(failures.is_empty(), "{cuda}: {failures:#?}");
    }
}
