import { DomainError } from '../errors/domain-error.js';

/** What went wrong on the way of a person: shown on a page. The message is whole sentences: what happened, what to do. */
export abstract class PageError extends DomainError {
  constructor(
    /** The heading of the page. */
    readonly title: string,
    message: string,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}
