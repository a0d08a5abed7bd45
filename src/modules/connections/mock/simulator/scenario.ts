import { isObject } from '../../../../platform/text/json.js';
import { plainName, singular, wordsOf } from './names.js';
import { failureOf, type FailureRule } from './scenario-failures.js';
import { cardinal, clausesOf, tokensOf, type Token } from './scenario-text.js';
import { choicesOf, mergedSchema } from './schema-parts.js';
import type { KindModel, ServerModel } from './server-model.js';
import type { Item } from './simulator.js';
import { ownValue } from './thing-keeper.js';

/** Things of one kind that a scenario may ask for at once, and in all. */
const COUNT_MAX = 200;
const THINGS_MAX = 1_000;

/** Without a word about them there are so many of each kind. */
const USUAL_COUNT = 3;

/** What a scenario's text says, as far as it is understood. */
export interface Scenario {
  /** What is there in the beginning: for each kind, what is said of each thing. */
  things: ReadonlyMap<string, readonly Item[]>;
  failures: readonly FailureRule[];
}

/**
 * Reads a scenario. The README says what is understood: counts, names, states, emptiness and failures, each about things
 * and tools the server has. Everything else is passed over. The same text is read the same way each time.
 */
export function parseScenario(text: string, model: ServerModel): Scenario {
  return new ScenarioReader(model).read(text);
}

/** Things that were spoken of together. */
interface Group {
  kind: KindModel;
  things: Item[];
}

const NAMING = new Set(['called', 'named', 'titled', 'entitled']);
const IS = new Set(['is', 'are', 'was', 'were']);
const PLAIN = new Set([
  'existing',
  'different',
  'sample',
  'new',
  'other',
  'more',
  'some',
  'the',
  'a',
  'an',
  'single',
  'only',
  'already',
  'just',
  'exactly',
]);

/** What people call things that tools may call otherwise. */
const synonyms: Record<string, string[]> = {
  repository: ['repo'],
  repo: ['repository'],
  pr: ['pull_request'],
  folder: ['directory'],
  directory: ['folder'],
  todo: ['task', 'to_do'],
  task: ['todo'],
  doc: ['document'],
  org: ['organization'],
  organisation: ['organization', 'org'],
  organization: ['org'],
  mail: ['email', 'message'],
};

class ScenarioReader {
  private readonly things = new Map<string, Item[]>();
  private readonly failures: FailureRule[] = [];
  private isEmpty = false;
  private last: Group | null = null;
  /** Those of the last group that no state was given yet. */
  private rest: Item[] = [];

  constructor(private readonly model: ServerModel) {}

  read(text: string): Scenario {
    for (const clause of clausesOf(text)) this.clause(clause);
    for (const [kind, { firstState }] of this.model.kinds) {
      for (const thing of this.things.get(kind) ?? []) Object.assign(thing, { ...firstState, ...thing });
      if (!this.things.has(kind))
        this.things.set(kind, this.isEmpty ? [] : Array.from({ length: USUAL_COUNT }, () => ({})));
    }
    return { things: this.things, failures: this.failures };
  }

  private clause(clause: string): void {
    const failure = failureOf(clause, this.model);
    if (failure) {
      this.failures.push(failure);
      return;
    }
    if (
      /\b(empty|nothing exists|no data|nothing there|starts? clean|blank)\b/i.test(clause) &&
      !/\bnot empty\b/i.test(clause)
    ) {
      this.isEmpty = true;
    }
    const tokens = tokensOf(clause);
    for (let at = 0; at < tokens.length;) {
      at = this.mention(tokens, at) ?? this.groupState(tokens, at) ?? this.namedState(tokens, at) ?? at + 1;
    }
  }

  /** `3 open issues`, `a repo called acme/site`, `users Alice and Bob`. @returns where it ends */
  private mention(tokens: Token[], start: number): number | null {
    let at = start;
    const count = tokens[at]?.isQuoted ? null : cardinal(tokens[at]?.text ?? '');
    if (count !== null) at += 1;
    const adjectives: string[] = [];
    let found = this.kindAt(tokens, at);
    while (!found && count !== null && adjectives.length < 3 && isWord(tokens[at])) {
      adjectives.push(tokens[at].text);
      at += 1;
      found = this.kindAt(tokens, at);
    }
    if (!found) return null;
    at = found.end;
    const names = this.namesAt(tokens, at, count !== null);
    if (count === null && names.names.length === 0) return null;
    const states = adjectives.filter((word) => !PLAIN.has(word.toLowerCase()));
    this.add(
      found.kind,
      count,
      names.names,
      states.map((word) => stateFor(found.kind, word)),
    );
    return this.properties(tokens, this.ownState(tokens, names.end));
  }

  /** The kind that one to three words name. */
  private kindAt(tokens: Token[], at: number): { kind: KindModel; end: number } | null {
    for (const length of [3, 2, 1]) {
      const part = tokens.slice(at, at + length);
      if (part.length < length || !part.every(isWord)) continue;
      const words = part.flatMap(({ text }) => wordsOf(text));
      const last = words.at(-1);
      if (last === undefined) continue;
      const name = [...words.slice(0, -1), singular(last)].join('_');
      const kind = [name, ...(Object.hasOwn(synonyms, name) ? synonyms[name] : [])]
        .map((one) => this.model.kinds.get(one))
        .find((one) => one !== undefined);
      if (kind) return { kind, end: at + length };
    }
    return null;
  }

  private namesAt(tokens: Token[], start: number, isCounted: boolean): { names: string[]; end: number } {
    let at = start;
    const isNaming = NAMING.has(tokens[at]?.text.toLowerCase() ?? '');
    if (isNaming) at += 1;
    const isName = (token: Token | undefined) =>
      token !== undefined && (isNaming ? isAnyName(token) : looksLikeName(token));
    const names: string[] = [];
    let end = isNaming ? at : start;
    while (isName(tokens[at])) {
      // "two users, one issue": a number behind a count begins something new.
      if (isCounted && !isNaming && /^\d+$/.test(tokens[at]?.text ?? '')) break;
      names.push(tokens[at].text.replace(/^#(?=\d)/, ''));
      at += 1;
      end = at;
      while (/^(,|and)$/i.test(tokens[at]?.text ?? '')) at += 1;
      if (at === end || this.kindAt(tokens, at) || cardinal(tokens[at]?.text ?? '') !== null) break;
    }
    return { names, end };
  }

  private add(kind: KindModel, count: number | null, names: string[], states: Item[]): void {
    const list = this.things.get(kind.kind) ?? [];
    const room = THINGS_MAX - [...this.things.values()].reduce((sum, one) => sum + one.length, 0);
    const wanted = Math.min(Math.max(count ?? 1, names.length), COUNT_MAX, room);
    const state = Object.assign({}, ...states) as Item;
    const things = Array.from({ length: wanted }, (_none, at) => ({ ...named(kind, names[at]), ...state }));
    this.things.set(kind.kind, [...list, ...things]);
    this.last = { kind, things };
    this.rest = [...things];
  }

  /** `… that are open`, `… is closed`, right behind what it is about. */
  private ownState(tokens: Token[], start: number): number {
    let at = start;
    if (/^(that|which|who|,)$/i.test(tokens[at]?.text ?? '')) at += 1;
    if (!IS.has(tokens[at]?.text.toLowerCase() ?? '')) return start;
    return this.setState(tokens, at + 1, this.last?.things ?? []) ?? start;
  }

  /** `with priority high and assignee "Alice"`. */
  private properties(tokens: Token[], start: number): number {
    let at = start;
    while (this.last && /^(with|and|,)$/i.test(tokens[at]?.text ?? '')) {
      const [name, value] = [tokens[at + 1], tokens[at + 2]];
      if (!name || !value || name.isQuoted || this.kindAt(tokens, at + 1)) return at;
      const isKnown = ownValue(this.last.kind.properties, name.text) !== undefined;
      if (!isKnown && !/^(id|name|title)$/i.test(name.text)) return at;
      for (const thing of this.last.things)
        Object.assign(thing, { [name.text]: valueOf(this.last.kind, name.text, value) });
      at += 3;
    }
    return at;
  }

  /** `two are closed`, `the others are open`: of those spoken of last. */
  private groupState(tokens: Token[], start: number): number | null {
    let at = start;
    if (!this.last || tokens[at]?.isQuoted) return null;
    while (/^(of|the|them|these|and|,)$/i.test(tokens[at]?.text ?? '')) at += 1;
    const word = tokens[at]?.text.toLowerCase() ?? '';
    const isAll = /^(all|both|they|it|everything)$/.test(word);
    const isRest = /^(others|other|rest|remaining)$/.test(word);
    const count = cardinal(word);
    if (!isAll && !isRest && count === null) return null;
    at += 1;
    while (/^(of|the|them|these|ones?)$/i.test(tokens[at]?.text ?? '')) at += 1;
    if (!IS.has(tokens[at]?.text.toLowerCase() ?? '')) return null;
    const meant = isAll ? this.last.things : this.rest.slice(0, isRest ? undefined : (count ?? 0));
    return this.setState(tokens, at + 1, meant);
  }

  /** `Alice is an admin`, `"Login fails" is closed`. */
  private namedState(tokens: Token[], start: number): number | null {
    const name = plainName(tokens[start]?.text ?? '');
    if (name === '' || !IS.has(tokens[start + 1]?.text.toLowerCase() ?? '')) return null;
    for (const [kind, things] of this.things) {
      const model = this.model.kinds.get(kind);
      const thing = model && things.find((one) => nameOf(model, one) === name);
      if (!model || !thing) continue;
      this.last = { kind: model, things };
      return this.setState(tokens, start + 2, [thing]);
    }
    return null;
  }

  private setState(tokens: Token[], start: number, things: Item[]): number | null {
    let at = start;
    while (/^(a|an|the|still|already|now|currently)$/i.test(tokens[at]?.text ?? '')) at += 1;
    const word = tokens[at];
    if (!word || !this.last || word.text === ',') return null;
    for (const thing of things) Object.assign(thing, stateFor(this.last.kind, word.text));
    this.rest = this.rest.filter((thing) => !things.includes(thing));
    return at + 1;
  }
}

function isWord(token: Token | undefined): boolean {
  return token !== undefined && !token.isQuoted && /^[\p{L}][\p{L}\p{N}_-]*$/u.test(token.text);
}

function looksLikeName({ text, isQuoted }: Token): boolean {
  return isQuoted || /^(#?\d+$|\p{Lu})/u.test(text) || /[\w]\/[\w]|@|\w\.\w/.test(text);
}

function isAnyName({ text, isQuoted }: Token): boolean {
  return isQuoted || /[\p{L}\p{N}]/u.test(text);
}

function nameOf(kind: KindModel, thing: Item): string {
  const name = thing[kind.label] ?? thing.id;
  return typeof name === 'string' || typeof name === 'number' ? plainName(String(name)) : '';
}

/** What a name says of a thing. A number is its id, and `owner/name` tells its owner too. */
function named(kind: KindModel, name: string | undefined): Item {
  if (name === undefined) return {};
  if (/^\d+$/.test(name)) return { id: Number(name) };
  const [owner, ...more] = name.split('/');
  return { [kind.label]: name, ...(more.length === 1 && owner ? { owner, full_name: name } : {}) };
}

/** Where a word stands among the choices of a kind: `closed` is the state, `archived` a flag of its own. */
function stateFor(kind: KindModel, word: string): Item {
  const plain = plainName(word);
  for (const [name, schema] of Object.entries(kind.properties)) {
    const merged = mergedSchema(schema, kind.view.root);
    const choice = choicesOf(merged).find((one) => plainName(one) === plain);
    if (choice !== undefined) return { [name]: choice };
    if (merged.type === 'boolean' && (plainName(name) === plain || plainName(name) === `is${plain}`))
      return { [name]: true };
  }
  const state = Object.keys(kind.properties).find((name) => /^(state|status|role)$/i.test(name));
  return { [state ?? 'state']: word.toLowerCase() };
}

function valueOf(kind: KindModel, name: string, { text, isQuoted }: Token): unknown {
  const schema = ownValue(kind.properties, name);
  const { type } = isObject(schema) ? schema : {};
  if (!isQuoted && /^-?\d+(\.\d+)?$/.test(text) && type !== 'string') return Number(text);
  if (!isQuoted && /^(true|false)$/i.test(text) && type !== 'string') return /^true$/i.test(text);
  return text;
}
