//! The two workloads that the crate `tensor` was made for, in milliseconds a step.
//!
//! W1 is one training step of the two-agent policy (5,120 rows × 3 hops, two 3-layer LSTMs of 200, both heads,
//! 40 candidates a row, backward, Adam). W2 is one step of ComplEx (512 queries against 40,000 entities of
//! 2 × 200, binary cross-entropy, backward, Adam). The floor is the time of the same matrix products alone.
//!
//! `cargo bench --bench tensor -- [--device cpu|cuda|cuda-exact] [--threads 1,2] [--steps 10] [--only W1|W2]`;
//! `benches/peers/tensor_torch.py` runs the same in PyTorch.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use ruleguider::tensor::*;

const ROWS: usize = 5120;
const HOPS: usize = 3;
const WIDTH: usize = 200;
const CANDIDATES: usize = 40;
const RELATIONS: usize = 25;
const ENTITIES: usize = 40_000;
const QUERIES: usize = 512;
/// Answers of a query, on average that of the benchmark graphs.
const ANSWERS: usize = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).map_or(default.to_string(), String::clone)
    };
    let steps: usize = option("--steps", "10").parse().unwrap_or(10);
    let only = option("--only", "");
    let kind = option("--device", "cpu");
    let threads = option("--threads", "1");
    let counts = threads.split(',').filter_map(|count| count.parse::<usize>().ok());
    println!("| device | workload | ms a step | floor, ms | ratio to floor | peak of tensors, MiB |");
    println!("|---|---|---|---|---|---|");
    for count in counts {
        for (name, run) in [("W1", policy as fn(&Device, usize) -> Result<Figures>), ("W2", complex)] {
            if !only.is_empty() && only != name {
                continue;
            }
            // A device of its own, so that its peak is this workload's.
            let start = Instant::now();
            let device = match kind.as_str() {
                "cuda" => Device::cuda(0)?,
                "cuda-exact" => Device::cuda_exact(0)?,
                _ => Device::cpu(count)?,
            };
            let opened = start.elapsed().as_secs_f64();
            if opened > 0.1 {
                println!("(opened {device} in {opened:.2} s)");
            }
            let figures = run(&device, steps)?;
            let (step, floor) = (figures.step * 1e3, figures.floor * 1e3);
            let peak = figures.peak >> 20;
            println!("| {device} | {name} | {step:.2} | {floor:.2} | {:.2} | {peak} |", step / floor);
            if kind != "cpu" && count > 1 {
                break;
            }
        }
    }
    println!("peak of the process: {} MiB", process_peak_mib());
    Ok(())
}

struct Figures {
    /// Bytes that tensors held at most during the steps.
    peak: usize,
    /// Seconds of a step, the median of all.
    step: f64,
    /// Seconds of its products alone.
    floor: f64,
}

/// The median seconds of `steps` calls, after a few to warm up.
fn time(device: &Device, steps: usize, mut step: impl FnMut(u64) -> Result<()>) -> Result<f64> {
    for number in 0..3 {
        step(number)?;
    }
    device.synchronise()?;
    let mut seconds = Vec::new();
    for number in 0..steps {
        let start = Instant::now();
        step(number as u64)?;
        device.synchronise()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// Numbers below `limit` that look drawn.
fn scattered(device: &Device, len: usize, limit: usize, salt: usize) -> Result<Indices> {
    let mix = |index: usize| (index + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    Indices::new(device, &(0..len).map(|index| (mix(index) % limit) as u32).collect::<Vec<_>>())
}

/// One agent: a 3-layer LSTM and a head of two linear layers.
struct Agent {
    layers: Vec<[ParameterId; 3]>,
    head: [ParameterId; 4],
}

impl Agent {
    fn new(parameters: &mut Parameters, name: &str, inputs: usize) -> Result<Agent> {
        let mut layers = Vec::new();
        for layer in 0..3 {
            layers.push([
                parameters.dense(
                    &format!("{name}.{layer}.input"),
                    WIDTH,
                    4 * WIDTH,
                    Initial::XavierNormal,
                )?,
                parameters.dense(
                    &format!("{name}.{layer}.hidden"),
                    WIDTH,
                    4 * WIDTH,
                    Initial::XavierNormal,
                )?,
                parameters.dense(&format!("{name}.{layer}.bias"), 1, 4 * WIDTH, Initial::Zeros)?,
            ]);
        }
        let head = [
            parameters.dense(&format!("{name}.first"), inputs * WIDTH, WIDTH, Initial::XavierUniform)?,
            parameters.dense(&format!("{name}.first.bias"), 1, WIDTH, Initial::Zeros)?,
            parameters.dense(&format!("{name}.second"), WIDTH, WIDTH, Initial::XavierUniform)?,
            parameters.dense(&format!("{name}.second.bias"), 1, WIDTH, Initial::Zeros)?,
        ];
        Ok(Agent { layers, head })
    }

    fn walk(&self, tape: &mut Tape, input: Var, states: &mut [Option<LstmState>]) -> Result<Var> {
        let mut x = input;
        for (layer, state) in self.layers.iter().zip(states) {
            let [input, hidden, bias] = layer.map(|id| tape.parameter(id));
            let next = tape.lstm(x, *state, None, LstmWeights { input, hidden, bias, peepholes: None })?;
            *state = Some(next);
            x = next.hidden;
        }
        Ok(x)
    }

    fn query(&self, tape: &mut Tape, inputs: &[Var]) -> Result<Var> {
        let [first, first_bias, second, second_bias] = self.head.map(|id| tape.parameter(id));
        let x = tape.linear(inputs, first, Some(first_bias), Activation::Relu, 0.0)?;
        tape.linear(&[x], second, Some(second_bias), Activation::Identity, 0.0)
    }
}

/// W1.
fn policy(device: &Device, steps: usize) -> Result<Figures> {
    let mut parameters = Parameters::new(device, 1);
    let entities = parameters.table("entities", ENTITIES, WIDTH, Initial::XavierNormal)?;
    let relations = parameters.table("relations", RELATIONS, WIDTH, Initial::XavierNormal)?;
    let by_relation = Agent::new(&mut parameters, "relation", 2)?;
    let by_entity = Agent::new(&mut parameters, "entity", 4)?;
    let (mut gradients, mut adam) = (Gradients::new(&parameters), Adam::new(AdamOptions::default()));
    let segments = Segments::from_lengths(device, std::iter::repeat_n(CANDIDATES, ROWS))?;
    let (sources, queries) = (scattered(device, ROWS, ENTITIES, 1)?, scattered(device, ROWS, RELATIONS, 2)?);
    let rows = Indices::new(device, &(0..ROWS as u32).collect::<Vec<_>>())?;
    let mut hops = Vec::new();
    for hop in 0..HOPS {
        let picked: Vec<u32> =
            (0..ROWS).map(|row| (row * CANDIDATES + (row * 7 + hop) % CANDIDATES) as u32).collect();
        hops.push((
            scattered(device, ROWS, RELATIONS, 10 + hop)?,
            scattered(device, ROWS, ENTITIES, 20 + hop)?,
            scattered(device, ROWS * CANDIDATES, ENTITIES, 30 + hop)?,
            Indices::new(device, &picked)?,
        ));
    }
    let rewards =
        Tensor::vector(device, &(0..ROWS).map(|row| -((row % 7) as f32) / ROWS as f32).collect::<Vec<_>>())?;
    let step = time(device, steps, |number| {
        let mut tape = Tape::training(&parameters, number);
        let (entity, relation) = (tape.parameter(entities), tape.parameter(relations));
        let (source, query) = (tape.gather(entity, &sources, 0.0)?, tape.gather(relation, &queries, 0.0)?);
        let (mut first, mut second) = ([None; 3], [None; 3]);
        let mut loss = None;
        for (link, place, candidates, picked) in &hops {
            let last = tape.gather(relation, link, 0.0)?;
            let here = tape.gather(entity, place, 0.0)?;
            let history = by_relation.walk(&mut tape, last, &mut first)?;
            let wish = by_relation.query(&mut tape, &[history, query])?;
            let scores = tape.against(wish, relation, None, 0.0)?;
            let log_probs = tape.log_softmax(scores, 2)?;
            let chosen_relation = tape.gather_pairs(log_probs, &rows, link)?;
            let history = by_entity.walk(&mut tape, here, &mut second)?;
            let wish = by_entity.query(&mut tape, &[here, history, source, query])?;
            let scores = tape.gather_dot(wish, entity, candidates, &segments, 0.0)?;
            let log_probs = tape.segment_log_softmax(scores, &segments, None)?;
            let chosen_entity = tape.gather_elements(log_probs, picked)?;
            for chosen in [chosen_relation, chosen_entity] {
                let part = tape.weighted_sum(chosen, &rewards)?;
                loss = Some(match loss {
                    Some(sum) => tape.add(sum, part)?,
                    None => part,
                });
            }
        }
        tape.backward(loss.expect("there is a hop"), &mut gradients)?;
        adam.step(&mut parameters, &mut gradients)
    })?;
    let peak = device.peak_bytes();
    // Each layer's products with input and state (none in the first hop), the heads', the relations'.
    let layers = 6 * (HOPS + HOPS - 1);
    let mut floor = 0.0;
    for (inner, columns, count) in [
        (WIDTH, 4 * WIDTH, layers),
        (2 * WIDTH, WIDTH, HOPS),
        (4 * WIDTH, WIDTH, HOPS),
        (WIDTH, WIDTH, 2 * HOPS),
        (WIDTH, RELATIONS, HOPS),
    ] {
        floor += count as f64 * three_products(device, ROWS, inner, columns)?;
    }
    Ok(Figures { peak, step, floor })
}

/// W2.
fn complex(device: &Device, steps: usize) -> Result<Figures> {
    let mut parameters = Parameters::new(device, 1);
    let entities = parameters.table("entities", ENTITIES, 2 * WIDTH, Initial::XavierNormal)?;
    let relations = parameters.table("relations", RELATIONS, 2 * WIDTH, Initial::XavierNormal)?;
    let (mut gradients, mut adam) = (Gradients::new(&parameters), Adam::new(AdamOptions::default()));
    let (heads, links) =
        (scattered(device, QUERIES, ENTITIES, 1)?, scattered(device, QUERIES, RELATIONS, 2)?);
    let labels = Labels {
        rows: scattered(device, QUERIES * ANSWERS, ENTITIES, 3)?,
        segments: Segments::from_lengths(device, std::iter::repeat_n(ANSWERS, QUERIES))?,
    };
    let step = time(device, steps, |number| {
        let mut tape = Tape::training(&parameters, number);
        let (entity, relation) = (tape.parameter(entities), tape.parameter(relations));
        let (head, link) = (tape.gather(entity, &heads, 0.0)?, tape.gather(relation, &links, 0.0)?);
        let query = tape.complex_product(head, link)?;
        let loss = tape.binary_loss_against_all(query, entity, None, &labels, Smoothing::even(0.1), 0.0)?;
        tape.backward(loss, &mut gradients)?;
        adam.step(&mut parameters, &mut gradients)
    })?;
    let peak = device.peak_bytes();
    let floor = three_products(device, QUERIES, 2 * WIDTH, ENTITIES)?;
    Ok(Figures { peak, step, floor })
}

/// Seconds of a product and of the two products of its gradients.
fn three_products(device: &Device, rows: usize, inner: usize, columns: usize) -> Result<f64> {
    let mut seconds = 0.0;
    for (rows, inner, columns) in [(rows, inner, columns), (rows, columns, inner), (inner, rows, columns)] {
        let operations = 2.0 * (rows * inner * columns) as f64;
        // Enough products in a row that waiting for the device does not count, but not minutes of them.
        let times = (2e10 / operations).clamp(1.0, 20.0) as usize;
        seconds += device.product_seconds(rows, inner, columns, times)?;
    }
    Ok(seconds)
}

fn process_peak_mib() -> usize {
    (ruleguider::memory::peak_bytes().unwrap_or(0) >> 20) as usize
}
