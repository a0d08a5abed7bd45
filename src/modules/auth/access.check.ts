import type { Type } from '@nestjs/common';
import type { Route } from '../../platform/http/route-table.js';
import { RESERVED_NAMESPACES } from '../../platform/http/resource-names.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import type { AccessRule } from './access.types.js';

/** The service must not start like this: a route is open by accident, or a namespace could shadow it. */
export class RouteDeclarationError extends Error {}

/** What a route declares, on its method or its class. */
export function declarationOf({ handler, controller }: { handler: object; controller: Type }) {
  return (Reflect.getMetadata(ACCESS, handler) ?? Reflect.getMetadata(ACCESS, controller)) as
    AccessRule | 'public' | undefined;
}

/**
 * Checked once at start, against the real route table: every route says who may use it, names only parameters it has,
 * and its first path segment can be no namespace.
 *
 * @throws RouteDeclarationError naming every route that fails
 */
export function checkRoutes(routes: Route[]): void {
  const faults = routes.flatMap((route) => {
    const { method, path } = route;
    const declared = declarationOf(route);
    if (declared === undefined) return [`${method} ${path} declares neither @Access(…) nor @Public()`];
    const first = path.split('/')[1] ?? '';
    const found = first === '' || RESERVED_NAMESPACES.has(first) || first.startsWith('.');
    const shadowed = found ? [] : [`${method} ${path}: "${first}" must stand in RESERVED_NAMESPACES`];
    const params = declared === 'public' ? [] : [declared.owner, declared.account];
    const unknown = params.filter((param) => param !== undefined && !path.split('/').includes(`:${param}`));
    return [...shadowed, ...unknown.map((param) => `${method} ${path} has no parameter "${param}" to check`)];
  });
  if (faults.length > 0) throw new RouteDeclarationError(faults.join('\n'));
}
