import {
  ValidationPipe,
  type ArgumentMetadata,
  type PipeTransform,
  type Type,
  type ValidationError,
} from '@nestjs/common';
import { InvalidInputError, NotFoundError } from '../errors/domain-error.js';
import { ApiAdditionalProperties } from './api-docs.decorators.js';
import { isUUID } from 'class-validator';
import { isObject } from '../text/json.js';
import { nearestName } from '../text/nearest.js';
import { quote } from '../text/quoted.js';
import { UNREAD_BODY } from './body/request-body.js';
import { propertiesOf } from './known-query.guard.js';

const closedBodies = new WeakSet<object>();
const spelledBodies = new WeakSet<object>();

/**
 * Marks a body DTO as closed: an unknown key is rejected, with its name or a similar known one, instead of being
 * dropped.
 */
export function ClosedBody(): ClassDecorator {
  return (target) => {
    closedBodies.add(target);
    spelledBodies.add(target);
    ApiAdditionalProperties(false)(target);
  };
}

/** Declares a body in which an unknown key is rejected if it resembles a known one and is probably a typo. */
export function SpelledBody(): ClassDecorator {
  return (target) => {
    spelledBodies.add(target);
  };
}

const TYPE_CHECKS = ['isString', 'isObject', 'isArray', 'isInt', 'isNumber', 'isBoolean'];

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/must be an integer number$/, 'must be a whole number'],
  [
    /must be longer than or equal to 1 characters?(?: and shorter than or equal to (\d+) characters)?$/,
    'must not be empty',
  ],
  [
    /must be longer than or equal to (\d+)(?: and shorter than or equal to \d+)? characters$/,
    'must have at least $1 characters',
  ],
  [/must be shorter than or equal to (\d+) characters$/, 'must have at most $1 characters'],
];

function inOurWords(text: string): string {
  const [words, replacement] = WORDS.find(([words]) => words.test(text)) ?? [];
  return words === undefined ? text : text.replace(words, replacement ?? '');
}

/** Returns messages; a wrong type gives only the message about the type. */
function describeErrors(errors: ValidationError[], path = ''): string[] {
  return errors.flatMap(({ property, value, target, constraints = {}, children }) => {
    const name = path ? `${path}.${property}` : property;
    if ('whitelistValidation' in constraints) {
      const accepted = propertiesOf(target?.constructor as Type).join(', ');
      return [`There is no member ${quote(name)}: ${path === '' ? 'this body' : path} takes ${accepted}`];
    }
    const type = TYPE_CHECKS.find((check) => check in constraints);
    // A missing field breaks all of its rules; one message is enough.
    if (value === undefined && type !== undefined) return [`${name} is required`];
    const broken = type === undefined ? Object.values(constraints) : [constraints[type]];
    const problems = [...new Set(broken.map(inOurWords))].map((text) => (path ? `${path}.${text}` : text));
    return [...problems, ...describeErrors(children ?? [], name)];
  });
}

/** Nest drops such keys silently; the client should learn that the value is not stored. */
const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

class RefusingPipe extends ValidationPipe {
  protected override stripProtoKeys(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const refused = PROTOTYPE_KEYS.find((key) => Object.hasOwn(value, key));
    if (refused !== undefined) throw new InvalidInputError(`The key "${refused}" is not taken`);
    for (const member of Object.values(value)) this.stripProtoKeys(member);
  }
}

function pipe(forbidNonWhitelisted: boolean): ValidationPipe {
  return new RefusingPipe({
    transform: true,
    whitelist: true,
    forbidNonWhitelisted,
    // Names the members that an object takes.
    validationError: { target: true },
    exceptionFactory: (errors) => new InvalidInputError(describeErrors(errors).join('; ')),
  });
}

/**
 * Unknown keys are dropped, or rejected in a {@link ClosedBody} and, when they resemble a known one, in a
 * {@link SpelledBody}. Invalid values are reported together, joined with `; `.
 */
export class InputPipe extends ValidationPipe {
  private readonly open = pipe(false);
  private readonly closed = pipe(true);

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const chosen = metadata.metatype && closedBodies.has(metadata.metatype) ? this.closed : this.open;
    if (value === UNREAD_BODY)
      throw new InvalidInputError('Send the body as JSON, with Content-Type: application/json');
    // An omitted body arrives as undefined; every body is optional or reports the missing field.
    const body = metadata.type === 'body' && value === undefined ? {} : value;
    if (metadata.metatype && spelledBodies.has(metadata.metatype) && isObject(body)) {
      const names = propertiesOf(metadata.metatype);
      for (const key of Object.keys(body)) {
        const near = names.includes(key) ? null : nearestName(key, names);
        if (near === null) continue;
        throw new InvalidInputError(`There is no member ${quote(key)}: did you mean ${quote(near)}?`);
      }
    }
    return chosen.transform(body, metadata);
  }
}

/**
 * Validates values that did not arrive as a JSON body, such as those of a form, as {@link InputPipe} does. @throws
 * InvalidInputError
 */
export async function checkedBody<T extends object>(metatype: new () => T, body: object): Promise<T> {
  return (await new InputPipe().transform(body, { type: 'body', metatype })) as T;
}

/**
 * Returns a pipe for a parameter that contains a uuid: nothing else can exist, so anything else returns 404 and never reaches Postgres.
 */
export function UuidOr404(message: string): PipeTransform<string, string> {
  return {
    transform(value) {
      if (!isUUID(value)) throw new NotFoundError(message);
      return value;
    },
  };
}
