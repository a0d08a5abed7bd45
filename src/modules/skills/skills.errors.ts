import { DomainError, NotFoundError, type ErrorKind } from '../../platform/errors/domain-error.js';

export const skillNotFoundError = () => new NotFoundError('Skill not found');

/** A skill was rejected. Clients distinguish the reasons by `code`. */
export class SkillPublishError extends DomainError {
  constructor(
    readonly kind: ErrorKind,
    readonly code: string,
    message: string,
    detail?: unknown,
  ) {
    super(message, detail);
  }
}
