import type { Caller } from '../auth/access.types.js';

/**
 * Stands in for a caller where a module acts for the service itself: no right is checked, and records name no caller.
 *
 * @stability stable
 * @example
 * // A nightly report reads the log of every server that it has listed itself.
 * const { total } = await this.logs.search(asSystem, 'acme/weather', { outcome: 'exception' });
 */
export const asSystem: unique symbol = Symbol('asSystem');

/** The caller whose rights count, or {@link asSystem}. @stability stable */
export type FacadeCaller = Caller | typeof asSystem;
