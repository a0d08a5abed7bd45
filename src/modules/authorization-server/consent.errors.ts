import { PageError } from '../../platform/pages/page.js';
import type { ErrorKind } from '../../platform/errors/domain-error.js';

/** A decision that cannot be made, as a page. */
export class ConsentError extends PageError {
  readonly code = 'consent';

  private constructor(
    readonly kind: ErrorKind,
    title: string,
    message: string,
  ) {
    super(title, message);
  }

  static expired(): ConsentError {
    return new ConsentError(
      'gone',
      'This login is over',
      'It was finished, took longer than an hour, or was begun in another browser. Go back to your app and connect again.',
    );
  }

  static otherPerson(): ConsentError {
    return new ConsentError(
      'conflict',
      'Somebody else is signed in now',
      'The page was shown to another account. Go back to your app and connect again.',
    );
  }

  static nothingToAllow(): ConsentError {
    return new ConsentError(
      'not_found',
      'Nothing to let in here',
      'The connection or server is gone, or your account may not use it any more. Check the address in your app.',
    );
  }
}
