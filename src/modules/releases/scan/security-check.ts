/**
 * Checks what a server offers for content that is dangerous or unusable: hidden characters (`hidden-characters.ts`),
 * strings that flood the model's context, tools that can be mistaken for each other, names and schemas that clients
 * reject, schemas with outside references (`schema-lint.ts`).
 *
 * `_meta` and icons are not checked, since models do not see them. A finding never quotes hidden characters verbatim.
 * The meaning of visible text is not judged; `wordWarnings` warns of phrases of known attacks.
 *
 * At most 100 findings, 8 per part. A part that is nested too deeply or makes a check fail is a finding itself, so that
 * nothing passes by breaking the check.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as SdkTypes from '@modelcontextprotocol/sdk/types.js';
import { DEPTH_MAX } from '../../../platform/database/storable.js';
import { lazyRequire } from '../../../platform/lazy-require.js';
import { isObject, isWithinDepth } from '../../../platform/text/json.js';
import { quote, visible } from '../../../platform/text/quoted.js';
import type { ServerWarning } from '../../servers/server.types.js';
import { confusableSkeleton, hiddenCharacters } from './hidden-characters.js';
import { modelInstructions } from './model-instructions.js';
import { schemaIssues } from './schema-lint.js';

const sdk = lazyRequire<typeof SdkTypes>('@modelcontextprotocol/sdk/types.js');

export interface Finding {
  rule:
    | 'hidden-characters'
    | 'oversized-text'
    | 'tool-name'
    | 'name-clash'
    | 'invalid-schema'
    | 'schema-too-large'
    | 'remote-reference'
    | 'refused'
    | 'refused-by-some'
    | 'nested-too-deeply'
    | 'check-failed';
  /** Location such as `tool "search"`, `prompt "review"`, `server info` or `instructions`. */
  where: string;
  /** The message says what was found, why it matters, and what to do. It quotes nothing hidden. */
  message: string;
}

/** Content of a scan or a card. Lists can be null or missing. */
export interface ServerText {
  serverInfo?: unknown;
  instructions?: unknown;
  tools?: unknown;
  prompts?: unknown;
  resources?: unknown;
  resourceTemplates?: unknown;
  /**
   * A live server must give each tool an `inputSchema`: otherwise official clients reject its whole list. Default
   * false.
   */
  requireSchemas?: boolean;
}

export const FINDINGS_MAX = 100;

/** Maximum number of findings of a part: one broken tool must not fill the report. */
const FINDINGS_PER_PART_MAX = 8;

/**
 * Includes strings in schemas. Every client adds all of them to the model's context at every start, whether the tool is
 * used or not; four characters are about one token. Long strings crowd out the tools of other servers, and hide
 * instructions to the model. The longest descriptions of widely used servers have about 11,000.
 */
export const DESCRIPTION_CHARS_MAX = 16_384;

/** Maximum length of instructions, which occur once. */
export const INSTRUCTIONS_CHARS_MAX = 32_768;

/** Maximum length of names and titles, which are shown in lists and buttons. */
export const TITLE_CHARS_MAX = 256;

/**
 * Tool names that clients and model APIs accept. MCP recommends at most 128 letters, digits, `_`, `-` and `.`; `/` is
 * common for groups of tools, and clients replace it.
 */
const TOOL_NAME = /^[A-Za-z0-9_./-]{1,128}$/;

const UNSHOWN = new Set(['_meta', 'icons']);

type Part = Record<string, unknown>;

/** Maximum number of characters in a part. Clients load all of them, and each part is checked without a pause. */
const PART_CHARS_MAX = 512 * 1024;

/** Maximum number of strings in a part, including member names. */
const PART_TEXTS_MAX = 20_000;

/** Time after which other work of the process runs before the next part is checked. */
const SLICE_MS = 10;

/** Yields the parts of a server, with a pause after every 10 ms. */
async function* pacedPartsOf(input: ServerText): AsyncGenerator<Checked> {
  let startedAt = performance.now();
  for (const part of partsOf(input)) {
    yield part;
    if (performance.now() - startedAt < SLICE_MS) continue;
    await nextTurn();
    startedAt = performance.now();
  }
}

/**
 * Checks a server. The promise never rejects.
 *
 * @param except rules to skip
 * @returns at most 100 findings; passed if empty
 */
export async function checkServer(input: ServerText, except: readonly Finding['rule'][] = []): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const part of pacedPartsOf(input)) {
    if (findings.length >= FINDINGS_MAX) break;
    findings.push(...checkPart(part, (rule) => !except.includes(rule)));
  }
  return findings.slice(0, FINDINGS_MAX);
}

/**
 * Warnings do not decide whether a server passes: harmless text can look like an attack, and other words are not
 * recognized.
 *
 * @returns at most 100
 */
export async function wordWarnings(input: ServerText): Promise<ServerWarning[]> {
  const warnings: ServerWarning[] = [];
  for await (const { where, tool, value } of pacedPartsOf(input)) {
    if (!isObject(value) || !isWithinDepth(value, DEPTH_MAX)) continue;
    const exceeds = partBudget();
    for (const textFound of textsOf(value)) {
      if (exceeds(textFound)) break;
      for (const { words, problem } of modelInstructions(textFound.text)) {
        const message = `${where}: ${subjectOf(textFound)} says ${quote(words, 80)}: ${problem}. Read the whole text.`;
        warnings.push({ tool, message });
        if (warnings.length === FINDINGS_MAX) return warnings;
      }
    }
  }
  return warnings;
}

/** Rules about one tool that no client can use or check; its findings must not hide the other tools. */
export const UNUSABLE: readonly Finding['rule'][] = ['invalid-schema', 'remote-reference', 'refused'];

/** Rules about broken tools, including the one for tools that only some clients reject. */
export const BROKEN: readonly Finding['rule'][] = [...UNUSABLE, 'refused-by-some'];

/** Returns warnings in the order of the tools. The promise never rejects. */
export async function toolWarnings(input: ServerText, rules = BROKEN): Promise<ServerWarning[]> {
  const warnings: ServerWarning[] = [];
  for await (const part of pacedPartsOf({ tools: input.tools, requireSchemas: input.requireSchemas })) {
    const findings = checkPart(part, (rule) => rules.includes(rule));
    const message = `${part.where}: ${findings.map((finding) => finding.message).join(' ')}`;
    if (findings.length > 0) warnings.push({ tool: part.tool, message, isBroken: true });
  }
  return warnings;
}

interface Checked {
  where: string;
  /** Null for other parts than tools. */
  tool: string | null;
  value: unknown;
  checks: ((part: Part) => Fault[])[];
}

type Fault = Omit<Finding, 'where'>;

function* partsOf(input: ServerText): Generator<Checked> {
  const checkText = (part: Part) => textFaults(part);
  yield { where: 'server info', tool: null, value: input.serverInfo ?? {}, checks: [checkText] };
  yield { where: 'instructions', tool: null, value: { instructions: input.instructions ?? '' }, checks: [checkText] };
  const clash = clashFaults();
  const isLive = input.requireSchemas ?? false;
  const schemas = (part: Part) => toolSchemaFaults(part, isLive);
  yield* listChecked('tool', input.tools, [nameFaults, clash, checkText, schemas, ...(isLive ? [refusedFaults] : [])]);
  yield* listChecked('prompt', input.prompts, [checkText]);
  yield* listChecked('resource', input.resources, [checkText]);
  yield* listChecked('resource template', input.resourceTemplates, [checkText]);
}

function* listChecked(kind: string, list: unknown, checks: Checked['checks']): Generator<Checked> {
  if (!Array.isArray(list)) return;
  for (const [at, value] of list.entries()) {
    const name = isObject(value) && typeof value.name === 'string' ? value.name : null;
    const where = name === null ? `${kind} number ${at + 1}` : `${kind} ${quote(name)}`;
    yield { where, tool: kind === 'tool' ? name : null, value, checks };
  }
}

/** Returns the first eight findings, for the rules that apply. */
function checkPart({ where, value, checks }: Checked, counts: (rule: Finding['rule']) => boolean): Finding[] {
  const findings: Finding[] = [];
  try {
    if (!isWithinDepth(value, DEPTH_MAX)) {
      const message = `It is nested deeper than ${DEPTH_MAX} levels, which many readers of JSON do not survive: make it flatter.`;
      return counts('nested-too-deeply') ? [{ where, rule: 'nested-too-deeply', message }] : [];
    }
    const part = isObject(value) ? value : { value };
    for (const check of checks) {
      const faults = check(part).filter(({ rule }) => counts(rule));
      findings.push(...faults.slice(0, FINDINGS_PER_PART_MAX).map((fault) => ({ where, ...fault })));
    }
  } catch {
    // A limit of the machine, such as its stack. A part that makes a check fail must not pass it.
    const message = 'It could not be checked: make it smaller and simpler.';
    if (counts('check-failed')) findings.unshift({ where, rule: 'check-failed', message });
  }
  return findings.slice(0, FINDINGS_PER_PART_MAX);
}

function nameFaults({ name }: Part): Fault[] {
  if (typeof name === 'string' && TOOL_NAME.test(name)) return [];
  const message =
    'Its name is not 1 to 128 letters, digits, "_", "-", "." and "/": clients and model APIs refuse such a tool, ' +
    'often with all others of the server. Rename it.';
  return [{ rule: 'tool-name', message }];
}

/** Returns a check that compares each tool with all previous ones. */
function clashFaults(): (part: Part) => Fault[] {
  const exact = new Set<string>();
  const folded = new Map<string, string>();
  return ({ name }) => {
    if (typeof name !== 'string' || name.length > TITLE_CHARS_MAX) return [];
    const fold = confusableSkeleton(name);
    const other = folded.get(fold);
    const isTwice = exact.has(name);
    exact.add(name);
    if (other === undefined) folded.set(fold, name);
    if (isTwice) {
      const message =
        'Another tool has the same name: which of the two a call reaches is up to the client. Rename one.';
      return [{ rule: 'name-clash', message }];
    }
    if (other === undefined) return [];
    const message =
      `Its name reads like that of tool ${quote(other)}: clients and people take one for the other, ` +
      'so that a call may reach the wrong tool. Rename one.';
    return [{ rule: 'name-clash', message }];
  };
}

function toolSchemaFaults(tool: Part, isRequired: boolean): Fault[] {
  const faults: Fault[] = [];
  for (const member of ['inputSchema', 'outputSchema']) {
    const schema = tool[member];
    if (schema === undefined || schema === null) {
      if (member === 'outputSchema' || !isRequired) continue;
      const message =
        'It has no inputSchema, and clients refuse the whole list for it. Give it one, {"type": "object"} if it takes nothing.';
      faults.push({ rule: 'invalid-schema', message });
      continue;
    }
    if (member === 'inputSchema' && isObject(schema) && schema.type !== 'object') {
      const message =
        'Its inputSchema has not "type": "object" at its root: arguments are always an object, and clients refuse other tools. Add it.';
      faults.push({ rule: 'invalid-schema', message });
    }
    faults.push(...schemaIssues(schema).map(({ rule, text }) => ({ rule, message: `Its ${member} ${text}.` })));
  }
  return faults;
}

/**
 * Returns what clients would reject, by version 1 of the SDK. Clients of 2026-07-28 accept more in schemas and `execution`.
 * {@link toolSchemaFaults} reports missing schemas and types.
 */
function refusedFaults(tool: Part): Fault[] {
  // {@link textFaults} reports a larger one. The library creates an issue for every member.
  const exceeds = partBudget();
  for (const textFound of textsOf(tool)) if (exceeds(textFound)) return [];
  const issues = sdk().ToolSchema.safeParse(tool).error?.issues ?? [];
  const refused = new Map(issues.map(({ path, message }) => [path.join('.'), { message, part: path[0] }]));
  return [...refused].flatMap(([path, { message, part }]): Fault[] => {
    if (part === 'name' || path === 'inputSchema' || path === 'inputSchema.type') return [];
    const isForAll = !['inputSchema', 'outputSchema', 'execution'].includes(String(part));
    const clients = isForAll ? 'official clients' : 'many clients';
    const text = `Its ${shownPath(path.split('.'))} is not what MCP has there (${visible(message, 100)}), and ${clients} refuse the whole list for it. Mend it or leave it out.`;
    return [{ rule: isForAll ? 'refused' : 'refused-by-some', message: text }];
  });
}

/** Returns the problems of strings in a part, including member names. */
function textFaults(part: Part): Fault[] {
  const faults: Fault[] = [];
  const exceeds = partBudget();
  for (const textFound of textsOf(part)) {
    if (faults.length >= FINDINGS_PER_PART_MAX) break;
    const { text } = textFound;
    const charsMax = charsMaxOf(textFound);
    if (text.length > charsMax) {
      const message =
        `${subjectOf(textFound)} has ${text.length} characters: clients put it into every model's context, ` +
        `where it crowds out everything else. Shorten it to ${charsMax} or less.`;
      faults.push({ rule: 'oversized-text', message });
    }
    if (exceeds(textFound)) {
      const message =
        `It has more than ${PART_TEXTS_MAX} strings, or ${PART_CHARS_MAX} characters in them: clients put them into every model's context, ` +
        'where they crowd out everything else. Shorten it.';
      faults.push({ rule: 'oversized-text', message });
      break;
    }
    const hidden = hiddenCharacters(text.slice(0, charsMax));
    if (hidden === null) continue;
    const spelled = hidden.spelled === '' ? '' : ` They spell ${quote(hidden.spelled, 100)}.`;
    const message =
      `${subjectOf(textFound)} holds ${hidden.count} ${hidden.count === 1 ? 'character' : 'characters'} nobody sees ` +
      `(${hidden.names.join(', ')}): models read them, so they can carry instructions no person has approved.${spelled} Remove them.`;
    faults.push({ rule: 'hidden-characters', message });
  }
  return faults;
}

/** Returns a function that returns true from the first string beyond the limits of a part. */
function partBudget(): (textFound: FoundText) => boolean {
  let [count, chars] = [0, 0];
  return ({ text }) => {
    count += 1;
    chars += text.length;
    return count > PART_TEXTS_MAX || chars > PART_CHARS_MAX;
  };
}

interface FoundText {
  text: string;
  /** Names from the root to the surrounding value; shared by the strings of one value. */
  parent: string[];
  name: string;
  isMemberName: boolean;
}

/** Yields the strings of a part; an object's member names precede its values. */
function* textsOf(part: Part): Generator<FoundText> {
  const stack: { parent: string[] | null; name: string; value: object | string }[] = [
    { parent: null, name: '', value: part },
  ];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { parent, name, value } = next;
    if (typeof value === 'string') {
      yield { text: value, parent: parent ?? [], name, isMemberName: false };
      continue;
    }
    const path = parent === null ? [] : [...parent, name];
    const inner = Object.entries(value).filter(([member]) => parent !== null || !UNSHOWN.has(member));
    if (!Array.isArray(value)) {
      for (const [member] of inner) yield { text: member, parent: path, name: member, isMemberName: true };
    }
    for (const [member, nested] of inner.reverse() as [string, unknown][]) {
      if (typeof nested === 'string' || (typeof nested === 'object' && nested !== null)) {
        stack.push({ parent: path, name: member, value: nested });
      }
    }
  }
}

function charsMaxOf({ parent, name, isMemberName }: FoundText): number {
  if (isMemberName) return TITLE_CHARS_MAX;
  if (parent.length > 0) return DESCRIPTION_CHARS_MAX;
  if (name === 'instructions') return INSTRUCTIONS_CHARS_MAX;
  return ['name', 'title', 'version'].includes(name) ? TITLE_CHARS_MAX : DESCRIPTION_CHARS_MAX;
}

function subjectOf({ parent, name, isMemberName }: FoundText): string {
  const path = shownPath([...parent, name]);
  if (isMemberName) return `The name ${path}`;
  if (parent.length > 0) return `The text at ${path}`;
  return path === 'instructions' ? 'The text' : `Its ${path}`;
}

function shownPath(path: string[]): string {
  const joined = path.join('.');
  return /^[\w.-]{1,120}$/.test(joined) ? joined : quote(joined, 120);
}
