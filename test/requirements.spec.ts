import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';

import { isLong } from '../scripts/lib.mjs';
import { loadRequirements, requirementOf, type Requirement } from './requirements.js';

/** Citations of requirements in one test file. `problems` are complete sentences with file and line. */
interface Scan {
  cited: { id: string; at: string; isLong: boolean }[];
  problems: string[];
}

const root = path.resolve(import.meta.dirname, '..');
const testFile = /\.(spec|e2e-spec)\.ts$/;
const runners = new Set(['it', 'aloneIt', 'longIt', 'test', 'describe', 'verifies', 'aloneVerifies', 'longVerifies']);
const citing = /^(v|aloneV|longV)erifies$/;
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
function faults(required: Requirement[], scans: Scan[]): string[] {
  const cited = scans.flatMap((one) => one.cited);
  const ids = new Set(cited.map(({ id }) => id));
  const ofEveryRun = new Set(cited.filter((one) => !one.isLong).map(({ id }) => id));
  const found = scans.flatMap((one) => one.problems);
  for (const { id, behavior, isLong } of required) {
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

/** Promises of our own that tests name. A commit that withdraws some lowers the number and says which. */
const OWN_PROMISES_MIN = 465;

describe('requirements', () => {
  let requirements: Requirement[];

  beforeAll(async () => {
    requirements = await loadRequirements();
  });

  it('have a test each, and no promise of our own loses its test unnoticed', () => {
    const scans = testFiles().map((name) => scan(name, readFileSync(path.join(root, name), 'utf8')));
    const found = faults(requirements, scans);
    if (found.length > 0) throw new Error(`${found.length} faults:\n${found.join('\n')}`);
    const ofContract = new Set(requirements.map(({ id }) => id));
    const own = new Set(scans.flatMap(({ cited }) => cited.map(({ id }) => id)).filter((id) => !ofContract.has(id)));
    expect(own.size).toBeGreaterThanOrEqual(OWN_PROMISES_MIN);
  });

  it('have one id and one sentence each', () => {
    expect(new Set(requirements.map(({ id }) => id)).size).toBe(requirements.length);
    expect(new Set(requirements.map(({ behavior }) => behavior)).size).toBe(requirements.length);
  });
});

describe('the gate', () => {
  const required = ['a:done | Spec 1.2, Field | Done.', 'b:open | Field | Open.'].map(requirementOf);

  it('counts only calls, not comments and not strings', () => {
    const text = "// verifies('b:open', 'x', f)\nconst s = \"verifies('b:open')\";\nverifies('a:done', 'x', f);";
    expect(faults(required, [scan('x.spec.ts', text)])).toEqual(['b:open has no test: Open.']);
  });

  it('wants a test in `npm test`, unless the requirement is marked as long', () => {
    const text = "longVerifies(['a:done', 'b:open'], 'x', f);";
    const marked = [requirementOf('a:done | Spec 1.2, long | Done.'), required[1]];
    expect(faults(marked, [scan('x.e2e-spec.ts', text)])).toEqual(['b:open has no test that `npm test` runs.']);
    expect(faults(marked, [scan('test/long/x.e2e-spec.ts', text.replace('longV', 'v'))])).toHaveLength(1);
    expect(faults(marked, [scan('x.e2e-spec.ts', text.replace('longV', 'v'))])).toEqual([
      'a:done has a test that `npm test` runs.',
    ]);
  });

  it('names ids it cannot read', () => {
    const text = "verifies(['a:done', 'b:open'], 'x', f);\nverifies(id, 'y', f);\nverifies([], 'z', f);";
    expect(faults(required, [scan('x.spec.ts', text)])).toEqual([
      'x.spec.ts:2 gives verifies an id that is not a string literal.',
      'x.spec.ts:3 verifies no id.',
    ]);
  });

  it('refuses a row of another form', () => {
    expect(() => requirementOf('a:done | House | Done.')).toThrow('id | source | sentence');
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
