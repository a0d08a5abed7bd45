/** What a session began with: enough to begin it again in a new process. */
export interface Opening {
  /** The initialize request, as it came. */
  body: string;
  config: unknown;
}

/** The opening's request; empty when it is none. */
export function messageOf({ body }: Opening): { id?: unknown; params?: { capabilities?: object } } {
  try {
    return (JSON.parse(body) ?? {}) as { id?: unknown; params?: { capabilities?: object } };
  } catch {
    return {};
  }
}

/**
 * Whether a session that was opened in one way serves who opens it in another: with the same configuration, and the same
 * client, or one that declares nothing and so expects nothing of the session that it would not get.
 */
export function isSameOpening(stored: Opening, given: Opening): boolean {
  if (JSON.stringify(stored.config) !== JSON.stringify(given.config)) return false;
  const { id, params } = messageOf(given);
  if (id === undefined || params === undefined) return false;
  const declaresNothing = Object.keys(params.capabilities ?? {}).length === 0;
  return declaresNothing || JSON.stringify(messageOf(stored).params) === JSON.stringify(params);
}
