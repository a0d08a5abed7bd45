import { DomainError } from '../errors/domain-error.js';

/** An error that a person reads on a page. Its message is whole sentences: the event, and what to do. */
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
