//! What the crate guarantees besides correct gradients: errors, edge cases, the optimiser, files, draws.

use super::check::devices;
use super::*;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let device = Device::cpu(1).unwrap();
    let mut parameters = Parameters::new(&device, 1);
    let weight = parameters.dense("weight", 3, 4, Initial::Zeros).unwrap();
    let mut tape = Tape::training(&parameters, 0);
    let weight = tape.parameter(weight);
    let x = tape.constant(Tensor::zeros(&device, 2, 5).unwrap()).unwrap();
    let error = tape.linear(&[x], weight, None, Activation::Identity, 0.0).unwrap_err();
    assert_eq!(error.to_string(), "linear: inputs and weight: [2, 5] does not fit [3, 4]");
    let error = tape.add(x, weight).unwrap_err();
    assert_eq!(error.to_string(), "add: both inputs: [2, 5] does not fit [3, 4]");
    let rows = Indices::new(&device, &[0, 3]).unwrap();
    let error = tape.gather(weight, &rows, 0.0).unwrap_err();
    assert_eq!(error.to_string(), "gather: index 3 at position 1 is outside a table of 3 rows");
    let error = tape.backward(x, &mut Gradients::new(&parameters)).unwrap_err();
    assert_eq!(error.to_string(), "backward: the loss and a single number: [2, 5] does not fit [1, 1]");
}

#[test]
fn a_value_that_is_no_number_is_found_in_debug_builds() {
    for device in devices() {
        let parameters = Parameters::new(&device, 1);
        let mut tape = Tape::training(&parameters, 0);
        let outcome = tape.constant(Tensor::new(&device, &[1.0, f32::NAN], 1, 2).unwrap());
        if cfg!(debug_assertions) {
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains("constant") && message.contains("element 1"), "{message}");
        }
    }
}

#[test]
fn a_missing_gpu_is_an_error_with_a_remedy_and_auto_takes_the_cpu() {
    match Device::cuda(0) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("choose the CPU"), "{message}");
            let device = Device::choose(DeviceChoice::Auto, 2).unwrap();
            assert_eq!(device.to_string(), "cpu (2 threads)");
            assert!(Device::choose(DeviceChoice::Cuda, 2).is_err());
        }
        Ok(device) => {
            assert!(Device::choose(DeviceChoice::Auto, 2).unwrap().to_string() == device.to_string())
        }
    }
    assert!("gpu".parse::<DeviceChoice>().unwrap_err().contains("cpu, cuda or auto"));
}

#[test]
fn empty_batches_and_segments_work() {
    for device in devices() {
        let mut parameters = Parameters::new(&device, 1);
        let table = parameters.table("table", 5, 4, Initial::XavierNormal).unwrap();
        let input = parameters.dense("input", 4, 16, Initial::XavierNormal).unwrap();
        let hidden = parameters.dense("hidden", 4, 16, Initial::XavierNormal).unwrap();
        let bias = parameters.dense("bias", 1, 16, Initial::Zeros).unwrap();
        let mut gradients = Gradients::new(&parameters);
        let none = Indices::new(&device, &[]).unwrap();
        let mut tape = Tape::training(&parameters, 0);
        let table_var = tape.parameter(table);
        let weights = LstmWeights {
            input: tape.parameter(input),
            hidden: tape.parameter(hidden),
            bias: tape.parameter(bias),
            peepholes: None,
        };
        let x = tape.gather(table_var, &none, 0.1).unwrap();
        let state = tape.lstm(x, None, None, weights).unwrap();
        let segments = Segments::from_lengths(&device, []).unwrap();
        let scores = tape.gather_dot(state.hidden, table_var, &none, &segments, 0.0).unwrap();
        let log_probs = tape.segment_log_softmax(scores, &segments, None).unwrap();
        let picked = tape.gather_elements(log_probs, &none).unwrap();
        let loss = tape.mean(picked).unwrap();
        tape.backward(loss, &mut gradients).unwrap();
        assert!(gradients.of(input).unwrap().iter().all(|derivative| *derivative == 0.0), "{device}");

        // States without candidates, and one with all candidates closed.
        let mut tape = Tape::training(&parameters, 0);
        let table_var = tape.parameter(table);
        let rows = Indices::new(&device, &[0, 1, 2]).unwrap();
        let states = tape.gather(table_var, &rows, 0.0).unwrap();
        let segments = Segments::from_lengths(&device, [0, 2, 0]).unwrap();
        let candidates = Indices::new(&device, &[3, 4]).unwrap();
        let scores = tape.gather_dot(states, table_var, &candidates, &segments, 0.0).unwrap();
        let closed = Indices::new(&device, &[1, 1]).unwrap();
        let log_probs = tape.segment_log_softmax(scores, &segments, Some(&closed)).unwrap();
        assert_eq!(tape.value(log_probs).to_vec().unwrap(), [f32::NEG_INFINITY; 2]);
        let total = tape.segment_log_sum_exp(scores, &segments, Some(&closed)).unwrap();
        assert_eq!(tape.value(total).to_vec().unwrap(), [f32::NEG_INFINITY; 3]);
        let entropy = tape.segment_entropy(log_probs, &segments).unwrap();
        assert_eq!(tape.value(entropy).to_vec().unwrap(), [0.0; 3]);
        let loss = tape.mean(entropy).unwrap();
        tape.backward(loss, &mut gradients).unwrap();
        assert!(gradients.of(table).unwrap().iter().all(|derivative| *derivative == 0.0), "{device}");
    }
}

/// Textbook Adam, in double precision.
struct Reference {
    values: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    step: i32,
}

impl Reference {
    fn step(&mut self, gradient: &[f32], rate: f64) {
        self.step += 1;
        for (index, derivative) in gradient.iter().enumerate() {
            let derivative = f64::from(*derivative);
            self.first[index] = 0.9 * self.first[index] + 0.1 * derivative;
            self.second[index] = 0.999 * self.second[index] + 0.001 * derivative * derivative;
            let mean = self.first[index] / (1.0 - 0.9f64.powi(self.step));
            let square = self.second[index] / (1.0 - 0.999f64.powi(self.step));
            self.values[index] -= rate * mean / (square.sqrt() + 1e-8);
        }
    }
}

#[test]
fn adam_is_adam_and_resting_rows_catch_up_on_their_moments() {
    for device in devices() {
        let mut parameters = Parameters::new(&device, 1);
        let table = parameters.table("table", 3, 2, Initial::Normal(1.0)).unwrap();
        let dense = parameters.dense("dense", 3, 2, Initial::Normal(1.0)).unwrap();
        let mut gradients = Gradients::new(&parameters);
        let mut adam = Adam::new(AdamOptions { learning_rate: 0.01, ..AdamOptions::default() });
        let start = |id| -> Reference {
            let values = parameters.value(id).to_vec().unwrap().into_iter().map(f64::from).collect();
            Reference { values, first: vec![0.0; 6], second: vec![0.0; 6], step: 0 }
        };
        let (mut of_table, mut of_dense) = (start(table), start(dense));
        for step in 0..12u32 {
            // Row 0 is always touched, row 1 every fourth step, row 2 never.
            let touched: &[u32] = if step % 4 == 0 { &[0, 1] } else { &[0] };
            let mut tape = Tape::training(&parameters, u64::from(step));
            let (table_var, dense_var) = (tape.parameter(table), tape.parameter(dense));
            let rows = tape.gather(table_var, &Indices::new(&device, touched).unwrap(), 0.0).unwrap();
            let (left, right) =
                (tape.cubed_norm(rows, false, 1.0).unwrap(), tape.cubed_norm(dense_var, false, 2.0).unwrap());
            let loss = tape.add(left, right).unwrap();
            tape.backward(loss, &mut gradients).unwrap();
            of_dense.step(&gradients.of(dense).unwrap(), 0.01);
            let before = of_table.values.clone();
            of_table.step(&gradients.of(table).unwrap(), 0.01);
            if step % 4 != 0 {
                // A table does not move its untouched rows by their old momentum.
                of_table.values[2..4].copy_from_slice(&before[2..4]);
            }
            adam.step(&mut parameters, &mut gradients).unwrap();
        }
        for (id, reference) in [(table, of_table), (dense, of_dense)] {
            for (ours, theirs) in parameters.value(id).to_vec().unwrap().iter().zip(&reference.values) {
                assert!((f64::from(*ours) - theirs).abs() < 2e-6, "{device}: {ours} against {theirs}");
            }
        }
    }
}

/// One step of a small model with every kind of parameter.
fn step(parameters: &mut Parameters, gradients: &mut Gradients, adam: &mut Adam, number: u64) {
    let device = parameters.device().clone();
    let id = |name| parameters.find(name).unwrap();
    let mut tape = Tape::training(parameters, number);
    let table = tape.parameter(id("table"));
    let rows = Indices::new(&device, &[(number % 5) as u32, 2]).unwrap();
    let x = tape.gather(table, &rows, 0.2).unwrap();
    let normalisation =
        Normalisation { scale: id("scale"), shift: id("shift"), mean: id("mean"), variance: id("variance") };
    let x = tape.batch_norm(x, 4, normalisation).unwrap();
    let loss = tape.cubed_norm(x, false, 1.0).unwrap();
    tape.backward(loss, gradients).unwrap();
    gradients.clip_norm(0.5).unwrap();
    adam.step(parameters, gradients).unwrap();
}

fn model(device: &Device, seed: u64) -> Parameters {
    let mut parameters = Parameters::new(device, seed);
    parameters.table("table", 5, 4, Initial::Normal(1.0)).unwrap();
    parameters.dense("scale", 4, 1, Initial::Ones).unwrap();
    parameters.dense("shift", 4, 1, Initial::Zeros).unwrap();
    parameters.statistic("mean", 4, 1, Initial::Zeros).unwrap();
    parameters.statistic("variance", 4, 1, Initial::Ones).unwrap();
    parameters
}

#[test]
fn training_from_a_file_goes_on_as_if_it_had_not_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    for device in devices() {
        let mut parameters = model(&device, 3);
        let (mut gradients, mut adam) = (Gradients::new(&parameters), Adam::new(AdamOptions::default()));
        (0..6).for_each(|number| step(&mut parameters, &mut gradients, &mut adam, number));
        let mut archive = Archive::new();
        archive.set_metadata("names", "a\nb");
        parameters.store(&mut archive).unwrap();
        adam.store(&parameters, &mut archive).unwrap();
        archive.write(&path).unwrap();
        (6..12).for_each(|number| step(&mut parameters, &mut gradients, &mut adam, number));

        let archive = Archive::read(&path).unwrap();
        assert_eq!(archive.metadata("names"), Some("a\nb"));
        assert!(archive.names().any(|name| name == "adam.last.table"));
        let mut again = model(&device, 4);
        again.load(&archive).unwrap();
        let (mut gradients, mut adam) = (Gradients::new(&again), Adam::new(AdamOptions::default()));
        adam.load(&again, &archive).unwrap();
        assert_eq!(adam.steps(), 6);
        (6..12).for_each(|number| step(&mut again, &mut gradients, &mut adam, number));
        for id in again.ids() {
            let (left, right) = (parameters.value(id).to_vec().unwrap(), again.value(id).to_vec().unwrap());
            assert_eq!(bits(&left), bits(&right), "{device}: {}", again.name(id));
        }
        assert_ne!(again.value(again.find("mean").unwrap()).to_vec().unwrap(), [0.0; 4], "statistics move");
    }
}

#[test]
fn files_that_do_not_fit_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    let device = Device::cpu(1).unwrap();
    let mut archive = Archive::new();
    archive.insert("table", [4, 4], vec![0.0; 16]).unwrap();
    archive.write(&path).unwrap();
    let read = Archive::read(&path).unwrap();
    let error = model(&device, 1).load(&read).unwrap_err().to_string();
    assert_eq!(error, "parameter `table`: has shape [4, 4] in the file, but [5, 4] is needed");
    let error = read.values("bias", [1, 1]).unwrap_err().to_string();
    assert_eq!(error, "parameter `bias`: is not in the file");
    std::fs::write(&path, b"not a file of tensors").unwrap();
    let error = Archive::read(&path).err().unwrap().to_string();
    assert!(error.contains("model.safetensors"), "{error}");
    let error = Archive::read(&directory.path().join("none")).err().unwrap().to_string();
    assert!(error.contains("none"), "{error}");
}

#[test]
fn clipping_keeps_the_direction_and_frozen_parameters_stay() {
    for device in devices() {
        let mut parameters = Parameters::new(&device, 1);
        let left = parameters.dense("left", 1, 2, Initial::Ones).unwrap();
        let right = parameters.table("right", 3, 2, Initial::Ones).unwrap();
        let frozen = parameters.dense("frozen", 1, 2, Initial::Ones).unwrap();
        parameters.freeze(frozen, true);
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 0);
        let vars = [left, right, frozen].map(|id| tape.parameter(id));
        let rows = tape.gather(vars[1], &Indices::new(&device, &[1]).unwrap(), 0.0).unwrap();
        let product = tape.multiply(vars[0], rows).unwrap();
        let product = tape.multiply(product, vars[2]).unwrap();
        let loss = tape.weighted_sum(product, &Tensor::new(&device, &[3.0, 4.0], 1, 2).unwrap()).unwrap();
        tape.backward(loss, &mut gradients).unwrap();
        let norm = gradients.clip_norm(1.0).unwrap().number().unwrap();
        assert!((norm - 50.0f32.sqrt()).abs() < 1e-5, "{norm}");
        assert_eq!(gradients.of(frozen).unwrap(), [0.0; 2]);
        let mut adam = Adam::new(AdamOptions { learning_rate: 0.1, ..AdamOptions::default() });
        adam.step(&mut parameters, &mut gradients).unwrap();
        assert_eq!(parameters.value(frozen).to_vec().unwrap(), [1.0; 2]);
        let table = parameters.value(right).to_vec().unwrap();
        assert!(table[..2] == [1.0; 2] && table[4..] == [1.0; 2] && table[2] < 0.95, "{table:?}");
        assert_eq!(gradients.of(right).unwrap(), [0.0; 6], "the optimiser leaves no gradient behind");
    }
}

#[test]
fn inference_drops_nothing_and_uses_running_statistics() {
    for device in devices() {
        let mut parameters = model(&device, 3);
        let (mut gradients, mut adam) = (Gradients::new(&parameters), Adam::new(AdamOptions::default()));
        (0..200).for_each(|number| step(&mut parameters, &mut gradients, &mut adam, number));
        let id = |name| parameters.find(name).unwrap();
        let mut tape = Tape::inference(&parameters);
        let table = tape.parameter(id("table"));
        let x = tape.gather(table, &Indices::new(&device, &[2]).unwrap(), 0.9).unwrap();
        let row = parameters.value(id("table")).to_vec().unwrap()[8..12].to_vec();
        assert_eq!(tape.value(x).to_vec().unwrap(), row);
        let normalisation = Normalisation {
            scale: id("scale"),
            shift: id("shift"),
            mean: id("mean"),
            variance: id("variance"),
        };
        let y = tape.batch_norm(x, 4, normalisation).unwrap();
        let of = |name| parameters.value(id(name)).to_vec().unwrap();
        let (scale, shift, mean, variance) = (of("scale"), of("shift"), of("mean"), of("variance"));
        for (k, y) in tape.value(y).to_vec().unwrap().into_iter().enumerate() {
            let expected = scale[k] * (row[k] - mean[k]) / (variance[k] + 1e-5).sqrt() + shift[k];
            assert!((y - expected).abs() < 1e-4, "{device}: {y} against {expected}");
        }
        assert!(tape.backward(y, &mut gradients).is_err());
    }
}

#[test]
fn exhausted_device_memory_says_how_much_was_needed_and_what_lowers_it() {
    for (device, _) in check::cuda_devices() {
        let error = Tensor::zeros(&device, 1 << 20, 1 << 20).unwrap_err();
        assert!(matches!(error, TensorError::OutOfMemory { needed_mib: 4_194_304, .. }), "{error}");
        assert!(error.to_string().contains("batch"), "{error}");
        assert_eq!(Tensor::zeros(&device, 2, 2).unwrap().to_vec().unwrap(), [0.0; 4], "the device goes on");
    }
}

#[test]
fn the_logarithm_of_a_sum_of_exponentials_is_that_of_double_precision() {
    for len in [1, 15, 16, 17, 1000] {
        let values: Vec<f32> = (0..len).map(|at| (at * 37 % 101) as f32 * 0.3 - 20.0).collect();
        let exact = values.iter().map(|&value| f64::from(value).exp()).sum::<f64>().ln();
        let ours = logsumexp(&values);
        assert!((ours - exact).abs() < 1e-6 * exact.abs().max(1.0), "{len}: {ours} {exact}");
    }
    assert_eq!(logsumexp(&[2.5]), 2.5);
}
