import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';

import { isLong } from '../scripts/lib.mjs';
import { loadRequirements, type Requirement } from './requirements.js';

/** Citations of requirements in one test file. `problems` are complete sentences with file and line. */
interface Scan {
  cited: { id: string; at: string; isLong: boolean }[];
  problems: string[];
}

const root = path.resolve(import.meta.dirname, '..');
const testFile = /\.(spec|e2e-spec)\.ts$/;
const runners = new Set(['it', 'longIt', 'test', 'describe', 'verifies', 'longVerifies']);
const citing = /^(v|longV)erifies$/;
const switchedOff = new Set(['skip', 'only', 'todo', 'failing']);
const prefixedForms = new Set(['xit', 'fit', 'xtest', 'xdescribe', 'fdescribe']);

/** Reads a test file as a syntax tree, so that ids in comments and other strings do not count. */
function scan(fileName: string, text: string): Scan {
  const source = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);
  const result: Scan = { cited: [], problems: [] };
  const at = (node: ts.Node): string =>
    `${fileName}:${source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1}`;

  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && citing.test(node.expression.text)) {
      const [first] = node.arguments;
      const isLongTest = isLong(path.join(root, fileName)) || node.expression.text === 'longVerifies';
      const ids = first !== undefined && ts.isArrayLiteralExpression(first) ? first.elements : [first];
      if (ids.length === 0) result.problems.push(`${at(node)} verifies no id.`);
      for (const id of ids) {
        if (id !== undefined && ts.isStringLiteralLike(id))
          result.cited.push({ id: id.text, at: at(id), isLong: isLongTest });
        else result.problems.push(`${at(node)} gives verifies an id that is not a string literal.`);
      }
    }
    const off = switchedOffTest(node);
    if (off !== undefined) result.problems.push(`${at(node)} uses ${off}.`);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return result;
}

/** The switched-off or exclusive form that this node is (`it.skip`, `describe.only.each`, `xit`), if it is one. */
function switchedOffTest(node: ts.Node): string | undefined {
  if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && prefixedForms.has(node.expression.text)) {
    return node.expression.text;
  }
  let member: string | undefined;
  if (ts.isPropertyAccessExpression(node)) member = node.name.text;
  else if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression)) {
    member = node.argumentExpression.text;
  } else return undefined;
  if (!switchedOff.has(member)) return undefined;

  let base: ts.Expression = node.expression;
  while (ts.isPropertyAccessExpression(base)) base = base.expression;
  return ts.isIdentifier(base) && runners.has(base.text) ? `${base.text}.${member}` : undefined;
}

/** All faults of these citations against these requirements, sorted, one line each. */
function faults(required: Record<string, Requirement>, scans: Scan[]): string[] {
  const cited = scans.flatMap((one) => one.cited);
  const ids = new Set(cited.map(({ id }) => id));
  const ofEveryRun = new Set(cited.filter((one) => !one.isLong).map(({ id }) => id));
  const found = scans.flatMap((one) => one.problems);
  for (const { id, at } of cited) {
    const requirement = Object.hasOwn(required, id) ? required[id] : undefined;
    if (requirement === undefined) found.push(`${at} verifies the unknown id ${id}.`);
    else if (requirement.pending) found.push(`${at} verifies ${id}, which must no longer be pending.`);
  }
  for (const [id, { pending, behavior, isLong = false }] of Object.entries(required)) {
    if (pending) continue;
    if (!ids.has(id)) found.push(`${id} has no test: ${behavior}`);
    else if (isLong === ofEveryRun.has(id))
      found.push(`${id} ${isLong ? 'has a test' : 'has no test'} that \`npm test\` runs.`);
  }
  return found.sort();
}

function testFiles(): string[] {
  return ['src', 'test'].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => testFile.test(name))
      .map((name) => path.posix.join(folder, name.split(path.sep).join('/'))),
  );
}

describe('requirements', () => {
  let chapters: Record<string, Requirement>[];
  let requirements: Record<string, Requirement>;

  beforeAll(async () => {
    chapters = await loadRequirements();
    requirements = Object.assign({}, ...chapters);
  });

  it('have a test each, unless pending, and every cited id exists', () => {
    const scans = testFiles().map((name) => scan(name, readFileSync(path.join(root, name), 'utf8')));
    const found = faults(requirements, scans);
    if (found.length > 0) throw new Error(`${found.length} faults:\n${found.join('\n')}`);
  });

  it('have one id each across all files, and every behavior is a sentence of its own', () => {
    const ids = chapters.flatMap((chapter) => Object.keys(chapter));
    const behaviors = Object.values(requirements).map(({ behavior }) => behavior);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(behaviors.filter((behavior, index) => behaviors.indexOf(behavior) !== index)).toEqual([]);
    expect(behaviors.filter((behavior) => !behavior.endsWith('.'))).toEqual([]);
    expect(Object.keys(requirements)).toHaveLength(ids.length);
  });
});

describe('the gate', () => {
  const required: Record<string, Requirement> = {
    'a:done': { source: 'House', behavior: 'Done.' },
    'b:open': { source: 'House', behavior: 'Open.' },
    'c:later': { source: 'House', behavior: 'Later.', pending: 'hosting' },
  };

  it('counts only calls, not comments and not strings', () => {
    const text = "// verifies('b:open', 'x', f)\nconst s = \"verifies('b:open')\";\nverifies('a:done', 'x', f);";
    expect(faults(required, [scan('x.spec.ts', text)])).toEqual(['b:open has no test: Open.']);
  });

  it('wants a test in `npm test`, unless the requirement is marked as long', () => {
    const text = "longVerifies(['a:done', 'b:open'], 'x', f);";
    const marked = { 'a:done': { ...required['a:done'], isLong: true as const }, 'b:open': required['b:open'] };
    expect(faults(marked, [scan('x.e2e-spec.ts', text)])).toEqual(['b:open has no test that `npm test` runs.']);
    expect(faults(marked, [scan('test/long/x.e2e-spec.ts', text.replace('longV', 'v'))])).toHaveLength(1);
    expect(faults(marked, [scan('x.e2e-spec.ts', text.replace('longV', 'v'))])).toEqual([
      'a:done has a test that `npm test` runs.',
    ]);
  });

  it('names unknown ids, pending ids with a test, and ids it cannot read', () => {
    const text =
      "verifies(['a:done', 'b:open', 'c:later', 'toString'], 'x', f);\nverifies(id, 'y', f);\nverifies([], 'z', f);";
    expect(faults(required, [scan('x.spec.ts', text)])).toEqual([
      'x.spec.ts:1 verifies c:later, which must no longer be pending.',
      'x.spec.ts:1 verifies the unknown id toString.',
      'x.spec.ts:2 gives verifies an id that is not a string literal.',
      'x.spec.ts:3 verifies no id.',
    ]);
  });

  it.each(['it.skip', 'test.only', 'describe.skip.each', 'it.todo', "it['only']", 'xit', 'fdescribe'])(
    'finds %s',
    (form) => {
      expect(scan('x.spec.ts', `${form}('name', f);`).problems).toHaveLength(1);
    },
  );

  it('leaves other members named like that alone', () => {
    expect(scan('x.spec.ts', 'query.skip(1); list.only(); it.each([1])("n", f);').problems).toEqual([]);
  });
});
