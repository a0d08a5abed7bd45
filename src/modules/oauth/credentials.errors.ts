import type { Env } from '../../config/env.js';
import { PageError } from '../../platform/pages/page.js';
import { CallFailure } from '../../mcp/protocol/failures.js';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import type { SessionCaller } from '../auth/access.types.js';
import type { CallbackQueryDto } from './setup/callback.dto.js';
import { issuerOf } from './stored-tokens.js';

export { NoAuthorizationServerError, OAuthClientNeededError, OAuthSetupError } from '../../mcp/oauth/oauth-errors.js';

/** The stored authorization is no longer valid: a user must authorize Slipway again. */
export class AuthorizationRequiredError extends CallFailure {
  readonly failure = 'authorization ended';
}

/** The token has expired and the token endpoint does not respond. The authorization stays stored. */
export class CredentialUnavailableError extends CallFailure {
  readonly failure = 'no token';
}

/** A setup link or callback that this browser cannot use. */
export class SetupPageError extends PageError {
  readonly code = 'setup_failed';
  /** The browser of a user who denied access returns to the app that opened this link, if there is one. */
  refusedLinkId?: string;

  constructor(
    readonly kind: 'invalid' | 'forbidden' | 'not_found' | 'gone' | 'upstream',
    title: string,
    message: string,
    detail?: unknown,
    note?: string,
  ) {
    super(title, message, detail, note);
  }

  static readonly unknownLink = page(
    'not_found',
    'This link leads nowhere',
    'It was mistyped, or it is finished and was removed. If you are still asked to connect, ask for a new link.',
  );
  static readonly usedLink = page(
    'gone',
    'This link was used before',
    'Each link works once, in the browser that pressed its button, and becomes invalid when the request behind it changes. ' +
      'If you are still asked to connect, ask for a new link.',
  );
  static readonly expiredLink = page(
    'gone',
    'This link has expired',
    'Links work for a short time only. Ask for a new one where you got this one.',
  );
  static readonly nothingWaits = page(
    'gone',
    'This request is no longer pending',
    'The request was cancelled, or replaced by a newer one. Nothing was authorized.',
  );
  static readonly otherBrowser = page(
    'forbidden',
    'This is not the browser that began',
    'Begin and end in one browser, and let it accept cookies. Nothing was authorized. Open the link again and stay in that ' +
      'browser.',
  );
  static otherPerson({ accountName }: SessionCaller, { baseUrl }: Env): SetupPageError {
    return new SetupPageError(
      'forbidden',
      'This link is for somebody else',
      `It opens only for the person it was created for, and you are signed in as ${accountName}. Nothing was authorized. If you are ` +
        `that person under another name, sign out at ${baseUrl}/me and open the link again.`,
    );
  }
  static readonly unknownState = page(
    'gone',
    'This authorization is no longer valid',
    'It was completed before, took longer than ten minutes, or was begun again in another tab. ' +
      'Nothing was changed now. Open the link again if you are still asked to connect.',
  );
  static readonly wrongReturn = page(
    'invalid',
    'This return address is not allowed',
    'The link would lead you on to an address that this service does not know. Tell whoever runs the app that led you here.',
    undefined,
    'the origin of returnUrl is not in SETUP_RETURN_ORIGINS',
  );
  static wrongClient(host: string, name: string, code: string): SetupPageError {
    return new SetupPageError(
      'upstream',
      'The client ID is not accepted',
      `${host} does not accept the client ID and secret that were entered for ${name}. Nothing was authorized. ` +
        'Open the link again to enter others. If the owner of the connection set them, only the owner can correct them.',
      undefined,
      code,
    );
  }
  static readonly notFromServer = page(
    'invalid',
    'The response is not from the sign-in server',
    'The response is not from the server at which you signed in, so it was discarded. Nothing was authorized. ' +
      'Open the link again; if this happens again, tell whoever gave it to you.',
    undefined,
    'the issuer of the response is missing or wrong (iss)',
  );
}

/** Returns a function, so that the stack of the error names the code that throws it. */
function page(...args: ConstructorParameters<typeof SetupPageError>): () => SetupPageError {
  return () => new SetupPageError(...args);
}

const TRY_LATER = 'Open the link again in a few minutes.';
const NOT_ALLOWED = 'It might not allow you to give this access. Ask whoever gave you the link.';

/** The next step after the error of a response (RFC 6749 section 4.1.2.1), for users. */
const nextSteps: Partial<Record<string, string>> = {
  server_error: TRY_LATER,
  temporarily_unavailable: TRY_LATER,
  invalid_scope: NOT_ALLOWED,
  unauthorized_client: NOT_ALLOWED,
};

/**
 * Returns the error for a response of RFC 6749 section 4.1.2.1.
 *
 * @param name of the server, as users know it
 */
export function answeredError(
  { id, server, tryAgainUrl }: { id: string; server: AuthorizationServer; tryAgainUrl: string },
  { error = 'no error code', error_description: description = '' }: CallbackQueryDto,
  name: string,
  appName: string,
): SetupPageError {
  const host = issuerOf({ server });
  const note = error.slice(0, 100);
  if (error === 'access_denied') {
    const refusal = new SetupPageError(
      'forbidden',
      'Nothing was authorized',
      `It was refused or cancelled at ${host}, so ${appName} has no access to ${name}.`,
      undefined,
      note,
    );
    return Object.assign(refusal, { refusedLinkId: id, tryAgainUrl });
  }
  const reason = description === '' ? 'without a reason' : `and said: “${description.slice(0, 300)}”`;
  const nextStep =
    (Object.hasOwn(nextSteps, error) && nextSteps[error]) ||
    'Open the link again; if this happens again, tell whoever gave it to you.';
  return new SetupPageError(
    'upstream',
    `${name} is not connected`,
    `${host} did not give ${appName} access, ${reason}. Nothing was authorized. ${nextStep}`,
    undefined,
    note,
  );
}
