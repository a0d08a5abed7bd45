import { DomainError, NotFoundError, ConflictError, InvalidInputError } from '../../platform/errors/domain-error.js';
import type { ArtifactKind } from './release.entity.js';
import type { ReleaseStatus } from './release-state.js';

/** The server has no release with this id, or none at all. */
export class ReleaseNotFoundError extends NotFoundError {
  constructor() {
    super('Release not found');
  }
}

/** Only a release that waits for authorization can be resumed. */
export class NotResumableError extends InvalidInputError {
  constructor(status: ReleaseStatus) {
    super(
      `Release is not in a resumable state: it is ${status}, and only AUTH_REQUIRED and AUTH_TIMEOUT can be resumed`,
    );
  }
}

/** Only the current release can be scanned again. */
export class NotCurrentError extends ConflictError {
  constructor(status: ReleaseStatus) {
    super(
      `Only the current release can be scanned again: this one is ${status}` +
        (status === 'SUCCESS' ? ', and another one is current. Promote it first.' : '.'),
    );
  }
}

/** The release names a file that is not in the store. */
export class FileLostError extends DomainError {
  readonly kind = 'internal';
  readonly code = 'internal_error';

  constructor(kind: ArtifactKind) {
    super(`The ${kind} of this release is not in storage any more: publish it again.`);
  }
}

/** This service does not run what was published. */
export class NotHostedHereError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'hosting_unavailable';

  /** @param why a sentence with the reason, and what the operator can do */
  constructor(why: string) {
    super(
      `${why} The module's syntax and exports are fine, and it is stored. ` +
        'Run it elsewhere and publish its URL, or publish again when hosting is enabled.',
    );
  }
}
