import { ValidationPipe, type ArgumentMetadata, type ValidationError, type PipeTransform } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { InvalidInputError, type DomainError } from '../errors/domain-error.js';
import { isUUID } from 'class-validator';

const closedBodies = new WeakSet<object>();

/** Marks a body DTO as closed: an unknown key is refused with its name instead of being dropped. */
export function ClosedBody(): ClassDecorator {
  return (target) => {
    closedBodies.add(target);
  };
}

/** Class-validator's names of the checks that only say which type a value has. */
const TYPE_CHECKS = ['isString', 'isObject', 'isArray', 'isInt', 'isNumber', 'isBoolean'];

function sentences(errors: ValidationError[], path = ''): string[] {
  return errors.flatMap(({ property, value, constraints = {}, children }) => {
    const name = path ? `${path}.${property}` : property;
    // A missing field breaks every rule of it; one sentence is enough.
    if (value === undefined && TYPE_CHECKS.some((check) => check in constraints)) return [`${name} is required`];
    const texts = Object.values(constraints).map((text) => (path ? `${path}.${text}` : text));
    return [...texts, ...sentences(children ?? [], name)];
  });
}

/** Nest drops such keys without a word; whoever sends one should hear that it is not kept. */
const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

class RefusingPipe extends ValidationPipe {
  protected override stripProtoKeys(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const found = PROTOTYPE_KEYS.find((key) => Object.hasOwn(value, key));
    if (found !== undefined) throw new InvalidInputError(`The key "${found}" is not taken`);
    for (const member of Object.values(value)) this.stripProtoKeys(member);
  }
}

function pipe(forbidNonWhitelisted: boolean): ValidationPipe {
  return new RefusingPipe({
    transform: true,
    whitelist: true,
    forbidNonWhitelisted,
    validationError: { target: false },
    exceptionFactory: (errors) => new InvalidInputError(sentences(errors).join('; ')),
  });
}

/** Stands for a body that was sent as something else than JSON. */
const UNREAD_BODY = Symbol('unread body');

/**
 * Marks a body that nobody has read, so that where JSON is taken its sender hears of it: curl's `-d` says that it sends a
 * form, and without this such a body counts as none. Goes behind the parsers; whoever reads a body by itself still can.
 */
export function markUnreadBody(request: Request, _response: Response, next: NextFunction): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (request.body === undefined && (length !== '0' || coding !== undefined)) request.body = UNREAD_BODY;
  next();
}

/**
 * Validates and transforms every body, query and parameter that has a DTO class. Unknown keys are dropped, or refused
 * in a {@link ClosedBody}. All faults are reported together, joined with `; `.
 */
export class InputPipe extends ValidationPipe {
  private readonly open = pipe(false);
  private readonly closed = pipe(true);

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const chosen = metadata.metatype && closedBodies.has(metadata.metatype) ? this.closed : this.open;
    if (value === UNREAD_BODY)
      throw new InvalidInputError('Send the body as JSON, with Content-Type: application/json');
    // An omitted body arrives as undefined; every body of ours is optional or says which field is missing.
    const given = metadata.type === 'body' && value === undefined ? {} : value;
    try {
      return await (chosen.transform(given, metadata) as Promise<unknown>);
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidInputError('The body is nested too deeply');
      throw error;
    }
  }
}

/** A parameter that holds a uuid: anything else cannot exist, so it answers as missing and never reaches Postgres. */
export function UuidOr404(missing: new () => DomainError): PipeTransform<string, string> {
  return {
    transform(value) {
      if (!isUUID(value)) throw new missing();
      return value;
    },
  };
}
