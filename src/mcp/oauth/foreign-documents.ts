/**
 * Documents of other parties: metadata of resources and authorization servers (RFC 9728, RFC 8414, OpenID Connect
 * Discovery), registrations (RFC 7591), tokens and errors of token endpoints (RFC 6749 sections 5.1 and 5.2).
 *
 * A document is reduced to the members that are used here, before a library reads it: null, an empty string, an empty
 * list and a member of a wrong type are treated as absent, as these specifications require. A string of digits is read
 * as a number, one string in place of a list as a list of one, and form-encoded responses of a token endpoint are read
 * too.
 */
import { isObject, withoutBom } from '../../platform/text/json.js';

/** The JSON type of a member; `words` are strings in one, separated by blanks. */
type MemberForm = 'text' | 'texts' | 'number' | 'flag' | 'words';

const forms = {
  resource: {
    resource: 'text',
    authorization_servers: 'texts',
    scopes_supported: 'texts',
    resource_name: 'text',
    dpop_bound_access_tokens_required: 'flag',
  },
  server: {
    issuer: 'text',
    authorization_endpoint: 'text',
    token_endpoint: 'text',
    registration_endpoint: 'text',
    revocation_endpoint: 'text',
    scopes_supported: 'texts',
    response_types_supported: 'texts',
    code_challenge_methods_supported: 'texts',
    token_endpoint_auth_methods_supported: 'texts',
    client_id_metadata_document_supported: 'flag',
    authorization_response_iss_parameter_supported: 'flag',
  },
  registration: {
    client_id: 'text',
    client_secret: 'text',
    client_secret_expires_at: 'number',
    token_endpoint_auth_method: 'text',
    redirect_uris: 'texts',
  },
  tokens: {
    access_token: 'text',
    refresh_token: 'text',
    token_type: 'text',
    expires_in: 'number',
    scope: 'words',
    error: 'text',
    error_description: 'text',
    message: 'text',
  },
} as const satisfies Record<string, Record<string, MemberForm>>;

export type DocumentKind = keyof typeof forms;

export type ForeignDocument<Kind extends DocumentKind> = {
  [Name in keyof (typeof forms)[Kind]]?: (typeof forms)[Kind][Name] extends 'texts'
    ? string[]
    : (typeof forms)[Kind][Name] extends 'number'
      ? number
      : (typeof forms)[Kind][Name] extends 'flag'
        ? boolean
        : string;
};

/** Parses a document; null when the string is not an object. */
export function readDocument<Kind extends DocumentKind>(kind: Kind, text: string): ForeignDocument<Kind> | null {
  let value: unknown;
  try {
    value = JSON.parse(withoutBom(text));
  } catch {
    // Older token endpoints respond in the form of a query.
    if (kind !== 'tokens' || !/^\s*(?:access_token|token_type|scope|expires_in|refresh_token|error)[\w]*=/.test(text)) {
      return null;
    }
    value = Object.fromEntries(new URLSearchParams(text.trim()));
  }
  if (!isObject(value)) return null;
  const document: Record<string, unknown> = {};
  for (const [name, form] of Object.entries<MemberForm>(forms[kind])) {
    const member = inForm(Object.hasOwn(value, name) ? value[name] : undefined, form);
    if (member !== undefined) document[name] = member;
  }
  return document as ForeignDocument<Kind>;
}

function inForm(value: unknown, form: MemberForm): unknown {
  switch (form) {
    case 'text':
      return isText(value) ? value : typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
    case 'texts': {
      const strings = [value].flat().filter(isText);
      return strings.length > 0 ? strings : undefined;
    }
    case 'words':
      return [value].flat().filter(isText).join(' ') || undefined;
    case 'number':
      if (typeof value === 'number' && Number.isFinite(value)) return value;
      return isText(value) && /^\s*\d{1,15}(?:\.\d+)?\s*$/.test(value) ? Number(value) : undefined;
    case 'flag':
      return typeof value === 'boolean' ? value : value === 'true' ? true : value === 'false' ? false : undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}
