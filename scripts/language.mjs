/**
 * Counts the hits of `english.mjs` (comments, strings, test names, docs) and `names.mjs` (identifiers)
 * for each rule, and compares them with the committed counts of `language.json`. A count can only fall, and a file that
 * `language.json` does not list must have no hit.
 *
 *   node scripts/language.mjs            exits 1 when a count has risen; prints the hits of files that are not listed
 *   node scripts/language.mjs --write    stores lower counts, after a cleanup
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readText, root } from './lib.mjs';

const storedFile = join(root, 'scripts/language.json');
const checkers = ['english', 'names'];

/** Returns the hits of a checker, each with its file, line and rule. */
function hitsOf(checker) {
  const { stdout } = spawnSync(process.execPath, [join(root, `scripts/${checker}.mjs`), '--json'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const { hits } = JSON.parse(stdout);
  const list = Array.isArray(hits)
    ? hits
    : Object.entries(hits).flatMap(([rule, some]) => some.map((hit) => ({ rule, text: hit.name, ...hit })));
  return list.map(({ rule, file, line, text }) => ({ rule: `${checker}:${rule}`, file, line, text }));
}

const countBy = (hits, key) => {
  const counts = new Map();
  for (const hit of hits) counts.set(hit[key], (counts.get(hit[key]) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
};

const hits = checkers.flatMap(hitsOf);
const rules = countBy(hits, 'rule');
const files = Object.keys(countBy(hits, 'file'));
const stored = JSON.parse(readText(storedFile) ?? 'null');

const risen = stored ? Object.keys(rules).filter((rule) => rules[rule] > (stored.rules[rule] ?? 0)) : [];
const unlisted = stored ? files.filter((file) => !stored.files.includes(file)) : [];
for (const rule of risen) console.log(`${rule}: ${rules[rule]} hits, ${stored.rules[rule] ?? 0} are allowed`);
for (const { rule, file, line, text } of hits.filter(({ file }) => unlisted.includes(file))) {
  console.log(`${file}:${line} ${rule}: ${text}`);
}
if (risen.length > 0 || unlisted.length > 0) {
  console.log(
    'Reword what you have added: node scripts/english.mjs --files FILE…, node scripts/names.mjs --files FILE…',
  );
  process.exitCode = 1;
} else if (process.argv.includes('--write')) {
  writeFileSync(storedFile, `${JSON.stringify({ rules, files }, null, 2)}\n`);
}
