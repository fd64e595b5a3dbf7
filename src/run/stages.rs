//! The learning stages: each reads the learnable data and writes files into the run directory.

use super::artifacts::Artifacts;
use super::directory::{BLEND, EMBEDDING, PRETRAINED, PROPAGATOR, RULES, WALKER, write_whole};
use super::material::Material;
use super::mining::Mining;
use super::record::Finished;
use super::{Checksum, RuleChanges, RunError};
use crate::embed::{self, Size, Stop, Task, TrainedEmbedding, WarmEmbedding};
use crate::graph::{GraphError, Known, Query, Renumbering, Triple, evenly};
use crate::propagate::{self, PropagateTask, TrainedPropagator, WarmPropagator};
use crate::reason::{EmbeddingReward, PropagatorReward, Recipe, path_table};
use crate::rule::{self, Confidence, Mined, RuleType};
use crate::train;
use crate::walk::{self, Phase, RewardBy, SoftReward, Start, Teacher, TrainOptions, Walker};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Mines rules and saves them.
///
/// # Errors
/// If mining fails, its file cannot be written, or the user interrupts.
pub fn rules(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Material { seed, directory, progress, .. } = *material;
    let Artifacts { learnable, config, .. } = &*artifacts;
    if !config.rules.file.is_empty() {
        return given_rules(artifacts, material);
    }
    let (options, apply) = (config.rules.mine_options(seed), config.rules.apply_options());
    let mining = Mining {
        graph: &learnable.graph,
        options: &options,
        apply: &apply,
        judged_by: (!learnable.valid_learnt).then_some(&learnable.known),
        longer: config.rules.longer,
        confidence: config.rules.confidence,
    };
    let (Mined { rules: mined, saturation, interrupted }, pca) = mining.mine(progress)?;
    if interrupted {
        return Err(RunError::Interrupted);
    }
    let (rules, changes) = match material.warm {
        Some(warm) => {
            let ids = Renumbering::new(&warm.names, &learnable.names);
            let earlier = warm.rules()?;
            let carried = rule::carry_over(&learnable.graph, mined, &earlier, &ids, (&options, pca));
            let changes = RuleChanges::of(&carried, &learnable.names).in_figures();
            (carried.rules, changes)
        }
        None => (mined, Value::Null),
    };
    write_whole(&directory.file(RULES), |out| rule::write_lines(out, &rules, &learnable.names))?;
    let of_type = |wanted: RuleType| rules.iter().filter(|scored| scored.rule.rule_type() == wanted).count();
    let figures = json!({
        "rules": rules.len(),
        "rules_by_type": {
            "cyclic": of_type(RuleType::Cyclic),
            "acyclic": of_type(RuleType::Acyclic),
            "zero": of_type(RuleType::Zero),
        },
        "saturation": saturation,
        "confidence": if pca { Confidence::Pca } else { Confidence::Standard },
        "changes": changes,
    });
    artifacts.put_rules(rules.into());
    Ok(Finished { files: vec![RULES.to_owned()], figures, seconds: None })
}

/// Takes the rules from the file that the settings name.
fn given_rules(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Artifacts { learnable, config, .. } = &*artifacts;
    let path = Path::new(&config.rules.file);
    let given = rule::RuleFile::read(path, &learnable.names)?;
    if given.rules.is_empty() {
        let expected = "at least one rule about entities and relations of the data";
        return Err(GraphError::file(path, expected, format!("none among {}", given.unknown)).into());
    }
    write_whole(&material.directory.file(RULES), |out| {
        rule::write_lines(out, &given.rules, &learnable.names)
    })?;
    let count = |of: RuleType| given.rules.iter().filter(|scored| scored.rule.rule_type() == of).count();
    let [cyclic, acyclic, zero] = [RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero].map(count);
    let figures = json!({
        "rules": given.rules.len(),
        "rules_by_type": { "cyclic": cyclic, "acyclic": acyclic, "zero": zero },
        "unknown": given.unknown,
    });
    artifacts.put_rules(given.rules.into());
    Ok(Finished { files: vec![RULES.to_owned()], figures, seconds: None })
}

/// Trains the embedding model and saves it; resumes from its checkpoint.
///
/// # Errors
/// If training fails or the user interrupts.
pub fn embeddings(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Material { seed, directory, progress, .. } = *material;
    let Artifacts { learnable, config, device, .. } = &*artifacts;
    let size = Size { entities: learnable.names.entities.len(), relations: learnable.names.relations.len() };
    let folder = material.checkpoints("embeddings")?;
    let earlier = material.warm.and_then(|warm| warm.file(EMBEDDING));
    let key = material.warm.map_or_else(String::new, |warm| warm.stages.to_string());
    let task = Task {
        known: &learnable.tuning,
        size,
        settings: &config.embed,
        stop: Stop::Validation,
        seed,
        device,
        folder: Some(&folder),
        warm: earlier.as_ref().map(|path| WarmEmbedding { path, key: &key, names: &learnable.names }),
    };
    let whole = learnable.valid_learnt.then_some(&learnable.known);
    let TrainedEmbedding { mut embedding, summary } = embed::learn(task, whole, progress)?;
    embedding.save(&directory.file(EMBEDDING), &learnable.names, &[])?;
    train::forget(&folder);
    let figures = serde_json::to_value(&summary).expect("a summary is plain data");
    embedding.settle()?;
    artifacts.put_embedding(embedding);
    Ok(Finished { files: vec![EMBEDDING.to_owned()], figures, seconds: Some(summary.training_seconds) })
}

/// Trains the relation agent alone, on the rewards of rules.
///
/// # Errors
/// If training fails or the user interrupts.
pub fn pretraining(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    Ok(walker(artifacts, material, Phase::Pretrain, PRETRAINED)?.0)
}

/// Trains both agents.
///
/// # Errors
/// If training fails or the user interrupts.
pub fn training(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let (finished, walker) = walker(artifacts, material, Phase::Joint, WALKER)?;
    artifacts.put_walker(walker);
    Ok(finished)
}

fn walker(
    artifacts: &Artifacts,
    material: &Material<'_>,
    phase: Phase,
    file: &str,
) -> Result<(Finished, Walker), RunError> {
    let Material { seed, directory, progress, .. } = *material;
    let Artifacts { learnable, config, device, .. } = artifacts;
    let settings = &config.walk;
    let rules = path_table(artifacts.rules()?, settings.hops, config.rules.threshold);
    // Pre-training uses rules alone, and joint training starts from its weights.
    let goes_on = phase == Phase::Joint && settings.pretrains();
    let starts = settings.start == Start::Embedding && !goes_on;
    let rewards = settings.soft_reward && phase == Phase::Joint;
    let by_embedding = rewards && settings.reward == RewardBy::Embedding;
    let embedding = (starts || by_embedding).then(|| artifacts.embedding()).transpose()?;
    let asked =
        |triples: &[Triple]| -> Vec<Query> { settings.side.asked(triples).map(|(query, _)| query).collect() };
    let reward: Option<Box<dyn SoftReward>> = match embedding.filter(|_| by_embedding) {
        Some(embedding) => Some(Box::new(EmbeddingReward::new(embedding, asked(&learnable.known.queries))?)),
        None if rewards && settings.reward == RewardBy::Propagator => {
            let queries = asked(&learnable.known.queries);
            let reward = PropagatorReward::new(artifacts.propagator()?, queries, progress);
            let reward = reward.map_err(RunError::Reasoner)?;
            Some(Box::new(reward.ok_or(RunError::Interrupted)?))
        }
        None => None,
    };
    let soft = reward.as_deref();
    // A validation split that is learnt from cannot choose anything, so the last epoch is kept.
    let known = match learnable.valid_learnt {
        true => Known { valid: Arc::from([]), ..learnable.known.clone() },
        false => learnable.known.clone(),
    };
    let name = if phase == Phase::Pretrain { "pretraining" } else { "training" };
    let folder = material.checkpoints(name)?;
    let mut walker = Walker::new(settings, &learnable.graph, &known, device, seed)?;
    let earlier = material.warm.and_then(|warm| Some((warm, warm.file(WALKER)?)));
    if let Some((warm, path)) = &earlier {
        let ids = Renumbering::new(&learnable.names, &warm.names);
        walker.take_over(path, ids.entity_rows(), &ids.link_rows())?;
    } else if let Some(embedding) = embedding.filter(|_| starts) {
        walker.start_from(&embedding.entity_vectors(), &embedding.link_vectors(), seed)?;
    }
    if goes_on {
        walker.go_on_from(&directory.file(PRETRAINED))?;
    }
    let teacher = Teacher { rules: &rules, soft };
    let options = TrainOptions { phase, seed, folder: Some(&folder), ..TrainOptions::default() };
    let trained = walk::train(&mut walker, &learnable.graph, &known, teacher, options, progress)?;
    walker.save(&directory.file(file))?;
    if phase == Phase::Pretrain {
        // Only joint training can be extended later; pre-training is finished.
        train::forget(&folder);
    }
    let noted = trained.kept().and_then(|metric| metric.figures.get("rule_share")?.as_f64());
    let share = match noted {
        Some(share) => share,
        None => {
            let some = evenly(&learnable.tuning.valid, settings.validation_queries);
            walker.rule_share(&asked(&some), &rules)?
        }
    };
    let figures = json!({
        "epochs": trained.epochs,
        "best": trained.best.map(|best| json!({ "epoch": best.epoch, "mrr": best.figures.mrr })),
        "parameters": walker.parameter_count(),
        "rule_share": share,
    });
    Ok((Finished { files: vec![file.to_owned()], figures, seconds: Some(trained.step_seconds) }, walker))
}

/// Trains the propagator and saves it; resumes from its checkpoint.
///
/// # Errors
/// If training fails or the user interrupts.
pub fn propagation(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Artifacts { learnable, config, device, .. } = &*artifacts;
    // A validation split that is learnt from cannot choose anything, so the last epoch is kept.
    let known = match learnable.valid_learnt {
        true => Known { valid: Arc::from([]), ..learnable.known.clone() },
        false => learnable.known.clone(),
    };
    let folder = material.checkpoints("propagation")?;
    let earlier = material.warm.and_then(|warm| warm.file(PROPAGATOR));
    let key = material.warm.map_or_else(String::new, |warm| warm.stages.to_string());
    let task = PropagateTask {
        known: &known,
        size: (learnable.names.entities.len(), learnable.names.relations.len()),
        settings: &config.propagate,
        seed: material.seed,
        device,
        folder: Some(&folder),
        warm: earlier.as_ref().map(|path| WarmPropagator { path, key: &key, names: &learnable.names }),
    };
    let TrainedPropagator { propagator, summary, hides_all_links, valid } =
        propagate::train(task, material.progress)?;
    propagator.save(&material.directory.file(PROPAGATOR), &learnable.names)?;
    train::forget(&folder);
    let figures = json!({
        "epochs": summary.epochs,
        "best": summary.best,
        "parameters": propagator.parameters(),
        "hides_all_links": hides_all_links,
        "valid": valid,
    });
    artifacts.put_propagator(propagator);
    Ok(Finished { files: vec![PROPAGATOR.to_owned()], figures, seconds: Some(summary.seconds) })
}

/// Fits the weights of the blend on the validation split.
///
/// # Errors
/// If one of the reasoners fails.
pub fn blending(artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
    let Artifacts { learnable, config, .. } = &*artifacts;
    let directory = material.directory;
    let mut recipe = Recipe::of(config.blended().weights());
    if let Some(text) = material.taken_over(BLEND)? {
        let broken =
            |error| RunError::Broken { path: directory.file(BLEND), what: format!("is damaged ({error})") };
        recipe = serde_json::from_str(&text).map_err(broken)?;
    } else if config.blend.fit && !learnable.valid_learnt {
        let known = &learnable.known;
        let truth = known.answers(learnable.names.entities.len());
        let blend = artifacts.blend(&recipe)?;
        let asked = evenly(&known.valid, config.blend.validation_queries);
        recipe = blend.fit(&asked, &truth, &learnable.names, material.progress)?;
    }
    let text = serde_json::to_vec_pretty(&recipe).expect("weights are plain data");
    directory.write(BLEND, &text)?;
    let figures: Value = serde_json::to_value(recipe.general).expect("weights are plain data");
    artifacts.put_recipe(recipe);
    Ok(Finished { files: vec![BLEND.to_owned()], figures, seconds: None })
}

/// The checksum of the rules that reward a path of the walker.
///
/// # Errors
/// If the rules cannot be read.
pub fn rewarding(artifacts: &Artifacts) -> Result<Checksum, RunError> {
    let Artifacts { config, .. } = artifacts;
    Ok(Checksum::of(&path_table(artifacts.rules()?, config.walk.hops, config.rules.threshold).entries()))
}
