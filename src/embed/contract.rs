//! The contract of every model, tested for all of them.

use super::denied::Denied;
use super::embedding::SCORES_AT_ONCE;
use super::examples::{Batch, Examples};
use super::model::{self, Size};
use super::sample::Sampler;
use super::settings::{ImageDropout, LabelFloor, Loss, ModelKind, Settings, TrainingExample};
use super::trainer::epochs_wanted;
use super::{Embedding, NetworkError, Stop, Task, TrainedEmbedding, train};
use crate::eval::{Answers, Protocol, Reasoner, Truth, evaluate};
use crate::graph::{
    Adjacency, Array, Direction, EntityId, Graph, Known, Link, Names, Query, RelationId, Triple,
};
use crate::progress::{Metric, Progress, Silent};
use crate::tensor::{Device, Gradients, Indices, Labels, Segments, Tape};
use crate::train::{Recording, TrainError, forget, read_curves};
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: Size = Size { entities: 11, relations: 2 };

/// Small settings of every model, with both losses and every regulariser that it has.
fn every_model() -> Vec<Settings> {
    let mut all = Vec::new();
    for model in ModelKind::ALL {
        for (loss, example, n3) in
            [(Loss::Binary, TrainingExample::Query, 0.0), (Loss::Softmax, TrainingExample::Fact, 0.03)]
        {
            all.push(Settings {
                dimension: 12,
                image_rows: 3,
                filters: 3,
                kernel: 2,
                batch: 8,
                epochs: 6,
                evaluate_every: 2,
                initial: 0.3,
                entity_bias: model == ModelKind::ConvE || loss == Loss::Softmax,
                loss,
                example,
                n3,
                ..Settings::of(model)
            });
        }
    }
    // Against a sample of the entities, for a model that uses products and one that uses distances.
    for model in [ModelKind::ComplEx, ModelKind::RotatE] {
        let by_all = all.iter().find(|settings| settings.model == model && settings.loss == Loss::Softmax);
        let sampled = Settings { negatives: 3, batch: 4, ..by_all.expect("it is there").clone() };
        assert!(sampled.compared(SIZE.entities) < SIZE.entities);
        all.push(sampled);
    }
    // ComplEx and ConvE as published by the authors of MultiHop.
    let complex = all.iter().find(|settings| settings.model == ModelKind::ComplEx).expect("it is there");
    all.push(Settings { initial_imaginary: 1.0, label_floor: LabelFloor::One, ..complex.clone() });
    let published = all.iter().find(|settings| settings.model == ModelKind::ConvE).expect("it is there");
    all.push(Settings {
        image_dropout: ImageDropout::Before,
        feature_norm: false,
        label_floor: LabelFloor::One,
        dropout_table: 0.3,
        ..published.clone()
    });
    all
}

fn embedding(settings: &Settings, threads: usize) -> Embedding {
    Embedding::new(settings, SIZE, &Device::cpu(threads).unwrap(), 7).unwrap()
}

/// A ring of `next` edges and `skip` edges between entities two apart, with one of each held out for validation.
fn known() -> Known {
    let entities = SIZE.entities as u32;
    let mut facts: Vec<Triple> = (0..entities)
        .flat_map(|e| [Triple::new(e, 0, (e + 1) % entities), Triple::new(e, 1, (e + 2) % entities)])
        .collect();
    let valid = vec![facts.remove(9), facts.remove(4)];
    let facts: Array<Triple> = facts.into();
    Known { facts: facts.clone(), queries: facts, valid: valid.into(), ..Known::default() }
}

#[test]
fn scores_of_triples_of_all_tails_and_of_all_heads_agree() {
    for settings in every_model() {
        let embedding = embedding(&settings, 1);
        let device = embedding.device().clone();
        for direction in [Direction::Forward, Direction::Inverse] {
            for relation in (0..SIZE.relations as u32).map(RelationId) {
                let link = Link::new(relation, direction);
                let queries: Vec<Query> =
                    (0..SIZE.entities as u32).map(|e| Query { subject: EntityId(e), link }).collect();
                let scores = |queries: &[Query]| embedding.scores(queries).unwrap().to_vec().unwrap();
                let all = scores(&queries);
                let apart = [scores(&queries[..1]), scores(&queries[1..])].concat();
                assert_eq!(all, apart, "batching changes scores");
                let pairs =
                    (0..SIZE.entities as u32).flat_map(|s| (0..SIZE.entities as u32).map(move |e| (s, e)));
                let (subjects, objects): (Vec<u32>, Vec<u32>) = pairs.unzip();
                let list = |values: &[u32]| Indices::new(&device, values).unwrap();
                let links = list(&vec![link.0; subjects.len()]);
                let single = embedding.triple_scores(&list(&subjects), &links, &list(&objects)).unwrap();
                for (one, of_all) in single.to_vec().unwrap().iter().zip(&all) {
                    assert!((one - of_all).abs() < 1e-4, "{}: {one} {of_all}", settings.model.name());
                }
                let logsumexp: Vec<f32> = embedding
                    .logsumexp(&queries)
                    .unwrap()
                    .into_iter()
                    .flat_map(|sum| [sum; SIZE.entities])
                    .collect();
                let soft =
                    embedding.plausibility(&list(&subjects), &links, &list(&objects), &logsumexp).unwrap();
                for ((f, score), row) in
                    soft.to_vec().unwrap().iter().zip(&all).zip(
                        all.chunks(SIZE.entities).flat_map(|row| std::iter::repeat_n(row, SIZE.entities)),
                    )
                {
                    let sum: f32 = row.iter().map(|score| score.exp()).sum();
                    let odds = if settings.loss == Loss::Softmax { score - sum.ln() } else { *score };
                    assert!((f - 1.0 / (1.0 + (-odds).exp())).abs() < 1e-4 && (0.0..=1.0).contains(f));
                }
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for mut settings in every_model() {
        // The same masks on both sides of a difference. Normalisation has its own check in the crate `tensor`.
        settings.dropout_entity = 0.2;
        settings.dropout_hidden = 0.2;
        let mut embedding = embedding(&settings, 1);
        let device = embedding.device().clone();
        let list = |values: &[u32]| Indices::new(&device, values).unwrap();
        let (subjects, links) = (list(&[0, 3, 3, 9, 5]), list(&[3, 4, 5, 6, 3]));
        let labels = Labels {
            rows: list(&[1, 2, 8, 8, 0, 4]),
            segments: Segments::from_lengths(&device, [1, 2, 1, 1, 1]).unwrap(),
        };
        let examples =
            Examples::new(&Graph::new(SIZE.entities, SIZE.relations, &known().facts), settings.example);
        let sampler = Sampler::new(&examples, SIZE.entities, settings.negatives, 1);
        let draw = || sampler.draw(&device, &labels.rows.to_vec().unwrap(), &labels.segments, 0).unwrap();
        let sample = (settings.negatives > 0).then(draw);
        let batch = Batch { subjects, links, labels, sample };
        let loss_of = |embedding: &Embedding, gradients: Option<&mut Gradients>| {
            let mut tape = Tape::training(&embedding.parameters, 3);
            let loss = model::loss(embedding.model.as_ref(), &mut tape, &batch, &settings).unwrap();
            let value = f64::from(tape.value(loss).number().unwrap());
            if let Some(gradients) = gradients {
                tape.backward(loss, gradients).unwrap();
            }
            value
        };
        let mut gradients = Gradients::new(&embedding.parameters);
        loss_of(&embedding, Some(&mut gradients));
        for id in embedding.parameters.ids() {
            let gradient = gradients.of(id).unwrap();
            let values = embedding.parameters.value(id).to_vec().unwrap();
            // The whole parameter is moved along its gradient: one difference checks all of its elements.
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            if norm < 1e-6 {
                continue;
            }
            let moved = |by: f64| -> Vec<f32> {
                values.iter().zip(&gradient).map(|(v, g)| v + (by * f64::from(*g) / norm) as f32).collect()
            };
            let step = 3e-3;
            embedding.parameters.set(id, &moved(step)).unwrap();
            let above = loss_of(&embedding, None);
            embedding.parameters.set(id, &moved(-step)).unwrap();
            let below = loss_of(&embedding, None);
            embedding.parameters.set(id, &values).unwrap();
            let derivative = (above - below) / (2.0 * step);
            let name = embedding.parameters.name(id).to_owned();
            assert!(
                (derivative - norm).abs() <= 0.03 * norm.abs() + 1e-4,
                "{} {:?} {name}: {derivative} instead of {norm}",
                settings.model.name(),
                settings.loss
            );
        }
    }
}

fn task<'a>(settings: &'a Settings, known: &'a Known, device: &'a Device) -> Task<'a> {
    Task { known, size: SIZE, settings, stop: Stop::Validation, seed: 5, device, folder: None, warm: None }
}

fn all_scores(embedding: &Embedding) -> Vec<f32> {
    let links = (Link::RESERVED as u32..SIZE.links() as u32).map(Link);
    let queries: Vec<Query> = links
        .flat_map(|link| (0..SIZE.entities as u32).map(move |e| Query { subject: EntityId(e), link }))
        .collect();
    embedding.scores(&queries).unwrap().to_vec().unwrap()
}

#[test]
fn saved_and_loaded_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (known, device) = (known(), Device::cpu(1).unwrap());
    let entities: Vec<String> = (0..SIZE.entities).map(|id| format!("entity {id}")).collect();
    let names = Names {
        entities: entities.iter().map(String::as_str).collect(),
        relations: ["next", "skip"].into_iter().collect(),
        ..Names::default()
    };
    for settings in every_model() {
        let TrainedEmbedding { embedding, .. } = train(task(&settings, &known, &device), &Silent).unwrap();
        embedding.save(&path, &names, &[]).unwrap();
        let loaded = Embedding::load(&path, &names, settings.model, &device).unwrap();
        assert_eq!(all_scores(&loaded), all_scores(&embedding));
        assert_eq!((loaded.settings(), loaded.calibration), (embedding.settings(), embedding.calibration));
    }
}

#[test]
fn training_is_the_same_for_any_number_of_threads() {
    let known = known();
    for settings in every_model() {
        let scores = [1, 2].map(|threads| {
            let device = Device::cpu(threads).unwrap();
            all_scores(&train(task(&settings, &known, &device), &Silent).unwrap().embedding)
        });
        assert_eq!(scores[0], scores[1], "{}", settings.model.name());
    }
}

#[test]
fn every_model_learns_what_it_is_shown() {
    let (known, device) = (known(), Device::cpu(1).unwrap());
    let graph = Graph::new(SIZE.entities, SIZE.relations, &known.facts);
    let answers = Adjacency::new(SIZE.entities, &[&known.facts]);
    for settings in every_model() {
        let settings = Settings {
            epochs: 150,
            learning_rate: 0.02,
            dropout_entity: 0.0,
            dropout_relation: 0.0,
            dropout_table: 0.0,
            dropout_hidden: 0.0,
            dropout_feature: 0.0,
            n3: 0.0,
            // With only eleven entities, the usual smoothing would drown the answer.
            label_smoothing: 0.01,
            ..settings
        };
        let stop = Stop::After(settings.epochs);
        let trained = train(Task { stop, ..task(&settings, &known, &device) }, &Silent).unwrap();
        let truth = Truth { graph: &graph, answers: &answers };
        let figures = evaluate(&trained.embedding, &known.facts, truth, Protocol::default(), &Silent)
            .unwrap()
            .figures();
        // A symmetric model cannot tell the next entity of the ring from the one before.
        let symmetric = settings.model == ModelKind::DistMult;
        let (bar, soft_bar) = if symmetric { (0.7, 0.4) } else { (0.9, 0.7) };
        assert!(figures.mrr > bar, "{} {:?}: {figures:?}", settings.model.name(), settings.loss);
        assert_eq!((trained.summary.epochs, trained.summary.valid), (settings.epochs, None));
        // The soft reward tells facts from non-facts.
        let list = |values: Vec<u32>| Indices::new(&device, &values).unwrap();
        let soft = |shift: u32| -> f32 {
            let queries: Vec<Query> =
                known.facts.iter().map(|&fact| Query::of(fact, Direction::Forward).0).collect();
            let f = trained.embedding.plausibility(
                &list(known.facts.iter().map(|t| t.head.0).collect()),
                &list(known.facts.iter().map(|t| Link::forward(t.relation).0).collect()),
                &list(known.facts.iter().map(|t| (t.tail.0 + shift) % SIZE.entities as u32).collect()),
                &trained.embedding.logsumexp(&queries).unwrap(),
            );
            f.unwrap().to_vec().unwrap().iter().sum::<f32>() / known.facts.len() as f32
        };
        assert!(soft(0) > soft_bar && soft(4) < 0.3, "{}: {} {}", settings.model.name(), soft(0), soft(4));
    }
}

/// Interrupts after it has been polled this many times.
struct StopsAfter(AtomicUsize);

impl Progress for StopsAfter {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {}
    fn end(&self, _: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

/// Its time is up after this many steps.
struct TimeFor(AtomicUsize);

impl Progress for TimeFor {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1))).ok();
    }
    fn end(&self, _: &dyn Display) {}
    fn time_is_up(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn a_training_whose_time_is_up_is_finished_with_the_best_it_has() {
    let (known, device) = (known(), Device::cpu(1).unwrap());
    for settings in every_model() {
        let whole = train(task(&settings, &known, &device), &Silent).unwrap();
        for steps in [0, 1, 7] {
            let time = TimeFor(AtomicUsize::new(steps));
            let trained = train(task(&settings, &known, &device), &time).unwrap();
            assert!(trained.summary.epochs < whole.summary.epochs, "{}", settings.model.name());
            assert!(trained.summary.valid.is_some(), "it looks at the validation split once more");
        }
        let plenty = train(task(&settings, &known, &device), &TimeFor(AtomicUsize::new(1 << 20))).unwrap();
        assert_eq!(all_scores(&plenty.embedding), all_scores(&whole.embedding));
    }
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_numbers() {
    let (known, device) = (known(), Device::cpu(1).unwrap());
    for settings in every_model() {
        let whole_folder = tempfile::tempdir().unwrap();
        let whole = Task { folder: Some(whole_folder.path()), ..task(&settings, &known, &device) };
        let curves = |folder: &tempfile::TempDir| folder.path().join("metrics.jsonl");
        let whole = train(whole, &Recording::new(&curves(&whole_folder), &Silent)).unwrap();
        // Interrupted again and again, in the middle of epochs and of validations.
        let folder = tempfile::tempdir().unwrap();
        let mut stops = 0;
        let pieces = loop {
            let piece = Task { folder: Some(folder.path()), ..task(&settings, &known, &device) };
            let stops_soon = StopsAfter(AtomicUsize::new(5));
            match train(piece, &Recording::new(&curves(&folder), &stops_soon)) {
                Ok(trained) => break trained,
                Err(NetworkError::Train(TrainError::Interrupted { .. })) => stops += 1,
                Err(error) => panic!("{error}"),
            }
        };
        assert!(stops >= 3, "{stops}");
        assert_eq!(all_scores(&pieces.embedding), all_scores(&whole.embedding), "{}", settings.model.name());
        assert_eq!(pieces.summary.best_epoch, whole.summary.best_epoch);
        let told = |folder: &tempfile::TempDir| -> Vec<Metric> {
            let metrics = read_curves(&curves(folder)).unwrap().into_iter();
            metrics.map(|metric| Metric { seconds: 0.0, ..metric }).collect()
        };
        let (whole, pieces) = (told(&whole_folder), told(&folder));
        assert_eq!(whole.len(), settings.epochs);
        assert_eq!(whole, pieces, "no record is lost, repeated or different");
        // The checkpoint stays until the caller says that the result is stored elsewhere.
        assert!(folder.path().join("checkpoint.safetensors").exists());
        forget(folder.path());
        assert!(!folder.path().join("checkpoint.safetensors").exists());
    }
}

#[test]
fn the_number_of_epochs_is_looked_for_once() {
    let (known, device, folder) = (known(), Device::cpu(1).unwrap(), tempfile::tempdir().unwrap());
    let settings = &every_model()[2];
    let task = Task { folder: Some(folder.path()), ..task(settings, &known, &device) };
    let wanted = epochs_wanted(task, &Silent).unwrap();
    assert!((1..=settings.epochs).contains(&wanted));
    let stopped = || StopsAfter(AtomicUsize::new(0));
    assert_eq!(epochs_wanted(task, &stopped()).unwrap(), wanted);
    let other = epochs_wanted(Task { seed: task.seed + 1, ..task }, &stopped());
    assert!(matches!(other, Err(NetworkError::Train(TrainError::Interrupted { .. }))));
}

#[test]
fn a_checkpoint_of_another_training_is_refused_by_name() {
    let (known, device) = (known(), Device::cpu(1).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let settings = &every_model()[0];
    let first = Task { folder: Some(folder.path()), ..task(settings, &known, &device) };
    assert!(matches!(
        train(first, &StopsAfter(AtomicUsize::new(3))),
        Err(NetworkError::Train(TrainError::Interrupted { epoch: 1 }))
    ));
    let other = train(Task { seed: 6, ..first }, &Silent).err().unwrap().to_string();
    assert!(other.contains("checkpoint.safetensors: belongs to a training with another seed"), "{other}");
    let changed = Settings { clip: 3.0, ..settings.clone() };
    let other = train(Task { settings: &changed, ..first }, &Silent).err().unwrap().to_string();
    assert!(other.contains("another embed.clip"), "{other}");
}

#[test]
fn training_stops_when_validation_no_longer_gets_better() {
    let (known, device) = (known(), Device::cpu(1).unwrap());
    // Nothing is learnt at this learning rate, so the first validation stays the best.
    let settings = Settings { learning_rate: 1e-12, epochs: 50, patience: 3, ..every_model()[2].clone() };
    let summary = train(task(&settings, &known, &device), &Silent).unwrap().summary;
    assert_eq!((summary.best_epoch, summary.epochs), (2, 8));
    assert!(summary.valid.is_some_and(|figures| figures.queries == 2));
    let none = Known::default();
    assert!(matches!(train(task(&settings, &none, &device), &Silent), Err(NetworkError::NoFacts)));
}

#[test]
fn a_reasoner_keeps_its_scores_within_bounds() {
    let settings = Settings { dimension: 1, ..every_model()[0].clone() };
    for entities in [1, 11, 40_000, 1_000_000] {
        let size = Size { entities, ..SIZE };
        let embedding = Embedding::new(&settings, size, &Device::cpu(1).unwrap(), 7).unwrap();
        let batch = embedding.batch();
        assert!(batch * entities <= SCORES_AT_ONCE, "{batch} queries of {entities} entities");
        // No smaller than necessary: one more query would be too many, or the maximum is reached.
        assert!((batch + 1) * entities > SCORES_AT_ONCE || batch == 512, "{batch} of {entities}");
    }
    let embedding = embedding(&every_model()[0], 1);
    let query = Query { subject: EntityId(1), link: Link::forward(RelationId(0)) };
    let answers = embedding.answer(&vec![query; embedding.batch()]).unwrap();
    assert!(matches!(answers, Answers::Dense { scores, .. } if scores.len() == 512 * SIZE.entities));
}

#[test]
fn what_is_known_to_be_false_should_score_less_than_a_known_answer() {
    let graph = Graph::new(SIZE.entities, SIZE.relations, &known().facts);
    let fact = Triple::new(0, 0, 5);
    for mut settings in every_model().into_iter().filter(|settings| settings.model != ModelKind::ConvE) {
        settings.dropout_relation = 0.0;
        settings.dropout_entity = 0.0;
        settings.dropout_hidden = 0.0;
        let embedding = embedding(&settings, 1);
        let device = embedding.device().clone();
        let list = |values: &[u32]| Indices::new(&device, values).unwrap();
        let labels = Labels { rows: list(&[1]), segments: Segments::from_lengths(&device, [1]).unwrap() };
        let batch = Batch { subjects: list(&[0]), links: list(&[3]), labels, sample: None };
        let loss_of = |negatives: &[Triple]| {
            let mut tape = Tape::training(&embedding.parameters, 3);
            let denied = Denied::new(&graph, negatives);
            let loss = denied.loss(embedding.model.as_ref(), &mut tape, &device, &batch, 0).unwrap()?;
            Some(f64::from(tape.value(loss).number().unwrap()))
        };
        let query = Query { subject: fact.head, link: Link::forward(fact.relation) };
        let scores = embedding.scores(&[query]).unwrap().to_vec().unwrap();
        let answer = graph.targets(query.subject, query.link)[0];
        let above = f64::from(scores[fact.tail.index()] - scores[answer.index()]);
        let loss = loss_of(&[fact]).unwrap();
        assert!((loss - above.exp().ln_1p()).abs() < 1e-4, "{:?}: {loss} {above}", settings.model);
        assert_eq!(loss_of(&[]), None);
    }
}
