import { RequestMethod, type INestApplicationContext, type Type } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';

type Handler = (...args: unknown[]) => unknown;

/** One operation as its controller declares it. */
export interface Route {
  method: string;
  /** In Express' notation, e.g. `/servers/:qualifiedName`. */
  path: string;
  controller: Type;
  instance: Record<string, Handler>;
  name: string;
  handler: Handler;
}

function joined(...parts: string[]): string {
  const path = parts.flatMap((part) => part.split('/')).filter((part) => part !== '');
  return `/${path.join('/')}`;
}

/** Every route of every controller the app has loaded. */
export function routeTable(app: INestApplicationContext): Route[] {
  const scanner = new MetadataScanner();
  const controllers = [...app.get(ModulesContainer).values()].flatMap((module) => [...module.controllers.values()]);
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
          path: joined(prefix, path),
          controller,
          instance: instance as Record<string, Handler>,
          name,
          handler,
        })),
      );
    });
  });
}
