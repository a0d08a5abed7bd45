import { type ErrorKind, PageError } from '../../extension.js';

export class SignInError extends PageError {
  /** @param detail only logged */
  constructor(
    readonly kind: ErrorKind,
    readonly code: string,
    title: string,
    message: string,
    { detail, note }: { detail?: unknown; note?: string } = {},
  ) {
    super(title, message, detail, note);
  }

  setTryAgainUrl(url: string): this {
    this.tryAgainUrl = url;
    return this;
  }
}

export function issuerUnavailable(name: string, detail: unknown): SignInError {
  const title = `${name} is unavailable`;
  const message = 'Slipway cannot reach it to sign you in. Try again in a minute, or use another way to sign in.';
  return new SignInError('unavailable', 'issuer_unavailable', title, message, { detail });
}

/** Returns the error for a browser without a pending sign-in: it was finished or replaced, timed out, or began in another browser. */
export function noPendingSignIn(): SignInError {
  const message =
    'It was finished or took longer than 10 minutes, or it began in another browser. Nothing was changed.';
  return new SignInError('forbidden', 'no_pending_sign_in', 'This sign-in is no longer pending', message);
}

/** Returns the error for a sign-in that the issuer rejected, or whose response failed the checks. @param note the issuer's error code */
export function signInRejected(name: string, detail: unknown, note: string | undefined): SignInError {
  const message = `${name} did not confirm who you are. Start again. If it fails again, contact the operator of this service.`;
  return new SignInError('forbidden', 'sign_in_rejected', 'You are not signed in', message, { detail, note });
}

export function notAdmitted(title: string, message: string): SignInError {
  return new SignInError('forbidden', 'not_admitted', title, message);
}
