//! The walker on CUDA against the walker on the CPU; skipped, saying so, where there is no device.

use super::episodes::{gradient, random_walks};
use super::{asks, plain, small};
use crate::tensor::{Choosing, Device, Indices, Initial, Key, Parameters, Segments, Tensor, choose};
use crate::walk::{Agents, Phase, WalkConfig, Walker};

fn cuda() -> Option<Device> {
    Device::cuda_exact(0).inspect_err(|error| crate::skip::skip(crate::skip::Need::Cuda, error)).ok()
}

#[test]
fn gradients_and_answers_on_cuda_are_those_on_the_cpu() {
    let Some(cuda) = cuda() else { return };
    for agents in [Agents::Two, Agents::Single] {
        let config = WalkConfig { dimension: 40, history: 32, rollouts: 10, entropy: 0.1, ..plain(agents) };
        let small = small(30, 120, 5);
        let asks = asks(&small.known.queries);
        let (script, _) = random_walks(&small, &asks, &config, 6);
        let on = |device: &Device| {
            let walker = Walker::new(&config, &small.graph, &small.known, device, 5).unwrap();
            let mut gradients = vec![Vec::new(); walker.parameters.ids().count()];
            gradient(&walker, &asks, &script, Phase::Joint, 1.0, &mut gradients);
            let queries: Vec<_> = asks.iter().map(|ask| ask.query).collect();
            (gradients, walker.answers(&queries).unwrap())
        };
        let (ours, theirs) = (on(&cuda), on(&Device::cpu(1).unwrap()));
        for (index, (ours, theirs)) in ours.0.iter().zip(&theirs.0).enumerate() {
            let size = theirs.iter().fold(1e-6f64, |size, value| size.max(value.abs()));
            let worst = ours.iter().zip(theirs).fold(0.0f64, |worst, (a, b)| worst.max((a - b).abs()));
            assert!(worst <= 5e-3 * size, "gradient of parameter {index}: {worst:.1e} of {size:.1e}");
        }
        for (ours, theirs) in ours.1.iter().zip(&theirs.1) {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert!((ours.score - theirs.score).abs() <= 2e-3 * (1.0 + theirs.score.abs()));
            }
        }
    }
}

#[test]
fn draws_on_cuda_are_those_on_the_cpu() {
    let Some(cuda) = cuda() else { return };
    let (heads, links, states, draws) = (40usize, 30usize, 500usize, 20_000usize);
    let drawn = |device: &Device, groups: bool, scores: bool| {
        let mut parameters = Parameters::new(device, 1);
        let log_probs = parameters.dense("log_probs", heads, links, Initial::Normal(1.0)).unwrap();
        let segments = Segments::from_lengths(device, (0..states).map(|state| state % 90 + 1)).unwrap();
        let total = segments.total();
        let values = parameters.dense("scores", total, 1, Initial::Normal(1.0)).unwrap();
        // Within a list the groups rise, as links do.
        let group = |starts: &[u32]| -> Vec<u32> {
            starts
                .windows(2)
                .flat_map(|list| (0..list[1] - list[0]).map(|at| at / 3 % links as u32))
                .collect()
        };
        let group_of = Indices::new(device, &group(segments.starts())).unwrap();
        let list = |count: usize, step: usize| -> Indices {
            let values: Vec<u32> = (0..draws).map(|draw| (draw * step % count) as u32).collect();
            Indices::new(device, &values).unwrap()
        };
        let (log_probs, values): (Tensor, Tensor) = (parameters.value(log_probs), parameters.value(values));
        let choosing = Choosing {
            groups: groups.then_some(&log_probs),
            scores: scores.then_some(&values),
            group_of: &group_of,
            segments: &segments,
            drop_groups: 0.3,
            drop: 0.4,
            key: Key::new(7, 7),
        };
        choose(choosing, &list(states, 7), &list(heads, 3)).unwrap().to_vec().unwrap()
    };
    let cpu = Device::cpu(1).unwrap();
    for (groups, scores) in [(true, true), (true, false), (false, true)] {
        let (ours, theirs) = (drawn(&cuda, groups, scores), drawn(&cpu, groups, scores));
        let same = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours == theirs).count();
        assert!(same * 1000 >= draws * 999, "{same} of {draws} draws are the same");
    }
}
