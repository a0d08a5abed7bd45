/**
 * Converts a JSON Schema to a form, and a sent form to a value.
 *
 * A part with a keyword that has no input, with deeper nesting, or with names that a form cannot carry is a field for
 * JSON, so no keyword is ignored. `null` in addition to another type means that the field can be empty. Keywords that
 * only narrow a value (`pattern`, `minimum`) are left to the validation of the whole.
 *
 * An input is named by a prefix and the JSON pointer of its value: `#/options/unit`. The input named by the prefix
 * alone accepts the whole value as JSON, and overrides the others. An empty optional field leaves its member out. A
 * list has one item per line. A `date-time` is entered in UTC; one with another offset is entered as JSON.
 */
import { isDeepStrictEqual } from 'node:util';
import { isObject, isPlainText, jsonText, resolveRef, type JsonObject } from '../../extension.js';

export interface Field {
  name: string;
  label: string;
  hint: string;
  isRequired: boolean;
  control: 'text' | 'number' | 'integer' | 'choice' | 'object' | 'json';
  input: Record<string, string>;
  /** True for several values: lines of text or numbers, or several choices. */
  isList: boolean;
  options: { label: string; value: unknown }[];
  members: Map<string, Field>;
  /** The value of an empty required field; undefined if one must be entered. */
  blank: unknown;
  fallback: unknown;
}

export type Faults = Map<string, string>;

const DEPTH_MAX = 3;

/** Maximum number of fields; a schema with more fields becomes one field for JSON. */
const FIELDS_MAX = 200;

/** Size of everything that a form shows of a schema, roughly in characters; a larger schema is one field for JSON. */
const SIZE_MAX = 256 * 1024;

/** Size of a keyword, or of a choice, in addition to its string. */
const PART_SIZE = 16;

const DESCRIPTION_CHARS_MAX = 2_000;

/** Keywords of a part with inputs. Those that start with `x-` do not affect its value. */
const DRAWN = new Set(
  (
    'type properties required enum const items additionalProperties oneOf anyOf enumNames title description default examples ' +
    'format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems ' +
    'deprecated readOnly writeOnly contentEncoding contentMediaType $schema $id $comment $defs definitions'
  ).split(' '),
);

const INPUT_TYPES = new Map([
  ['date', 'date'],
  ['date-time', 'datetime-local'],
  ['email', 'email'],
  ['uri', 'url'],
]);

/** A value of an input for date and time, which can lack the seconds. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?<seconds>:\d\d)?$/;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const FREE: Partial<Field> = {};

class TooLargeForFormError extends Error {}

/** @param prefix of the names of the inputs */
export function formOf(schema: unknown, prefix = '#'): Field {
  try {
    return drawnForm(schema, prefix);
  } catch (error) {
    // A `RangeError` means JSON that is nested too deeply to be written.
    if (error instanceof TooLargeForFormError || error instanceof RangeError)
      return drawnForm({ $comment: '' }, prefix);
    throw error;
  }
}

function drawnForm(schema: unknown, prefix: string): Field {
  let count = 0;
  let size = 0;

  const add = (more: number) => {
    size += more;
    if (size > SIZE_MAX) throw new TooLargeForFormError();
  };

  /** Returns a part of the schema. Every use adds to the size, since many references to one large part result in a large form. */
  const partOf = (declared: unknown): JsonObject => {
    const part = resolveRef(declared, schema);
    add(PART_SIZE * (1 + Object.keys(part).length));
    return part;
  };

  const choice = (options: Field['options']): Partial<Field> => {
    for (const { label, value } of options) add(PART_SIZE + label.length + jsonText(value).length);
    return { control: 'choice', options };
  };

  const draw = (declared: unknown, name: string, label: string, isRequired: boolean, depth: number): Field => {
    count += 1;
    if (count > FIELDS_MAX) throw new TooLargeForFormError();
    const part = partOf(declared);
    const { title, description, default: fallback } = part;
    const shownLabel = typeof title === 'string' ? title.slice(0, DESCRIPTION_CHARS_MAX) : label;
    const hint = typeof description === 'string' ? description.slice(0, DESCRIPTION_CHARS_MAX) : '';
    add(name.length + shownLabel.length + hint.length + (fallback === undefined ? 0 : jsonText(fallback).length));
    const field: Field = {
      name,
      label: shownLabel,
      hint,
      isRequired,
      control: 'json',
      input: {},
      isList: false,
      options: [],
      members: new Map(),
      blank: undefined,
      fallback,
    };
    return { ...field, ...shapeOf(part, name, depth) };
  };

  const shapeOf = (part: JsonObject, name: string, depth: number, isOptional = false): Partial<Field> => {
    if (Object.keys(part).some((keyword) => !DRAWN.has(keyword) && !keyword.startsWith('x-'))) return FREE;
    const { anyOf, oneOf, type, enum: listed, enumNames, items, properties = {}, required = [], ...rest } = part;
    const choices = anyOf ?? oneOf;
    if (choices !== undefined) {
      if (!Array.isArray(choices) || (anyOf && oneOf) || [listed, items, part.properties].some((keyword) => keyword))
        return FREE;
      const branches = choices.map(partOf);
      if (
        branches.length > 0 &&
        branches.every(isConstant) &&
        new Set(branches.map(({ const: value }) => jsonText(value))).size === branches.length
      ) {
        return choice(branches.map(({ const: value, title }) => ({ value, label: labelOf(value, title) })));
      }
      const [only, ...more] = branches.filter((branch) => branch.type !== 'null' || Object.keys(branch).length > 1);
      // If it is optional twice, the schema might refer to itself.
      if (!only || more.length > 0 || branches.length !== 2 || type !== undefined || isOptional) return FREE;
      const shape = shapeOf(only, name, depth, true);
      return shape === FREE ? FREE : { ...shape, blank: null };
    }
    if (Array.isArray(type)) {
      const [only, ...more] = type.filter((typeName) => typeName !== 'null') as unknown[];
      if (typeof only !== 'string' || more.length > 0) return FREE;
      const shape = shapeOf({ ...part, type: only }, name, depth);
      return shape === FREE ? FREE : { ...shape, ...(type.includes('null') && { blank: null }) };
    }
    if (rest.const !== undefined) return choice([{ value: rest.const, label: labelOf(rest.const) }]);
    if (Array.isArray(listed)) {
      const names = Array.isArray(enumNames) ? (enumNames as unknown[]) : [];
      const filled = listed.filter((value) => value !== null) as unknown[];
      if (filled.length === 0) return FREE;
      add(PART_SIZE * filled.length);
      const shape = choice(filled.map((value, i) => ({ value, label: labelOf(value, names[i]) })));
      return filled.length < listed.length ? { ...shape, blank: null } : shape;
    }
    if (type === 'boolean') return choice([true, false].map((value) => ({ value, label: value ? 'yes' : 'no' })));
    if (type === 'string') {
      const inputType = INPUT_TYPES.get(String(rest.format));
      const input =
        inputType === undefined ? {} : { type: inputType, ...(inputType === 'datetime-local' && { step: '1' }) };
      return { control: 'text', input, ...(rest.default === '' && { blank: '' }) };
    }
    if (type === 'number' || type === 'integer') return { control: type, input: numberInput(type, rest) };
    if (type === 'array') {
      // A list of lists becomes a field for JSON, like a list of objects.
      if (depth === Infinity) return FREE;
      const { control, options, isList, blank } = draw(items, name, '', true, Infinity);
      const isScalar = control !== 'json' && control !== 'object' && !isList && blank === undefined;
      return isScalar ? { control, options, isList: true, blank: [] } : FREE;
    }
    const isOpen = rest.additionalProperties !== undefined && typeof rest.additionalProperties === 'object';
    if ((type !== 'object' && part.properties === undefined) || !isObject(properties)) return FREE;
    const names = Object.keys(properties);
    add(PART_SIZE * (names.length + (Array.isArray(required) ? required.length : 0)));
    const isMissing = !Array.isArray(required) || required.some((member) => !Object.hasOwn(properties, String(member)));
    const isEmpty = names.length === 0 && depth > 0 && rest.additionalProperties !== false;
    if (
      isOpen ||
      isMissing ||
      isEmpty ||
      depth > DEPTH_MAX ||
      names.some((member) => member.search(/[\r\n\t]/) >= 0 || !isPlainText(member))
    )
      return FREE;
    if (count + names.length > FIELDS_MAX) throw new TooLargeForFormError();
    const needed = new Set(required as unknown[]);
    const members = names.map((member): [string, Field] => {
      const below = `${name}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      return [member, draw(properties[member], below, member, needed.has(member), depth + 1)];
    });
    return { control: 'object', members: new Map(members) };
  };

  return draw(schema, prefix, '', true, 0);
}

/**
 * Returns undefined if the field is left out.
 *
 * @param faults receives the problems of single inputs: missing, not a number, not JSON
 */
export function valueIn(field: Field, form: URLSearchParams, faults: Faults): unknown {
  return readField(field, sentIn(form), faults);
}

interface SentTexts {
  texts: Map<string, string[]>;
  /** Names of the inputs with a string, and of the fields around them. */
  filled: Set<string>;
}

/** Parsed forms: a form that responds to several input requests is parsed once. */
const readForms = new WeakMap<URLSearchParams, SentTexts>();

function sentIn(form: URLSearchParams): SentTexts {
  const cached = readForms.get(form);
  if (cached) return cached;
  const sent: SentTexts = { texts: new Map(), filled: new Set() };
  for (const [name, text] of form) {
    const values = sent.texts.get(name);
    if (values) values.push(text);
    else sent.texts.set(name, [text]);
    if (text === '') continue;
    // No field is deeper.
    const steps = name.split('/', DEPTH_MAX + 2);
    for (const at of steps.keys()) sent.filled.add(steps.slice(0, at + 1).join('/'));
  }
  readForms.set(form, sent);
  return sent;
}

function readField(field: Field, form: SentTexts, faults: Faults): unknown {
  const { name, control, isRequired, isList, blank } = field;
  if (!form.filled.has(name)) {
    if (!isRequired) return undefined;
    if (blank !== undefined) return blank;
    if (control !== 'object') return refuse('Enter a value.');
  }
  const values = (form.texts.get(name) ?? []).map((text) => text.replaceAll('\r\n', '\n'));
  const [content = ''] = values;
  if (control === 'json' || (control === 'object' && content.trim() !== '')) {
    try {
      return JSON.parse(content) as unknown;
    } catch (error) {
      return refuse(`This is not JSON: ${(error as Error).message}`);
    }
  }
  if (control === 'object') {
    const members = [...field.members].map(([member, inner]) => [member, readField(inner, form, faults)] as const);
    return Object.fromEntries(members.filter(([, value]) => value !== undefined));
  }
  const options = new Map(field.options.map(({ value }) => [jsonText(value), value]));
  if (!isList) return scalar(content);
  const items = control === 'choice' ? values : content.split('\n');
  return items.filter((item) => item !== '').map(scalar);

  function scalar(text: string): unknown {
    const time = field.input.type === 'datetime-local' && LOCAL_TIME.exec(text);
    if (time) return `${text}${time.groups?.seconds === undefined ? ':00' : ''}Z`;
    if (control === 'text') return text;
    if (control === 'choice') {
      return options.has(text) ? options.get(text) : refuse('Choose one of the values.');
    }
    const value = Number(text);
    if (!NUMBER.test(text.trim()) || !Number.isFinite(value)) return refuse('Enter a number, such as 5 or 0.5.');
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      return refuse('This number is too large to be sent exactly.');
    return control === 'integer' && !Number.isInteger(value) ? refuse('Enter a whole number.') : value;
  }

  function refuse(fault: string): undefined {
    faults.set(name, fault);
  }
}

/** Returns the inputs that send exactly this value of a field; null if its inputs cannot. */
export function entriesOf(field: Field, value: unknown): [string, string][] | null {
  const entries = toInputs(field, value);
  const faults: Faults = new Map();
  const isSame = isDeepStrictEqual(valueIn(field, new URLSearchParams(entries), faults), value) && faults.size === 0;
  if (isSame && entries.every(([, text]) => !text.includes('\r') && isPlainText(text))) return entries;
  return field.control === 'object' || field.control === 'json' ? [[field.name, jsonText(value)]] : null;
}

/** Returns the defaults, except those in an optional object, which would make the object present. */
export function defaultsOf({ members }: Field): [string, string][] {
  return [...members.values()].flatMap((field) => {
    if (field.fallback !== undefined) return entriesOf(field, field.fallback) ?? [];
    return field.isRequired ? defaultsOf(field) : [];
  });
}

/** @param path names from the root to the invalid part */
export function inputAt(field: Field, [first, ...rest]: string[]): string {
  const inner = first === undefined ? undefined : field.members.get(first);
  return inner ? inputAt(inner, rest) : field.name;
}

function toInputs(field: Field, value: unknown): [string, string][] {
  const { name, control, isList, members } = field;
  if (value === undefined || (value === null && field.blank === null)) return [];
  if (control === 'json') return [[name, jsonText(value)]];
  if (control === 'object') {
    return isObject(value)
      ? [...members].flatMap(([member, inner]) => (Object.hasOwn(value, member) ? toInputs(inner, value[member]) : []))
      : [];
  }
  const textOf = (item: unknown) => {
    if (control !== 'text') return jsonText(item);
    return field.input.type === 'datetime-local' ? String(item).replace(/Z$/, '') : String(item);
  };
  if (!isList) return [[name, textOf(value)]];
  if (!Array.isArray(value)) return [];
  const items = value.map(textOf);
  return control === 'choice' ? items.map((item) => [name, item]) : [[name, items.join('\n')]];
}

/** Renders an input for a number, whose steps start at the smallest value, as in browsers. */
function numberInput(type: 'number' | 'integer', { minimum, maximum, multipleOf }: JsonObject): Record<string, string> {
  const step = type === 'integer' ? '1' : 'any';
  const limits = Object.entries({ min: minimum, max: maximum }).filter(([, limit]) => typeof limit === 'number');
  return {
    type: 'number',
    step: typeof multipleOf === 'number' && limits.length === 0 ? String(multipleOf) : step,
    ...Object.fromEntries(limits.map(([name, limit]) => [name, String(limit)])),
  };
}

function labelOf(value: unknown, title?: unknown): string {
  if (typeof title === 'string') return title;
  return typeof value === 'string' ? value : jsonText(value);
}

function isConstant(branch: JsonObject): boolean {
  return (
    branch.const !== undefined &&
    branch.const !== null &&
    Object.keys(branch).every((keyword) => ['const', 'title', 'description', 'type'].includes(keyword))
  );
}
