/**
 * Parts that a module needs and higher modules provide. The module that needs one declares its token, an abstract class
 * or a symbol for each kind. The one that needs it reads it in `onModuleInit`, from all modules, since both may inject
 * each other.
 *
 * The start fails, naming the token, if no module of the process provides it.
 */
import type { Abstract } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';

/** Returns the part under a token. @throws UnknownElementException without one */
export function partOf<Part>(modules: ModuleRef, token: Abstract<Part> | symbol): Part {
  return modules.get<Part>(token, { strict: false });
}

/** @throws UnknownElementException naming the first part that is missing */
export function partsOf<Kind extends string, Part>(
  modules: ModuleRef,
  tokens: Record<Kind, symbol>,
): Record<Kind, Part> {
  const parts = Object.entries<symbol>(tokens).map(([kind, token]) => [kind, partOf(modules, token)]);
  return Object.fromEntries(parts) as Record<Kind, Part>;
}
