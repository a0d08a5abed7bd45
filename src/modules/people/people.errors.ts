import { ForbiddenError } from '../../platform/errors/domain-error.js';
import { PlainPageError } from '../../platform/pages/page.js';

/** Returns the error for a service whose users sign in only by another service. */
export function passwordsOff(): ForbiddenError {
  return new ForbiddenError(
    'Forbidden: passwords and invitations are off, since people sign in with their company account',
  );
}

export function passwordsBusy(): PlainPageError {
  const message = 'Go back and try again in a few seconds.';
  return new PlainPageError('rate_limited', 'rate_limited', 'Many people sign in right now', message, 2);
}

export function invitationEnded(): PlainPageError {
  return new PlainPageError(
    'gone',
    'invitation_ended',
    'This invitation is no longer valid',
    'Each link works once, for a limited time, and only until a newer one is created. If you have chosen a password, sign in with it. ' +
      'Otherwise ask the operator of this service for a new link.',
  );
}
