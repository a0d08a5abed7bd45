import type { ClientRequest } from '../../oauth/setup-page.service.js';
import type { RunFormField } from '../../releases/releases.types.js';
import type { StoredValues } from '../core/connection-values.js';
import { headersFault, queryFault } from '../core/connection.validators.js';

/** What a connection is called on its pages. */
export interface SetupSubject {
  /** `namespace/connectionId` */
  label: string;
  /** The host it leads to, or words that say that it leads to none. */
  upstreamHost: string;
}

/** A form for the values of a connection. No stored or typed value stands in it. */
export interface SetupForm extends SetupSubject {
  /** Where it is sent. */
  action: string;
  /** Why it is shown, in sentences. */
  reason: string;
  fields: RunFormField[];
  /** Asks for a client of an authorization server; null when it does not. */
  client: ClientRequest | null;
  /** Asks for the `Authorization` header too. */
  wantsAuthorization: boolean;
  /** What is wrong with it as a whole; null at first. */
  fault: string | null;
}

/** Where a connection leads, and what of its values a person may fill in. */
export interface Place extends SetupSubject {
  /** Null for code that runs here and authorizes nobody. */
  upstreamUrl: string | null;
  /** The server whose code, running here, authorizes its users itself; then the URL is nobody's address. */
  adapter?: string;
  fields: RunFormField[];
}

/** For servers that take a key or token and cannot be asked for one. */
export const authorizationField: RunFormField = {
  place: 'headers',
  name: 'Authorization',
  label: 'Authorization',
  description: 'The whole value of the header, for example “Bearer” and your token.',
  isRequired: false,
  isSecret: true,
  allowed: null,
  isGiven: false,
  isMissing: false,
  fault: null,
};

/** The name under which the form sends a value. */
export function fieldName(place: RunFormField['place'], name: string): string {
  return `${place}.${name}`;
}

export function placeAt(label: string, upstreamUrl: string | null, fields: RunFormField[], adapter?: string): Place {
  const isHere = upstreamUrl === null || adapter !== undefined;
  const upstreamHost = isHere ? 'code hosted here' : new URL(upstreamUrl).host;
  return { label, upstreamUrl, upstreamHost, fields, ...(adapter !== undefined && { adapter }) };
}

/** The form for values that lack or are wrong. */
export function inputForm({ fields, label, upstreamHost }: Place, action: string): SetupForm {
  return {
    label,
    upstreamHost,
    action,
    reason: 'Its server wants values that only you know:',
    fields,
    client: null,
    wantsAuthorization: false,
    fault: null,
  };
}

/** The form where a server wants authorization. @param why none can be asked for there; null when that is not the reason */
export function authorizationForm(
  { fields, label, upstreamHost }: Place,
  action: string,
  why: string | null = null,
): SetupForm {
  const wants = 'Its server wants authorization';
  const reason = why === null ? `${wants}.` : `${wants}, and Slipway cannot ask for it there: ${why}`;
  return {
    label,
    upstreamHost,
    action,
    reason: `${reason} If you have a key or token, give it here.`,
    fields,
    client: null,
    wantsAuthorization: !fields.some(({ place, name }) => place === 'headers' && /^authorization$/i.test(name)),
    fault: null,
  };
}

/** The form where the authorization server takes only clients that were registered by hand. */
export function clientForm(place: Place, action: string, client: ClientRequest): SetupForm {
  const { host } = new URL(client.issuer);
  return {
    ...authorizationForm(place, action),
    reason: `Its server wants authorization by ${host}. ${clientReasons[client.state]}`,
    client,
    fault: client.state === 'refused' ? `${host} does not accept the client that was given. Give it anew.` : null,
  };
}

const CLIENT_LACKS =
  'Slipway cannot register itself there. Register a client there by hand, and give its ID and secret here; ' +
  'or if you have a key or token, give that.';

const clientReasons: Record<ClientRequest['state'], string> = {
  unneeded: CLIENT_LACKS,
  lacking: CLIENT_LACKS,
  refused: 'Give the ID and secret of a client that is registered there; or if you have a key or token, give that.',
  given: 'Go on with the client that was given, or give another one; or if you have a key or token, give that.',
};

/** The fields with what was typed, as they are shown again: what lacks is said, and given is only what is stored. */
export function checkedFields(typed: RunFormField[], stored: RunFormField[]): RunFormField[] {
  return typed.map((field) => ({
    ...field,
    isGiven: stored.some(({ place, name, isGiven }) => place === field.place && name === field.name && isGiven),
    fault: field.isMissing ? 'This value is required.' : field.fault,
  }));
}

/** What is stored, with what was typed; an empty field keeps what was there. Only fields that were asked for count. */
export function merged({ headers, query }: StoredValues, asked: RunFormField[], body: URLSearchParams): StoredValues {
  const next: StoredValues = { headers: { ...headers }, query: [...query] };
  for (const { place, name } of asked) {
    const value = body.get(fieldName(place, name))?.trim();
    if (value === undefined || value === '') continue;
    if (place === 'headers') next.headers[name.toLowerCase()] = value;
    else next.query = [...next.query.filter(([known]) => known !== name), [name, value]];
  }
  return next;
}

/** What is wrong with the values as a whole, in a sentence; null when nothing is. */
export function valuesFault({ headers, query }: StoredValues, isFilled: boolean): string | null {
  if (!isFilled) return 'Nothing was filled in.';
  const fault = headersFault(headers);
  if (fault !== null) return `The headers ${fault}.`;
  const unfit = queryFault(query);
  return unfit === null ? null : `The query values ${unfit}.`;
}
