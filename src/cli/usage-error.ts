/** A command was called with arguments that it does not take; the message says which it takes. */
export class UsageError extends Error {}
