/**
 * Configuration fields are `headers.NAME` and `query.NAME`. A key or token is `key.value`, in the header `key.header` that the person names
 * (default `Authorization`).
 */
import { HEADER_VALUE } from '../../../platform/http/header-value.js';
import { keyFields, type SetupField } from '../../oauth/setup/setup.types.js';
import type { RunFormField, StoredValues } from '../../releases/releases.types.js';
import type { ConnectionState } from '../core/connection-status.js';
import { headerNameFault, headersFault, queryFault } from '../core/connection.validators.js';

export interface EnteredKey {
  header: string;
  value: string;
}

const DEFAULT_HEADER = 'Authorization';

export const NO_KEY: EnteredKey = { header: DEFAULT_HEADER, value: '' };

const keyField = { allowed: null, control: 'line', limits: {}, isStored: false, fault: null } as const;

/** Returns true if a person can enter a key or token: authorization is needed, and no other field is for it. */
export function takesKey(state: ConnectionState, fields: readonly RunFormField[]): boolean {
  const hasOne = fields.some(({ place, name }) => place === 'headers' && /^authorization$/i.test(name));
  return state === 'auth_required' && !hasOne;
}

export function keyIn(form: URLSearchParams): EnteredKey {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  return { header: text(keyFields.name) || DEFAULT_HEADER, value: text(keyFields.value) };
}

/** Returns the fields for a key, with the entered name of the header but not the key. */
export function keyFieldsFor({ header, value }: EnteredKey = NO_KEY): SetupField[] {
  const nameFault = {
    invalid: `“${header.slice(0, 40)}” cannot be the name of a header. It is one word, such as x-api-key.`,
    reserved: `“${header}” is set by the service itself. Enter the header for the key or token, such as x-api-key.`,
  };
  const fault = headerNameFault(header);
  return [
    {
      ...keyField,
      name: keyFields.name,
      label: 'Header',
      isRequired: true,
      description: `Leave it at ${DEFAULT_HEADER}, unless the key is to be sent in another header, such as x-api-key.`,
      isSecret: false,
      fallback: DEFAULT_HEADER,
      entered: header,
      fault: fault && nameFault[fault],
    },
    {
      ...keyField,
      name: keyFields.value,
      label: 'Key or token',
      isRequired: false,
      description: `The whole value of the header. For ${DEFAULT_HEADER} that is often “Bearer”, a blank, and the token.`,
      isSecret: true,
      fault: value === '' || HEADER_VALUE.test(value) ? null : UNSENDABLE,
    },
  ];
}

const UNSENDABLE = 'It may have only plain letters, digits and signs, and no line breaks.';

/** Removes values that equal the default of the schema, which applies without being stored. */
export function leaveDefaults(fields: RunFormField[], form: URLSearchParams): void {
  for (const field of fields) {
    const name = nameInForm(field);
    if (!field.isStored && form.get(name)?.replaceAll('\r\n', '\n') === field.fallback) form.set(name, '');
  }
}

export function nameInForm({ place, name }: Pick<RunFormField, 'place' | 'name'>): string {
  return `${place}.${name}`;
}

/** Returns the fields with their problems. `isStored` describes the stored values, not the submitted ones. */
export function checkedFields(
  submitted: RunFormField[],
  stored: RunFormField[],
  { headers }: StoredValues,
): RunFormField[] {
  return submitted.map((field) => {
    const { place, name, isMissing } = field;
    const value = place === 'headers' ? headers[name.toLowerCase()] : undefined;
    const isUnsendable = value !== undefined && !HEADER_VALUE.test(value);
    return {
      ...field,
      isStored: stored.some((other) => place === other.place && name === other.name && other.isStored),
      fault: isMissing ? 'This value is required.' : isUnsendable ? UNSENDABLE : field.fault,
    };
  });
}

/** Merges submitted and stored values. An empty field keeps the stored value. */
export function mergedValues(
  { headers, query }: StoredValues,
  fields: RunFormField[],
  form: URLSearchParams,
  key: EnteredKey,
): StoredValues {
  const next: StoredValues = { headers: { ...headers }, query: [...query] };
  for (const field of fields) {
    const value = form.get(nameInForm(field))?.replaceAll('\r\n', '\n').trim();
    if (value === undefined || value === '') continue;
    if (field.place === 'headers') next.headers[field.name.toLowerCase()] = value;
    else next.query = [...next.query.filter(([name]) => name !== field.name), [field.name, value]];
  }
  return key.value === '' ? next : { ...next, headers: { ...next.headers, [key.header.toLowerCase()]: key.value } };
}

/** Checks the values as a whole, besides those of single fields, and returns null if they are valid. */
export function valuesFault({ headers, query }: StoredValues): string | null {
  const fault = headersFault(headers) ?? queryFault(query);
  return fault === null ? null : 'These values are too long or too many to be stored together.';
}
