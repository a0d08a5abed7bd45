import { RequestMethod, type Type } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';

type Handler = (...args: unknown[]) => unknown;

export interface Route {
  method: string;
  /** Path in Express' notation, such as `/servers/:qualifiedName`. */
  path: string;
  controller: Type;
  instance: Record<string, Handler>;
  name: string;
  handler: Handler;
}

export function routeTable(modules: ModulesContainer): Route[] {
  const scanner = new MetadataScanner();
  const controllers = [...modules.values()].flatMap((module) => [...module.controllers.values()]);
  return controllers.flatMap(({ instance, metatype }) => {
    const controller = metatype as Type;
    const prototype = controller.prototype as Record<string, Handler>;
    const base = ([] as string[]).concat(Reflect.getMetadata(PATH_METADATA, controller) as string | string[]);
    return scanner.getAllMethodNames(prototype).flatMap((name) => {
      const handler = prototype[name];
      const method = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod | undefined;
      if (method === undefined) return [];
      const paths = ([] as string[]).concat(Reflect.getMetadata(PATH_METADATA, handler) as string | string[]);
      return base.flatMap((prefix) =>
        paths.map((path) => ({
          method: RequestMethod[method],
          path: `/${`${prefix}/${path}`
            .split('/')
            .filter((part) => part !== '')
            .join('/')}`,
          controller,
          instance: instance as Record<string, Handler>,
          name,
          handler,
        })),
      );
    });
  });
}

/** Returns the parameters, decoded once; null when the path does not match or cannot be decoded. */
export function matchPath(pattern: string[], segments: string[]): Record<string, string | string[]> | null {
  const last = pattern[pattern.length - 1] ?? '';
  const isOpen = last.startsWith('*');
  if (isOpen ? segments.length < pattern.length : segments.length !== pattern.length) return null;
  const params: Record<string, string | string[]> = {};
  try {
    for (let i = 1; i < pattern.length; i += 1) {
      const part = pattern[i];
      if (part.startsWith(':')) {
        if (segments[i] === '') return null;
        params[part.slice(1)] = decodeURIComponent(segments[i]);
      } else if (part.startsWith('*')) {
        const rest = segments.slice(i).map(decodeURIComponent);
        if (rest.every((segment) => segment === '')) return null;
        params[part.slice(1)] = rest;
      } else if (part !== segments[i]) return null;
    }
  } catch {
    return null;
  }
  return params;
}

/** Returns the methods of a path: HEAD comes with GET, and OPTIONS with every path. Empty for an unknown path. */
export function methodsOf(routes: readonly Route[], path: string): string[] {
  const segments = path.split('/');
  while (segments.length > 2 && segments[segments.length - 1] === '') segments.pop();
  const methods = routes
    .filter((route) => matchPath(route.path.split('/'), segments) !== null)
    .map(({ method }) => method);
  if (methods.length === 0) return [];
  return [...new Set([...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'])].sort();
}
