import { PageError } from '../../platform/pages/page.js';

/** A form of a page for people that was not sent by such a page in this browser, or too late. */
export class ForeignFormError extends PageError {
  readonly kind = 'forbidden';
  readonly code = 'foreign_form';

  constructor() {
    super(
      'This form is no longer valid',
      'It was not opened in this browser, or the browser has lost its cookies. Nothing was changed. Open the page again, and ' +
        'allow cookies for it.',
    );
  }
}

/** Too many passwords are being checked. */
export class PasswordsBusyError extends PageError {
  readonly kind = 'rate_limited';
  readonly code = 'rate_limited';
  override readonly retryAfterSeconds = 2;

  constructor() {
    super('Many people sign in right now', 'Go back and try again in a few seconds.');
  }
}

/** An invitation link that was used, has expired, was replaced by a newer one, or never existed. */
export class InvitationEndedError extends PageError {
  readonly kind = 'gone';
  readonly code = 'invitation_ended';

  constructor() {
    super(
      'This invitation is over',
      'Each link works once, for 72 hours, and only until a newer one is made. If you have chosen a password, sign in with it. ' +
        'Otherwise ask the operator of this service for a new link.',
    );
  }
}
