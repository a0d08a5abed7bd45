import type { Caller } from '../auth/access.types.js';

/**
 * Replaces a caller if a module acts for the service itself: no access is checked, and records name no caller.
 *
 * @stability stable
 * @example // A nightly report reads the log of every server that it has listed itself. const { total } = await
 *   this.logs.search(asSystem, 'acme/weather', { outcome: 'exception' });
 */
export const asSystem: unique symbol = Symbol('asSystem');

/** The caller whose rights apply, or {@link asSystem}. @stability stable */
export type FacadeCaller = Caller | typeof asSystem;
