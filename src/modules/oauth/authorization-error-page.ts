import type { CallbackQueryDto } from './callback.dto.js';
import { SetupPageError } from './credentials.errors.js';
import { issuerOf } from './refresh-outcome.js';
import type { PendingAuthorization } from './pending-authorization.entity.js';

/** What a person reads who comes back without a code (RFC 6749 section 4.1.2.1), from the server that was asked. */
export function authorizationErrorPage(
  { server, label }: Pick<PendingAuthorization, 'server' | 'label'>,
  query: CallbackQueryDto,
): SetupPageError {
  const host = issuerOf({ server });
  if (query.error === 'access_denied') {
    return new SetupPageError(
      'forbidden',
      'Nothing was authorized',
      `The authorization of ${label} was refused or cancelled at ${host}. To try again, open the setup link once more.`,
    );
  }
  const reason = [query.error, query.error_description].filter(Boolean).join(': ').slice(0, 300);
  return new SetupPageError(
    'upstream',
    'The authorization server reports a problem',
    `${host} did not authorize ${label}` +
      (reason === '' ? ', and gave no reason.' : `. It says: “${reason}”.`) +
      ' Nothing was authorized. Open the setup link again, or tell whoever runs the MCP server.',
  );
}
