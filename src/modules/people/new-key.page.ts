import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { button, notice, snippet } from '../../platform/pages/components.js';
import { formOf, type FormsView } from '../../platform/pages/forms.js';
import { html, type Html } from '../../platform/pages/html.js';
import type { ShownOnce } from '../../platform/pages/shown-once.js';
import { keyLevels } from '../auth/access.types.js';

/**
 * Renders the form that creates an API key; {@link newKeyOf} reads its values.
 *
 * @param name of the form
 * @param namespaces names of those that the key can be limited to
 * @param account the account, as shown to people
 */
export function newKeyForm(view: FormsView, name: string, namespaces: string[], account: string): Html {
  const scopes = [
    ['all', `do everything that ${account} may do`],
    ...keyLevels.map((level) => [level, `${level}, in all namespaces`] as const),
    ...namespaces.flatMap((space) => keyLevels.map((level) => [`${level}:${space}`, `${level}, in ${space}`] as const)),
  ] as const;
  const days = { type: 'number', value: '90', attributes: html`min="1" max="3650" required` } as const;
  return formOf(
    view,
    name,
    [
      { name: 'name', label: 'Name', attributes: html`maxlength="255" required` },
      { name: 'days', label: 'Days until it expires', ...days },
      { name: 'scope', member: 'scopes', label: 'It may', type: 'checkbox', options: scopes },
    ],
    button('Create the key', { look: 'primary' }),
  );
}

/**
 * Reads the fields `name`, `days` and each `scope`, which is `all` for all rights.
 *
 * @throws InvalidInputError
 */
export function newKeyOf(form: URLSearchParams): { name: string; expiresAt: string; scopes?: string[] } {
  const text = (name: string) => form.get(name) ?? '';
  const [name, days, scopes] = [text('name').trim(), Number(text('days')), form.getAll('scope')];
  if (!/^[^\p{Cc}\p{Cs}]{1,255}$/u.test(name)) throw new InvalidInputError('name must have 1 to 255 characters');
  if (!(days >= 1 && days <= 3_650)) throw new InvalidInputError('days must be a number from 1 to 3650');
  if (scopes.length === 0 || scopes.length > 100) {
    throw new InvalidInputError('Select 1 to 100 permissions for the key').atField('scope');
  }
  const expiresAt = new Date(Date.now() + days * 86_400_000).toISOString();
  return { name, expiresAt, ...(!scopes.includes('all') && { scopes }) };
}

/** Renders a new API key, which is shown once; null without one. */
export function shownKey(once: ShownOnce | null): Html | null {
  const { name, key } = once ?? {};
  if (key === undefined) return null;
  return html`${notice(html`The key <strong>${name}</strong>, shown this once. Copy it now.`)}
${snippet('new-key', name, key)}`;
}
