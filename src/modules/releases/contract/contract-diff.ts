import { canonicalJson } from '../../../platform/text/json.js';
import { isObject } from '../../../platform/text/json.js';
import { changeLevels, type ChangeLevel, type ContractChange } from './contract-change.js';
import type { Contract, Items } from './contract.js';
import { schemaChanges, schemaChangeKinds, step } from './schema-diff.js';

type Item = Record<string, unknown>;

/** Every kind of change. */
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

/**
 * What changed between what two releases offer, the worst first. A list of which nothing was known, before or now, is not
 * compared.
 */
export function contractChanges(before: Contract, after: Contract): ContractChange[] {
  const changes = [
    ...toolChanges(before.tools, after.tools),
    ...itemChanges('resources', before.resources, after.resources),
    ...itemChanges('resourceTemplates', before.resourceTemplates, after.resourceTemplates),
    ...itemChanges('prompts', before.prompts, after.prompts),
  ];
  const rank = ({ level }: ContractChange) => -changeLevels.indexOf(level);
  return changes.sort((one, other) => rank(one) - rank(other));
}

/** What came, went and stayed. */
function compared(
  before: Items | null,
  after: Items | null,
): { gone: string[]; come: string[]; both: [string, Item, Item][] } {
  if (!before || !after) return { gone: [], come: [], both: [] };
  return {
    gone: [...before.keys()].filter((name) => !after.has(name)),
    come: [...after.keys()].filter((name) => !before.has(name)),
    both: [...after].flatMap(([name, now]): [string, Item, Item][] => {
      const old = before.get(name);
      return old ? [[name, old, now]] : [];
    }),
  };
}

function toolChanges(before: Items | null, after: Items | null): ContractChange[] {
  const { gone, come, both } = compared(before, after);
  const whole = (kind: string, level: ChangeLevel, tool: string, message: string): ContractChange => {
    return { kind, level, tool, path: null, message };
  };
  return [
    ...gone.map((tool) => whole('tool_removed', 'breaking', tool, 'The tool was removed.')),
    ...come.map((tool) => whole('tool_added', 'compatible', tool, 'The tool was added.')),
    ...both.flatMap(([tool, old, now]) => [
      ...textChanges(old, now).map((change) => ({ ...change, tool, path: null })),
      ...(isDifferent(old.annotations, now.annotations)
        ? [whole('annotations_changed', 'risky', tool, 'Its annotations changed: what it may do is said otherwise.')]
        : []),
      ...schemaChanges(old.inputSchema ?? {}, now.inputSchema ?? {}, 'input', 'inputSchema').map((one) => ({
        ...one,
        tool,
      })),
      ...outputChanges(tool, old.outputSchema, now.outputSchema),
    ]),
  ];
}

function outputChanges(tool: string, old: unknown, now: unknown): ContractChange[] {
  const path = 'outputSchema';
  if (old !== undefined && now !== undefined) {
    return schemaChanges(old, now, 'output', path).map((change) => ({ ...change, tool }));
  }
  if (old === now) return [];
  return now === undefined
    ? [{ kind: 'output_schema_removed', level: 'breaking', tool, path, message: 'The output schema was removed.' }]
    : [{ kind: 'output_schema_added', level: 'compatible', tool, path, message: 'An output schema was added.' }];
}

/** Models read both, and do what they say. */
function textChanges(old: Item, now: Item): Pick<ContractChange, 'kind' | 'level' | 'message'>[] {
  const texts = [
    ['description', 'description_changed', 'Its description changed, which models read.'],
    ['title', 'title_changed', 'Its title changed.'],
    ['name', 'title_changed', 'Its name changed.'],
  ] as const;
  return texts
    .filter(([member]) => isDifferent(old[member], now[member]))
    .map(([, kind, message]) => ({ kind, level: 'risky', message }));
}

function itemChanges(
  list: 'resources' | 'resourceTemplates' | 'prompts',
  before: Items | null,
  after: Items | null,
): ContractChange[] {
  const { gone, come, both } = compared(before, after);
  const at = (name: string, change: Pick<ContractChange, 'kind' | 'level' | 'message'>): ContractChange => {
    return { ...change, tool: null, path: list + step(name) };
  };
  return [
    ...gone.map((name) => at(name, { kind: 'item_removed', level: 'breaking', message: 'It was removed.' })),
    ...come.map((name) => at(name, { kind: 'item_added', level: 'compatible', message: 'It was added.' })),
    ...both.flatMap(([name, old, now]) => [
      ...textChanges(old, now).map((change) => at(name, change)),
      ...(isDifferent(old.mimeType, now.mimeType)
        ? [at(name, { kind: 'mime_type_changed', level: 'risky', message: 'Its media type changed.' })]
        : []),
      ...argumentChanges(list + step(name), old.arguments, now.arguments),
    ]),
  ];
}

/** Arguments of prompts, by name. */
function argumentChanges(path: string, old: unknown, now: unknown): ContractChange[] {
  const before = isObject(old) ? old : {};
  const after = isObject(now) ? now : {};
  const isRequired = (all: Item, name: string) => (all[name] as Item).required === true;
  const at = (name: string, kind: string, level: ChangeLevel, message: string): ContractChange => {
    return { kind, level, tool: null, path: path + step(name), message };
  };
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return [
    ...gone.map((name) => at(name, 'argument_removed', 'risky', 'The argument was removed.')),
    ...Object.keys(after).flatMap((name) => {
      const must = isRequired(after, name);
      if (!Object.hasOwn(before, name)) {
        return must
          ? [at(name, 'required_argument_added', 'breaking', 'The required argument was added.')]
          : [at(name, 'argument_added', 'compatible', 'The optional argument was added.')];
      }
      const text = textChanges(before[name] as Item, after[name] as Item);
      const texts = text.map(({ kind, level, message }) => at(name, kind, level, message));
      if (must === isRequired(before, name)) return texts;
      return must
        ? [at(name, 'now_required', 'breaking', 'It is required now.'), ...texts]
        : [at(name, 'now_optional', 'compatible', 'It is optional now.'), ...texts];
    }),
  ];
}

function isDifferent(old: unknown, now: unknown): boolean {
  return canonicalJson(old) !== canonicalJson(now);
}
