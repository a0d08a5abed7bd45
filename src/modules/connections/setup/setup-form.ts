import type { FormView, SetupField } from '../../oauth/setup/setup.types.js';
import type { RunFormField, StoredValues } from '../../releases/releases.types.js';
import { headersFault, queryFault } from '../core/connection.validators.js';

/** The target of a connection, and those of its values that a person may enter. */
export interface SetupTarget {
  /** `namespace/connectionId` */
  label: string;
  /** The host of the upstream, or words for code that runs here. */
  upstreamHost: string;
  /** Null for code that runs here and authorizes nobody. */
  upstreamUrl: string | null;
  /** The server whose code, running here, authorizes its users; its URL is not an address then. */
  adapter?: string;
  fields: RunFormField[];
}

/** For servers that require a key or token and have no authorization server. */
const authorizationField: RunFormField = {
  place: 'headers',
  name: 'Authorization',
  label: 'Authorization',
  description: 'The whole value of the header, for example “Bearer” and your token.',
  isRequired: false,
  isSecret: true,
  allowed: null,
  isStored: false,
  isMissing: false,
  fault: null,
};

export function targetAt(
  label: string,
  upstreamUrl: string | null,
  fields: RunFormField[],
  adapter?: string,
): SetupTarget {
  const isHere = upstreamUrl === null || adapter !== undefined;
  const upstreamHost = isHere ? 'code hosted here' : new URL(upstreamUrl).host;
  return { label, upstreamUrl, upstreamHost, fields, ...(adapter !== undefined && { adapter }) };
}

/** The fields with one for the `Authorization` header, if none of them is. */
export function withAuthorizationField(fields: RunFormField[]): RunFormField[] {
  const hasOne = fields.some(({ place, name }) => place === 'headers' && /^authorization$/i.test(name));
  return hasOne ? fields : [...fields, authorizationField];
}

/** The form of a target, with these fields instead of its own. */
export function formOf(
  { label, upstreamHost }: SetupTarget,
  fields: RunFormField[],
  action: string,
): Pick<FormView, 'label' | 'upstreamHost' | 'action' | 'fields'> {
  return { label, upstreamHost, action, fields: fields.map(toSetupField) };
}

function toSetupField({ place, name, isMissing: _isMissing, ...field }: RunFormField): SetupField {
  return { ...field, name: nameInForm({ place, name }) };
}

function nameInForm({ place, name }: Pick<RunFormField, 'place' | 'name'>): string {
  return `${place}.${name}`;
}

/** The fields after a submission, with their faults. `isStored` is that of the stored values, not of the submitted ones. */
export function checkedFields(submitted: RunFormField[], stored: RunFormField[]): RunFormField[] {
  return submitted.map((field) => ({
    ...field,
    isStored: stored.some(({ place, name, isStored }) => place === field.place && name === field.name && isStored),
    fault: field.isMissing ? 'This value is required.' : field.fault,
  }));
}

/** The stored values with the submitted ones. An empty field keeps the stored value; names outside `fields` are ignored. */
export function mergedValues(
  { headers, query }: StoredValues,
  fields: RunFormField[],
  form: URLSearchParams,
): StoredValues {
  const next: StoredValues = { headers: { ...headers }, query: [...query] };
  for (const field of fields) {
    const value = form.get(nameInForm(field))?.trim();
    if (value === undefined || value === '') continue;
    if (field.place === 'headers') next.headers[field.name.toLowerCase()] = value;
    else next.query = [...next.query.filter(([name]) => name !== field.name), [field.name, value]];
  }
  return next;
}

/** The fault of the values as a whole, in a sentence; null without one. */
export function valuesFault({ headers, query }: StoredValues): string | null {
  const fault = headersFault(headers);
  if (fault !== null) return `The headers ${fault}.`;
  const ofQuery = queryFault(query);
  return ofQuery === null ? null : `The query values ${ofQuery}.`;
}
