import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { quoted } from '../../../platform/text/quoted.js';
import type { ConfigSchema } from '../config/config-fields.js';

const TYPES: Record<string, string> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  file: 'string',
  directory: 'string',
};

/** Dots in a name nest; published manifests use one. */
const STEPS_MAX = 8;

/**
 * The `user_config` of a bundle as a JSON Schema, the way published tools write it: dotted names become nested objects,
 * files and folders strings, and `multiple` a list. `sensitive` is kept as `x-sensitive`.
 *
 * @returns `{}` without values
 * @throws InvalidInputError saying which entry is wrong
 */
export function userConfigSchema(userConfig: Record<string, unknown>): ConfigSchema | Record<string, never> {
  const root = emptyObject();
  for (const [name, option] of Object.entries(userConfig)) {
    const steps = name.split('.');
    if (steps.length > STEPS_MAX || steps.includes('')) {
      throw new InvalidInputError(`user_config.${quoted(name)} is no name: write it as "apiKey" or "database.host"`);
    }
    place(root, steps, toProperty(option, name));
  }
  return root.properties.size === 0 ? {} : (toSchema(root) as ConfigSchema);
}

interface Property {
  schema: Record<string, unknown>;
  isRequired: boolean;
}

/** An object schema under construction. A map, since publishers choose the names. */
interface Nested {
  properties: Map<string, Nested | Property>;
  isRequired: boolean;
}

function emptyObject(): Nested {
  return { properties: new Map(), isRequired: false };
}

function place(root: Nested, steps: string[], property: Property): void {
  let at = root;
  for (const step of steps.slice(0, -1)) {
    const inner = at.properties.get(step) ?? emptyObject();
    if (!('properties' in inner)) throw clash(steps);
    // An object with a required property is required itself.
    inner.isRequired ||= property.isRequired;
    at.properties.set(step, inner);
    at = inner;
  }
  const last = steps[steps.length - 1];
  if (at.properties.has(last)) throw clash(steps);
  at.properties.set(last, property);
}

function clash(steps: string[]): InvalidInputError {
  return new InvalidInputError(`user_config.${quoted(steps.join('.'))} is a value and holds others: rename one`);
}

function toProperty(value: unknown, name: string): Property {
  const path = `user_config.${/^[\w.-]{1,64}$/.test(name) ? name : quoted(name)}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidInputError(`${path} must be an object`);
  }
  const option = value as Record<string, unknown>;
  const type = typeof option.type === 'string' && Object.hasOwn(TYPES, option.type) ? TYPES[option.type] : undefined;
  if (type === undefined) {
    throw new InvalidInputError(`${path}.type must be one of ${Object.keys(TYPES).join(', ')}`);
  }
  const annotations: [string, unknown][] = [
    ['title', typeof option.title === 'string' ? option.title : undefined],
    ['description', typeof option.description === 'string' ? option.description : undefined],
    ['default', option.default ?? undefined],
    ['x-sensitive', option.sensitive === true ? true : undefined],
  ];
  const more = Object.fromEntries(annotations.filter(([, one]) => one !== undefined && one !== ''));
  const schema = option.multiple === true ? { type: 'array', items: { type }, ...more } : { type, ...more };
  return { schema, isRequired: option.required === true };
}

function toSchema({ properties }: Nested): Record<string, unknown> {
  const required = [...properties].filter(([, one]) => one.isRequired).map(([name]) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(
      [...properties].map(([name, one]) => [name, 'properties' in one ? toSchema(one) : one.schema]),
    ),
    ...(required.length === 0 ? {} : { required }),
  };
}
