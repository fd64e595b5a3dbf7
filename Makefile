# The commands of the project. `make check` is what CI runs.
.PHONY: run test check bench deny fuzz chaos soak

run: ## the main job, on the built-in demonstration graph
	cargo run --release -- run

test: ## all tests: Rust, pages in a browser, Python
	cargo test --workspace
	python/test.sh

check: ## tests, format, lints, documentation, dependency law
	.ci/run

bench: ## the benchmarks; benches/README.md says what each prints and compares with
	cargo bench

deny: ## licences, advisories and sources of the dependencies (needs cargo-deny)
	cargo deny check

fuzz: ## every fuzz target for FUZZ_SECONDS (60) each; fuzz/README.md says more
	fuzz/run.sh

chaos: ## kills, bit flips, races, limits and HTTP attacks for CHAOS_SECONDS (300), drawn from CHAOS_SEED (1)
	cargo build --release
	tests/chaos/chaos.py --tool target/release/ruleguider --seconds $(or $(CHAOS_SECONDS),300) --seed $(or $(CHAOS_SEED),1)

soak: ## minutes (SOAK_SECONDS, 600) of mixed load on a server over a graph with hubs of 300,000 facts; SOAK_LIVE=1 writes, too
	cargo build --release
	tests/chaos/soak.py --tool target/release/ruleguider --seconds $(or $(SOAK_SECONDS),600) $(if $(SOAK_LIVE),--live)
