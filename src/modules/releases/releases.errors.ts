import { DomainError } from '../../platform/errors/domain-error.js';
import type { ArtifactKind } from './release.entity.js';
import type { ReleaseStatus } from './release-state.js';

/** The server has no release with this id, or none at all. */
export class ReleaseNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Release not found');
  }
}

/** Only a release that waits for authorization can be resumed. */
export class NotResumableError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'validation_error';

  constructor(status: ReleaseStatus) {
    super(
      `Release is not in a resumable state: it is ${status}, and only AUTH_REQUIRED and AUTH_TIMEOUT can be resumed`,
    );
  }
}

/** Only a release that succeeded can be made current again. */
export class NotPromotableError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(status: ReleaseStatus) {
    super(`Only a release that succeeded can become current: this one is ${status}`);
  }
}

/** The server has no bundle: it has no successful release of type stdio. */
export class BundleNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'not_found';

  constructor() {
    super('Bundle not found: the server has no successful release of type stdio');
  }
}

/** Only the current release can be scanned again. */
export class NotCurrentError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'conflict';

  constructor(status: ReleaseStatus) {
    super(
      `Only the current release can be scanned again: this one is ${status}` +
        (status === 'SUCCESS' ? ', and another one is current. Promote it first.' : '.'),
    );
  }
}

/** Bundles do not change, so they are scanned once. */
export class NotScannableError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'validation_error';

  constructor() {
    super('A bundle does not change, so there is nothing to scan again: publish the one that did.');
  }
}

/** The release was scanned with credentials that were deleted; without them the server may show less. */
export class ScanCredentialsNeededError extends DomainError {
  readonly kind = 'invalid';
  readonly code = 'validation_error';

  constructor() {
    super('This release was scanned with scanCredentials, which are not kept: send them again.');
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

/** A file was removed while its release was stored: the sweeper took the same bytes of another release for unused. */
export class UploadLostError extends DomainError {
  readonly kind = 'unavailable';
  readonly code = 'unavailable';
  override readonly retryAfterSeconds = 1;

  constructor() {
    super('An uploaded file was removed at the same moment: publish again.');
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

/** The limit of streams of an account, or of this process, is reached. */
export class TooManyFollowersError extends DomainError {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 5;

  constructor(whose: 'account' | 'all') {
    super(
      whose === 'account'
        ? 'This account follows as many releases as one may: close one of the streams first'
        : 'As many releases are followed as may be: try again in a few seconds',
    );
  }
}
