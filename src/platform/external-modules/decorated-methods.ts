import { Injectable } from '@nestjs/common';
import { type DiscoverableDecorator, DiscoveryService, MetadataScanner } from '@nestjs/core';

export interface DecoratedMethod<Options> {
  /** `Module.Provider.method` */
  name: string;
  /** Name of the class of its Nest module. */
  module: string;
  options: Options;
  call: (...args: unknown[]) => unknown;
}

/** Finds the methods of all providers of this process by their decorators. */
@Injectable()
export class DecoratedMethods {
  constructor(
    private readonly discoveryService: DiscoveryService,
    private readonly metadataScanner: MetadataScanner,
  ) {}

  /**
   * Finds the methods with a decorator that `DiscoveryService.createDecorator` made.
   *
   * @throws Error for two methods with one name, and for a provider with a scope other than the default
   */
  find<Options>(decorator: DiscoverableDecorator<Options>): DecoratedMethod<Options>[] {
    const instances = new Set<object>();
    const methods = this.discoveryService.getProviders().flatMap((wrapper) => {
      const instance = wrapper.instance as object | null;
      // A provider can have several tokens.
      if (typeof instance !== 'object' || instance === null || instances.has(instance)) return [];
      instances.add(instance);
      const module = wrapper.host?.name ?? '';
      return this.metadataScanner
        .getAllMethodNames(Object.getPrototypeOf(instance) as object | null)
        .flatMap((method) => {
          const metadata: unknown = this.discoveryService.getMetadataByDecorator(decorator, wrapper, method);
          if (!metadata) return [];
          const name = `${module}.${instance.constructor.name}.${method}`;
          if (wrapper.isTransient || !wrapper.isDependencyTreeStatic())
            throw new Error(`${name} is never called: its provider must have the default scope`);
          const call = (instance as Record<string, DecoratedMethod<Options>['call']>)[method].bind(instance);
          return [{ name, module, options: metadata as Options, call }];
        });
    });
    const names = methods.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice) throw new Error(`Two methods are named ${twice}: give one of the classes another name`);
    return methods;
  }
}
