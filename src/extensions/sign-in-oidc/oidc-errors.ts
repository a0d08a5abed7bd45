import { type ErrorKind, PageError } from '../../extension.js';

/** A sign-in that failed. The page leads back to where it began. */
export class SignInError extends PageError {
  /** @param detail goes to the log only */
  constructor(
    readonly kind: ErrorKind,
    readonly code: string,
    title: string,
    message: string,
    { detail, note }: { detail?: unknown; note?: string } = {},
  ) {
    super(title, message, detail, note);
  }

  /** Sets the address of the link on the page. */
  setTryAgainUrl(url: string): this {
    this.tryAgainUrl = url;
    return this;
  }
}

/** The issuer does not respond, or not as one. */
export function issuerUnavailable(name: string, detail: unknown): SignInError {
  const title = `${name} is unavailable`;
  const message = 'Slipway cannot reach it to sign you in. Try again in a minute, or use another way to sign in.';
  return new SignInError('unavailable', 'issuer_unavailable', title, message, { detail });
}

/** No sign-in is pending in this browser: it was finished or replaced, took too long, or began in another browser. */
export function noPendingSignIn(): SignInError {
  const message =
    'It was finished or took longer than 10 minutes, or it began in another browser. Nothing was changed.';
  return new SignInError('forbidden', 'no_pending_sign_in', 'This sign-in is no longer pending', message);
}

/** The issuer, or the check of its response, said no. @param note its error code */
export function signInRejected(name: string, detail: unknown, note: string | undefined): SignInError {
  const message = `${name} did not confirm who you are. Start again. If it fails again, contact the operator of this service.`;
  return new SignInError('forbidden', 'sign_in_rejected', 'You are not signed in', message, { detail, note });
}

/** The person has an identity, and no account that it opens. */
export function notAdmitted(title: string, message: string): SignInError {
  return new SignInError('forbidden', 'not_admitted', title, message);
}
