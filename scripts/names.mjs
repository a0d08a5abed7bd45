#!/usr/bin/env node
// Names that do not say what they are. Run in the project's root after `npm ci`. Prints, with counts:
// 1. injected constructor members whose name is not the class's in camelCase: ServersService → serversService, DataSource → database,
//    Repository<Release> → releaseRepository, Queue<…> → …queue;
// 2. functions with more than five positional parameters (route handlers and injected constructors apart);
// 3. functions and methods named by a bare participle, preposition, pronoun or vague verb; 4. locals, parameters and members so named.
// `--files a b`: every hit of these files with its line; `--json`; `--max N`: exits 1 above N hits of 1 to 3.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const ts = createRequire(path.join(process.cwd(), 'package.json'))('typescript');
const PARAMETERS_MAX = 5;
const words = (text) => new Set(text.trim().split(/\s+/));
/** Names that the glossary fixes, whatever the class is called. */
const FIXED = {
  DataSource: 'database',
  EntityManager: 'tx',
  OAuthClientsService: 'oauthClientsService',
  Schedule: 'schedule',
};
/** Injected by Nest or by hand without one of our classes. */
const BUILT_IN = words(
  'string number boolean unknown any object Map Set Array ReadonlyMap ReadonlySet Buffer Promise Record Partial Extract Date Function Observable',
);
/** A function named by one of these says neither its object nor its event. */
const FUNCTION_WORDS = words(`
  ended answered asked told held known found given seen shown named left listed refused replaced traced marked loaded resumed typed resolved abandoned narrowed
  bounded recorded written required checked authorized parsed quoted escaped detached registered started lost broke lowered counted compared merged stored chosen
  decoded masked hashed kept used sent noticed paired announced watched hidden gathered taken made observed located repaired renewed
  of at over away now all own each both only once together alone short plain to below through within without with after anywhere always me may can others whose
  aside words sentence sentences texts place thing outlives opens lacks knows wants whole lacking resting busy
  end cut leave take keep lose tell ask answer enter hold learn suspect hurry hasten obey judge greet rescue beat`);
/** A local named by one of these hides what it holds. */
const LOCAL_WORDS = words(`
  known found given held asked told seen said mine own what who whom whose why one others ours theirs made left kept taken gone wanted thing things none
  shown named answered whole far odd trouble texts`);

const args = process.argv.slice(2);
const only = args.includes('--files')
  ? args.slice(args.indexOf('--files') + 1).filter((a) => !a.startsWith('--'))
  : null;
const files =
  only ??
  execFileSync('git', ['ls-files', 'src'], { encoding: 'utf8', maxBuffer: 1 << 26 })
    .split('\n')
    .filter((f) => f.endsWith('.ts') && !f.endsWith('.spec.ts'));
const hits = { members: [], parameters: [], functions: [], locals: [] };
const seen = { members: 0, functions: 0 };

const camel = (name) =>
  name.replace(/^OAuth/, 'Oauth').replace(/^[A-Z]+(?=[A-Z][a-z])|^[A-Z]/, (head) => head.toLowerCase());
/** The class that a type names; null for values, functions and built-in types. */
function classOf(type) {
  if (!type) return null;
  if (ts.isUnionTypeNode(type)) return type.types.map(classOf).find(Boolean) ?? null;
  if (!ts.isTypeReferenceNode(type)) return null;
  const name = type.typeName.getText();
  if (['Pick', 'Omit', 'Readonly'].includes(name)) return classOf(type.typeArguments?.[0]);
  return BUILT_IN.has(name) || !/^[A-Z]/.test(name)
    ? null
    : { name, argument: type.typeArguments?.[0]?.getText() ?? '' };
}
function expectedName({ name, argument }, actual) {
  if (name === 'Repository') return `${camel(argument)}Repository`;
  if (name === 'Queue') return /queue$/i.test(actual) ? actual : 'queue';
  return FIXED[name] ?? camel(name);
}
const decorators = (node) =>
  ((ts.canHaveDecorators(node) && ts.getDecorators(node)) || []).map(({ expression }) =>
    (ts.isCallExpression(expression) ? expression.expression : expression).getText(),
  );
const isDecorated = (node) => decorators(node).length > 0;
const isInjected = (node) =>
  decorators(node).some((name) =>
    /^(?:Injectable|\w*Controller|Processor|WebSocketGateway|Catch|Module|Global)$/.test(name),
  );

for (const file of files) {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const at = (node, more) => ({
    file,
    line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1,
    ...more,
  });
  const visit = (node) => {
    if (ts.isConstructorDeclaration(node) && isInjected(node.parent)) {
      for (const parameter of node.parameters) {
        const type = ts.isIdentifier(parameter.name) ? classOf(parameter.type) : null;
        if (!type) continue;
        seen.members += 1;
        const name = parameter.name.text;
        const expected = expectedName(type, name);
        if (name !== expected)
          hits.members.push(at(parameter, { name, type: parameter.type.getText(source), expected }));
      }
    }
    const isFunction =
      ts.isFunctionDeclaration(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isArrowFunction(node) ||
      ts.isFunctionExpression(node) ||
      ts.isGetAccessor(node) ||
      (ts.isConstructorDeclaration(node) && !isInjected(node.parent));
    if (isFunction && node.body) {
      const name =
        node.name?.getText(source) ??
        (ts.isVariableDeclaration(node.parent)
          ? node.parent.name.getText(source)
          : ts.isConstructorDeclaration(node)
            ? `new ${node.parent.name?.text}`
            : '(function)');
      if (!ts.isArrowFunction(node)) seen.functions += 1;
      if (node.parameters.length > PARAMETERS_MAX && !node.parameters.some(isDecorated))
        hits.parameters.push(at(node, { name, count: node.parameters.length }));
      if (FUNCTION_WORDS.has(name)) hits.functions.push(at(node, { name }));
    }
    const isLocal =
      ts.isVariableDeclaration(node) ||
      ts.isParameter(node) ||
      ts.isBindingElement(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isPropertySignature(node);
    const isHolder =
      isLocal && !(ts.isVariableDeclaration(node) && node.initializer && ts.isArrowFunction(node.initializer));
    if (isHolder && ts.isIdentifier(node.name) && LOCAL_WORDS.has(node.name.text))
      hits.locals.push(at(node, { name: node.name.text }));
    ts.forEachChild(node, visit);
  };
  visit(source);
}

const group = (list, key) =>
  [...list.reduce((map, hit) => map.set(key(hit), (map.get(key(hit)) ?? 0) + 1), new Map())].sort(
    (a, b) => b[1] - a[1],
  );
const total = hits.members.length + hits.parameters.length + hits.functions.length;
const figures = {
  injectedMembers: seen.members,
  membersMisnamed: hits.members.length,
  functions: seen.functions,
  functionsOver5Parameters: hits.parameters.length,
  functionsBareName: hits.functions.length,
  localsBareName: hits.locals.length,
  total,
};
if (args.includes('--json')) console.log(JSON.stringify({ figures, hits }, null, 1));
else if (only) {
  for (const { file, line, name, type, expected } of hits.members)
    console.log(`${file}:${line} ${name}: ${type} → ${expected}`);
  for (const { file, line, name, count } of hits.parameters)
    console.log(`${file}:${line} ${name} takes ${count} positional parameters: take an object`);
  for (const { file, line, name } of [...hits.functions, ...hits.locals])
    console.log(`${file}:${line} ${name}: name the object or the event`);
} else {
  const members = group(hits.members, ({ type, expected }) => `${type} → ${expected}`);
  console.log('injected members');
  for (const [name, count] of members)
    console.log(
      `${String(count).padStart(4)}  ${name}  (now ${group(
        hits.members.filter(({ type, expected }) => `${type} → ${expected}` === name),
        (h) => h.name,
      )
        .map(([n, c]) => `${n} ${c}`)
        .join(', ')})`,
    );
  console.log('\nmore than five parameters');
  for (const { file, line, name, count } of hits.parameters.sort((a, b) => b.count - a.count))
    console.log(`${String(count).padStart(4)}  ${name}  ${file}:${line}`);
  console.log(
    `\nbare functions\n  ${group(hits.functions, (h) => h.name)
      .map(([n, c]) => `${n} ${c}`)
      .join(', ')}`,
  );
  console.log(
    `\nbare locals and members\n  ${group(hits.locals, (h) => h.name)
      .map(([n, c]) => `${n} ${c}`)
      .join(', ')}`,
  );
  console.table(figures);
}
if (args.includes('--max') && total > Number(args[args.indexOf('--max') + 1])) process.exitCode = 1;
