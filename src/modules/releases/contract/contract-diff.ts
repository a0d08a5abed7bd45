import { canonicalJson, isObject, pathStep, type JsonObject } from '../../../platform/text/json.js';
import { quote } from '../../../platform/text/quoted.js';
import type { ServerSnapshot } from '../../servers/server.types.js';
import { changeLevels, type ChangeLevel, type ContractChange } from './contract-change.js';
import { contractOf, hashOf, type Contract, type Items } from './contract.js';
import type { ReleaseContract } from './release-contract.entity.js';
import { schemaChanges, schemaChangeKinds } from './schema-diff.js';

export const contractChangeKinds: readonly string[] = [
  'tool_added',
  'tool_removed',
  'title_changed',
  'annotations_changed',
  'output_schema_added',
  'output_schema_removed',
  'item_added',
  'item_removed',
  'mime_type_changed',
  'argument_added',
  'required_argument_added',
  'argument_removed',
  'security_failed',
  'security_passed',
  ...schemaChangeKinds,
];

export interface ContractComparison extends Pick<ReleaseContract, 'previousReleaseId' | 'hash' | 'changes'> {
  isSame: boolean;
}

export function compareContracts(current: ServerSnapshot | null, next: ServerSnapshot): ContractComparison {
  const contract = contractOf(next);
  const hash = hashOf(contract);
  if (!current) return { previousReleaseId: null, hash, changes: [], isSame: false };
  const before = contractOf(current);
  const previousReleaseId = current.releaseId;
  return { previousReleaseId, hash, changes: contractChanges(before, contract), isSame: hashOf(before) === hash };
}

/** Returns the changes, breaking ones first. A list that is unknown in one of the contracts is not compared. */
export function contractChanges(before: Contract, after: Contract): ContractChange[] {
  const changes = [
    ...toolChanges(before.tools, after.tools),
    ...itemChanges('resources', before.resources, after.resources),
    ...itemChanges('resourceTemplates', before.resourceTemplates, after.resourceTemplates),
    ...itemChanges('prompts', before.prompts, after.prompts),
  ];
  const rank = ({ level }: ContractChange) => -changeLevels.indexOf(level);
  return changes.sort((change, other) => rank(change) - rank(other));
}

function compareNames(
  before: Items | null,
  after: Items | null,
): { removed: string[]; added: string[]; common: [string, JsonObject, JsonObject][] } {
  if (!before || !after) return { removed: [], added: [], common: [] };
  return {
    removed: [...before.keys()].filter((name) => !after.has(name)),
    added: [...after.keys()].filter((name) => !before.has(name)),
    common: [...after].flatMap(([name, now]): [string, JsonObject, JsonObject][] => {
      const old = before.get(name);
      return old ? [[name, old, now]] : [];
    }),
  };
}

function toolChanges(before: Items | null, after: Items | null): ContractChange[] {
  const { removed, added, common } = compareNames(before, after);
  const toChange = (kind: string, level: ChangeLevel, tool: string, message: string): ContractChange => {
    return { kind, level, tool, path: null, message };
  };
  return [
    ...removed.map((tool) => toChange('tool_removed', 'breaking', tool, 'The tool was removed.')),
    ...added.map((tool) => toChange('tool_added', 'compatible', tool, 'The tool was added.')),
    ...common.flatMap(([tool, old, now]) => [
      ...textChanges(old, now).map((change) => ({ ...change, tool, path: null })),
      ...(isDifferent(old.annotations, now.annotations)
        ? [toChange('annotations_changed', 'risky', tool, 'Its annotations changed: what it may do is said otherwise.')]
        : []),
      ...schemaChanges(old.inputSchema ?? {}, now.inputSchema ?? {}, 'input', 'inputSchema').map((change) => ({
        ...change,
        tool,
      })),
      ...outputChanges(old.outputSchema, now.outputSchema).map((change) => ({ ...change, tool })),
    ]),
  ];
}

function outputChanges(old: unknown, now: unknown): Omit<ContractChange, 'tool'>[] {
  const path = 'outputSchema';
  if (old !== undefined && now !== undefined) return schemaChanges(old, now, 'output', path);
  if (old === now) return [];
  return now === undefined
    ? [{ kind: 'output_schema_removed', level: 'breaking', path, message: 'The output schema was removed.' }]
    : [{ kind: 'output_schema_added', level: 'compatible', path, message: 'An output schema was added.' }];
}

/** Returns changes of strings, which are risky because models follow them. */
function textChanges(old: JsonObject, now: JsonObject): Pick<ContractChange, 'kind' | 'level' | 'message'>[] {
  const rules = [
    ['description', 'description_changed', 'Its description changed, which models read.'],
    ['title', 'title_changed', 'Its title changed.'],
    ['name', 'title_changed', 'Its name changed.'],
  ] as const;
  return rules
    .filter(([member]) => isDifferent(old[member], now[member]))
    .map(([, kind, message]) => ({ kind, level: 'risky', message }));
}

function itemChanges(
  list: 'resources' | 'resourceTemplates' | 'prompts',
  before: Items | null,
  after: Items | null,
): ContractChange[] {
  const { removed, added, common } = compareNames(before, after);
  const toChange = (name: string, change: Pick<ContractChange, 'kind' | 'level' | 'message'>): ContractChange => {
    return { ...change, tool: null, path: list + pathStep(name, quote) };
  };
  return [
    ...removed.map((name) => toChange(name, { kind: 'item_removed', level: 'breaking', message: 'It was removed.' })),
    ...added.map((name) => toChange(name, { kind: 'item_added', level: 'compatible', message: 'It was added.' })),
    ...common.flatMap(([name, old, now]) => [
      ...textChanges(old, now).map((change) => toChange(name, change)),
      ...(isDifferent(old.mimeType, now.mimeType)
        ? [toChange(name, { kind: 'mime_type_changed', level: 'risky', message: 'Its media type changed.' })]
        : []),
      ...argumentChanges(list + pathStep(name, quote), old.arguments, now.arguments),
    ]),
  ];
}

function argumentChanges(path: string, old: unknown, now: unknown): ContractChange[] {
  const before = isObject(old) ? old : {};
  const after = isObject(now) ? now : {};
  const isRequired = (all: JsonObject, name: string) => (all[name] as JsonObject).required === true;
  const toChange = (name: string, kind: string, level: ChangeLevel, message: string): ContractChange => {
    return { kind, level, tool: null, path: path + pathStep(name, quote), message };
  };
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return [
    ...removed.map((name) => toChange(name, 'argument_removed', 'risky', 'The argument was removed.')),
    ...Object.keys(after).flatMap((name) => {
      const must = isRequired(after, name);
      if (!Object.hasOwn(before, name)) {
        return must
          ? [toChange(name, 'required_argument_added', 'breaking', 'The required argument was added.')]
          : [toChange(name, 'argument_added', 'compatible', 'The optional argument was added.')];
      }
      const text = textChanges(before[name] as JsonObject, after[name] as JsonObject);
      const changes = text.map(({ kind, level, message }) => toChange(name, kind, level, message));
      if (must === isRequired(before, name)) return changes;
      return must
        ? [toChange(name, 'now_required', 'breaking', 'It is required now.'), ...changes]
        : [toChange(name, 'now_optional', 'compatible', 'It is optional now.'), ...changes];
    }),
  ];
}

function isDifferent(old: unknown, now: unknown): boolean {
  return canonicalJson(old) !== canonicalJson(now);
}
