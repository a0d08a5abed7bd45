import type { CanActivate, ExecutionContext, Type } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { getMetadataStorage } from 'class-validator';
import type { Request } from 'express';
import { InvalidInputError } from '../errors/domain-error.js';
import { nearestName } from '../text/nearest.js';
import { quote } from '../text/quoted.js';
import { ACCESS } from './public.decorator.js';

const EXCLUDED = ['swagger/apiExcludeController', 'swagger/apiExcludeEndpoint'];

const API_PARAMETERS = 'swagger/apiParameters';

/** Key under which Nest stores arguments that take the query, as `type:index`. */
const QUERY_ARGUMENT = '4:';

/** Parameters of a signed link, on routes that accept one. */
const SIGNED = ['expires', 'signature'];

interface KnownQuery {
  names: string[];
  prefixes: string[];
}

interface DeclaredParameter {
  in?: string;
  name?: string;
  schema?: { additionalProperties?: unknown };
}

/**
 * Suggests the nearest declared parameter. Runs after the access rule. Routes without a rule (pages, callbacks, health)
 * and routes omitted from the OpenAPI document accept any.
 */
export class KnownQueryGuard implements CanActivate {
  private readonly routes = new WeakMap<object, KnownQuery | 'any'>();

  canActivate(context: ExecutionContext): boolean {
    const handler = context.getHandler();
    let accepted = this.routes.get(handler);
    if (accepted === undefined) this.routes.set(handler, (accepted = knownQuery(context.getClass(), handler)));
    if (accepted !== 'any') requireKnown(context.switchToHttp().getRequest<Request>().query, accepted);
    return true;
  }
}

/** @param query without its question mark @throws InvalidInputError */
export function requireNoQuery(query: string): void {
  if (query === '') return;
  requireKnown(Object.fromEntries(new URLSearchParams(query)), { names: [], prefixes: [] });
}

/** Returns the parameters that the DTO and `@ApiQuery()` declare. */
export function knownQuery(controller: Type, handler: object): KnownQuery | 'any' {
  const declared = (key: string): unknown => Reflect.getMetadata(key, handler) ?? Reflect.getMetadata(key, controller);
  const access = declared(ACCESS);
  if (access === 'public' || access === undefined || EXCLUDED.some((key) => declared(key) !== undefined)) return 'any';
  const name = (handler as { name: string }).name;
  const types = (Reflect.getMetadata('design:paramtypes', controller.prototype as object, name) ?? []) as Type[];
  const parameters = (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) ?? {}) as Record<
    string,
    { index: number; data?: unknown }
  >;
  const params = Object.entries(parameters).flatMap(([key, { index, data }]) => {
    if (!key.startsWith(QUERY_ARGUMENT)) return [];
    return typeof data === 'string' ? [data] : propertiesOf(types[index]);
  });
  const documented = ((Reflect.getMetadata(API_PARAMETERS, handler) ?? []) as DeclaredParameter[]).filter(
    (parameter) => parameter.in === 'query' && parameter.name !== undefined,
  );
  const isOpen = ({ schema }: DeclaredParameter) => schema?.additionalProperties !== undefined;
  const signed = (access as { signed?: true }).signed ? SIGNED : [];
  const plain = documented.filter((parameter) => !isOpen(parameter)).map((parameter) => String(parameter.name));
  return {
    names: [...new Set([...params, ...plain, ...signed])],
    prefixes: documented.filter(isOpen).map((parameter) => `${parameter.name}.`),
  };
}

/** Returns the fields of a class that have validation rules. */
export function propertiesOf(type: Type | undefined): string[] {
  if (!type) return [];
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  return [...new Set(rules.map(({ propertyName }) => propertyName))];
}

function requireKnown(query: object, accepted: KnownQuery): void {
  for (const name of Object.keys(query)) {
    if (accepted.names.includes(name) || accepted.prefixes.some((prefix) => name.startsWith(prefix))) continue;
    const near = nearest(name, accepted);
    const [prefix] = accepted.prefixes;
    const all = [...accepted.names, ...accepted.prefixes.map((each) => `${each}{key}`)];
    const list = all.length > 0 ? `his route takes ${all.join(', ')}.` : 'his route takes none.';
    let advice = `t${list}`;
    if (near !== null) advice = `did you mean ${quote(near)}?`;
    // If no name is near, the parameter is a key under the prefix, or an unknown filter.
    else if (prefix && /^[\w.-]{1,64}$/.test(name)) advice = `did you mean ${quote(`${prefix}${name}`)}? T${list}`;
    throw new InvalidInputError(`There is no query parameter ${quote(name)}: ${advice}`);
  }
}

/** Returns the nearest name, such as `metadata.i` for `metadata[i]`; null when no name is near. */
function nearest(name: string, { names, prefixes }: KnownQuery): string | null {
  for (const prefix of prefixes) {
    const word = prefix.slice(0, -1);
    const [, head = '', key = ''] = /^([^.[{]*)[.[]?([^\]]*)/.exec(name) ?? [];
    const isMeant = head.toLowerCase() === word.toLowerCase() || nearestName(head, [word]) !== null;
    if (isMeant) return `${prefix}${key === '' ? '{key}' : key}`;
  }
  return nearestName(name, names);
}
