/** Arguments that a command does not take; the message lists those that it takes. */
export class UsageError extends Error {}
